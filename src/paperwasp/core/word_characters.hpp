// WordCharacters: which characters words consist of, and strict reading of UTF-8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core.hpp"

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

inline bool is_ascii_word(uint8_t byte) {
    return (byte >= '0' && byte <= '9') || (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z');
}

// Immutable once built: any thread.
class WordCharacters {
  public:
    // `ranges`: the first and the last character of each range, one pair after the other.
    explicit WordCharacters(In<uint32_t> ranges) : bits_(CHARACTERS / 64) {
        if (ranges.size() % 2 != 0) throw std::invalid_argument("a range has a first and a last character");
        for (size_t i = 0; i < ranges.size(); i += 2) {
            const uint32_t first = ranges.data()[i], last = ranges.data()[i + 1];
            if (first > last || last >= CHARACTERS) throw std::invalid_argument("a range of no characters");
            for (uint32_t c = first; c <= last; ++c) bits_[c >> 6] |= uint64_t{1} << (c & 63);
        }
    }

    bool has(uint32_t character) const { return character < CHARACTERS && (bits_[character >> 6] >> (character & 63) & 1) != 0; }

  private:
    std::vector<uint64_t> bits_;  // a bit for each character
};

}  // namespace paperwasp
