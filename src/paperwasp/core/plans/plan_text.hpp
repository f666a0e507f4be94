// The words of a user's text.
#pragma once

#include <string_view>
#include <vector>

namespace paperwasp {

// A word, or words next to each other.
using TextTerm = std::vector<std::string_view>;

// The terms of a text in which nothing but spaces and quotes has a meaning: words, and words between quotes, which stand next to each
// other; `is_phrase`: one term, of all words. Each word begins with a letter or a digit of ASCII, and has no character with which the
// simple query language says something; in a phrase, nor any other than letters and digits. Letters are those of alphabets without marks
// that combine, and of Chinese, Japanese and Korean. Empty: there is more in the text. What such a word is, the general steps say.
std::vector<TextTerm> plain_terms(std::string_view text, bool is_phrase);

}  // namespace paperwasp
