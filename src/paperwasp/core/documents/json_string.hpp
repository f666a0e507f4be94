// The inside of JSON strings: reading their escapes, and writing them as orjson does, which writes what is stored.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace paperwasp {

constexpr int NO_ESCAPE = -1;

// The character that the escape at `at` (a backslash) stands for; `at` moves behind it. NO_ESCAPE: it is none that orjson writes, which
// are those of control characters, quotes and backslashes.
inline int read_escape(const char*& at, const char* end) {
    if (end - at < 2) return NO_ESCAPE;
    const char kind = at[1];
    if (kind != 'u') {
        at += 2;
        switch (kind) {
            case 'b':
                return '\b';
            case 'f':
                return '\f';
            case 'n':
                return '\n';
            case 'r':
                return '\r';
            case 't':
                return '\t';
            case '"':
            case '\\':
                return kind;
            default:
                return NO_ESCAPE;
        }
    }
    if (end - at < 6 || at[2] != '0' || at[3] != '0' || (at[4] != '0' && at[4] != '1')) return NO_ESCAPE;
    const char low = at[5];
    const int digit = low >= '0' && low <= '9' ? low - '0' : low >= 'a' && low <= 'f' ? low - 'a' + 10 : NO_ESCAPE;
    if (digit == NO_ESCAPE) return NO_ESCAPE;
    const int high = at[4] - '0';
    at += 6;
    return high * 16 + digit;
}

// Adds the text that the inside of a JSON string stands for. False: it has other escapes.
inline bool unescape(std::string_view inside, std::string& to) {
    const char* at = inside.data();
    const char* const end = at + inside.size();
    while (at < end) {
        const auto backslash = std::string_view(at, static_cast<size_t>(end - at)).find('\\');
        if (backslash == std::string_view::npos) break;
        to.append(at, backslash);
        at += backslash;
        const int character = read_escape(at, end);
        if (character == NO_ESCAPE) return false;
        to += static_cast<char>(character);
    }
    to.append(at, end);
    return true;
}

// Adds a text as the inside of a JSON string.
inline void escape(std::string_view text, std::string& to) {
    constexpr std::string_view HEX = "0123456789abcdef";
    constexpr std::string_view SHORT = "........btn.fr..";  // by character; a dot: it has no short escape
    size_t written = 0;
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<uint8_t>(text[i]);
        if (byte >= 0x20 && byte != '"' && byte != '\\') continue;
        to += text.substr(written, i - written);
        written = i + 1;
        to += '\\';
        if (byte >= 0x20) {
            to += text[i];
        } else if (byte < SHORT.size() && SHORT[byte] != '.') {
            to += SHORT[byte];
        } else {
            ((to += "u00") += HEX[byte >> 4]) += HEX[byte & 15];
        }
    }
    to += text.substr(written);
}

}  // namespace paperwasp
