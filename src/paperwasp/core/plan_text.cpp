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

}  // namespace

std::vector<std::string_view> plain_words(std::string_view text, bool alphanumeric) {
    const Kind least = alphanumeric ? ALPHANUMERIC : WITHIN;
    std::vector<std::string_view> words;
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        while (at < text.size() && KINDS.of[static_cast<uint8_t>(text[at])] >= least) ++at;
        if (at > start) {
            if (KINDS.of[static_cast<uint8_t>(text[start])] != ALPHANUMERIC) return {};
            words.push_back(text.substr(start, at - start));
        }
        if (at < text.size() && KINDS.of[static_cast<uint8_t>(text[at])] != SPACE) return {};
        ++at;
    }
    return words;
}

}  // namespace paperwasp
