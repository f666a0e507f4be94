// The words of a user's text: see plan_text.hpp.
#include "plan_text.hpp"

#include <cstddef>
#include <cstdint>

namespace paperwasp {
namespace {

// What a character is in a text of a user.
enum Kind : uint8_t { OTHER, SPACE, WITHIN, ALPHANUMERIC };

struct Kinds {
    uint8_t of[256];
    constexpr Kinds() : of() {
        for (int c = '0'; c <= '9'; ++c) of[c] = ALPHANUMERIC;
        for (int c = 'a'; c <= 'z'; ++c) of[c] = ALPHANUMERIC;
        for (int c = 'A'; c <= 'Z'; ++c) of[c] = ALPHANUMERIC;
        for (const char c : {'-', '_', '.', ',', '\'', '/', '=', '&', '@', '#', '%', '$', '~', '?', '|', '^', '\\', '`'})
            of[static_cast<uint8_t>(c)] = WITHIN;
        of[' '] = SPACE;
    }
};
constexpr Kinds KINDS;

// How many bytes a letter of Latin beyond ASCII has, U+00C0 to U+017F, that begins here: 2; 0 where none does.
size_t latin_letter(std::string_view text, size_t at) {
    if (at + 1 >= text.size()) return 0;
    const auto first = static_cast<uint8_t>(text[at]), second = static_cast<uint8_t>(text[at + 1]);
    const bool is_sign = first == 0xC3 && (second == 0x97 || second == 0xB7);  // of multiplication and division
    return first >= 0xC3 && first <= 0xC5 && second >= 0x80 && second <= 0xBF && !is_sign ? 2 : 0;
}

// How many bytes of a word the character there has, of this kind or a plainer one; 0: it is none of a word.
size_t of_word(std::string_view text, size_t at, Kind least) {
    return KINDS.of[static_cast<uint8_t>(text[at])] >= least ? 1 : latin_letter(text, at);
}

}  // namespace

std::vector<std::string_view> plain_words(std::string_view text, bool alphanumeric) {
    const Kind least = alphanumeric ? ALPHANUMERIC : WITHIN;
    std::vector<std::string_view> words;
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        while (at < text.size()) {
            const size_t bytes = of_word(text, at, least);
            if (bytes == 0) break;
            at += bytes;
        }
        if (at > start) {
            if (of_word(text, start, ALPHANUMERIC) == 0) return {};
            words.push_back(text.substr(start, at - start));
        }
        if (at < text.size() && KINDS.of[static_cast<uint8_t>(text[at])] != SPACE) return {};
        ++at;
    }
    return words;
}

}  // namespace paperwasp
