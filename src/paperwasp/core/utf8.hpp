// Strict reading of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paperwasp {

constexpr uint32_t NO_CHARACTER = 0xFFFFFFFFu;
constexpr uint32_t CHARACTERS = 0x110000;

// The character that begins at `at`, which moves behind it; NO_CHARACTER, and `at` stays, where the bytes are not UTF-8: cut short,
// longer than they need be, half of a surrogate pair, or beyond the last character. at < end.
inline uint32_t read_character(const char*& at, const char* end) {
    const auto byte = [&](ptrdiff_t i) { return static_cast<uint32_t>(static_cast<uint8_t>(at[i])); };
    const uint32_t first = byte(0);
    if (first < 0x80) {
        ++at;
        return first;
    }
    const ptrdiff_t length = first < 0xC2 ? 0 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : first < 0xF5 ? 4 : 0;
    if (length == 0 || end - at < length) return NO_CHARACTER;
    uint32_t character = first & (0x7Fu >> length);
    for (ptrdiff_t i = 1; i < length; ++i) {
        if ((byte(i) & 0xC0) != 0x80) return NO_CHARACTER;
        character = character << 6 | (byte(i) & 0x3F);
    }
    const bool overlong = (length == 3 && character < 0x800) || (length == 4 && character < 0x10000);
    if (overlong || (character >= 0xD800 && character < 0xE000) || character >= CHARACTERS) return NO_CHARACTER;
    at += length;
    return character;
}

}  // namespace paperwasp
