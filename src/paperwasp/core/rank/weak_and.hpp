// Which documents a weakAnd finds.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "index/reader.hpp"

namespace paperwasp {

constexpr int64_t MOST_WEAK_SCORE = int64_t{1} << 46;  // so that the sum of MOST_WEAK_CHILDREN scores is a number
constexpr size_t MOST_WEAK_CHILDREN = 1u << 16;

// A part of a weakAnd: matches what has one of the words, or is in one of the bitmaps.
struct WeakChild {
    int64_t score = 0;                                 // 0 to MOST_WEAK_SCORE
    std::vector<std::pair<uint32_t, uint32_t>> words;  // (field, term)
    std::vector<const uint64_t*> bitmaps;              // of all documents
};

// How many of the accepted documents are found; their bits are set in `selected`, unless that is nullptr. Bitmaps have so many words.
// Throws OutOfTime. Needs no lock of the interpreter.
uint64_t find_weakly(const Reader& reader, const std::vector<WeakChild>& children, const uint64_t* accept, size_t words, uint32_t target,
                     int64_t threshold, uint64_t* selected, Clock& clock);

}  // namespace paperwasp
