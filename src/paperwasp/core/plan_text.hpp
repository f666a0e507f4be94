// The words of a user's text.
#pragma once

#include <string_view>
#include <vector>

namespace paperwasp {

// The words of a text in which nothing but spaces has a meaning: each begins with a letter of Latin or a digit of ASCII, and has no
// character with which the simple query language says something. `alphanumeric`: nor any other than letters and digits. Empty: there is
// more in the text. What such a word is, the general steps say.
std::vector<std::string_view> plain_words(std::string_view text, bool alphanumeric);

}  // namespace paperwasp
