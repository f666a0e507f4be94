// Reader: all segments of an index as one, for queries. Made once for each published snapshot; immutable after.
//
// A part is a run of consecutive lids; it has one segment for each field that any of its documents has. Parts rise by `base` and do not
// overlap, so a document's lid is its part's base plus its number in the segment.
#pragma once

#include <cstdint>
#include <vector>

#include "core.hpp"
#include "segment.hpp"

namespace paperwasp {

struct Part {
    uint32_t base = 0;
    uint32_t documents = 0;
    std::vector<Segment> segments;  // by field; header == nullptr where no document has the field
};

struct Reader {
    std::vector<Part> parts;
    std::vector<nb::object> owners;  // keep the buffers alive
    uint32_t fields = 0;

    uint32_t limit() const { return parts.empty() ? 0 : parts.back().base + parts.back().documents; }

    // Calls visit(part, segment, place) where the term occurs.
    template <typename Visit>
    void for_each(uint32_t field, uint32_t term, Visit visit) const {
        for (const Part& part : parts) {
            const Segment& segment = part.segments[field];
            if (segment.header == nullptr) continue;
            if (const uint32_t place = segment.find(term); place != NO_INDEX) visit(part, segment, place);
        }
    }
};

inline void check_field(const Reader& reader, uint32_t field) {
    if (field >= reader.fields) throw std::invalid_argument("no such field");
}

// Bits set in both of two bitmaps of n words.
uint64_t count_bits(const uint64_t* a, const uint64_t* b, size_t n);

inline bool accepts(const uint64_t* bitmap, uint32_t lid) { return bitmap == nullptr || (bitmap[lid >> 6] >> (lid & 63) & 1) != 0; }

}  // namespace paperwasp
