// WordCharacters: which characters words consist of.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <vector>

#include "core.hpp"
#include "utf8.hpp"

namespace paperwasp {

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
