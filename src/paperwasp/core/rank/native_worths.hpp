// What the occurrences of a term in one field are worth by nativeFieldMatch, in a byte for each document, rounded up: the bounds that the
// search for the best by nativeRank adds up.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "clock.hpp"
#include "index/reader.hpp"
#include "rank/native_query.hpp"

namespace paperwasp {

constexpr uint32_t WORTH_STEPS = 254;            // the byte of the highest worth is one more: rounded up, none is 0
constexpr uint32_t KEPT_WORTHS_FREQUENCY = 128;  // of terms in fewer documents they are not kept: they are soon worked out
constexpr int64_t STEPS_OF_WORTH = 16;           // nanoseconds that one takes

// The worth of the byte 1, in what an occurrence can be worth in the field, whose tables are positive.
inline double worth_step(const NativeField& field) { return field.worth(field.first.most, field.count.most) / WORTH_STEPS; }

// A number for all that says how occurrences in a field count.
uint64_t worths_number(const NativeField& field);

// A byte for each document of a posting list, in its order, and then the highest of them.
class NativeWorths {
  public:
    // Of a term, kept in the segment where there is room.
    NativeWorths(const NativeField& field, uint64_t number, const Segment& segment, uint32_t place, Clock& clock);
    // Of what was found: documents lids[first..last) of the segment, or of none, at their positions.
    NativeWorths(const NativeField& field, const Segment* segment, const uint32_t* lids, const uint32_t* offsets, const uint32_t* positions,
                 size_t first, size_t last);

    const uint8_t* bytes() const { return bytes_; }
    uint8_t highest() const { return bytes_[size_]; }

  private:
    const uint8_t* bytes_ = nullptr;
    size_t size_ = 0;
    std::unique_ptr<uint8_t[]> own_;
};

}  // namespace paperwasp
