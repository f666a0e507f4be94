// What kernels read of the index for some lids, which rise.
#pragma once

#include <algorithm>

#include "clock.hpp"
#include "reader.hpp"

namespace paperwasp {

constexpr uint64_t STEPS_OF_LID = 20;  // to look up a document in a posting list

// Calls visit(index in lids, cursor, place in the cursor's block) for the lids with the term.
template <typename Visit>
void visit_lids(const Reader& reader, uint32_t field, uint32_t term, const uint32_t* lids, size_t n, Visit visit) {
    Clock clock;
    size_t from = 0;
    for (const Segment& segment : reader.segments) {
        const size_t to = std::lower_bound(lids + from, lids + n, segment.base + segment.documents) - lids;
        const FieldIndex& field_index = segment.field_indexes[field];
        if (field_index.header != nullptr && from < to) {
            if (const uint32_t place = field_index.find(term); place != NO_INDEX) {
                Cursor cursor(field_index, place);
                for (size_t i = from; i < to && !cursor.exhausted(); ++i) {
                    if (i % BLOCK == 0) clock.spend(8 * BLOCK);
                    const uint32_t at = lids[i] >= segment.base ? cursor.find(lids[i] - segment.base) : NO_INDEX;
                    if (at != NO_INDEX) visit(i, cursor, at);
                }
            }
        }
        from = to;
    }
}

// The length in tokens of a field of each of the lids; 0 where it has none.
inline void read_lengths(const Reader& reader, uint32_t field, const uint32_t* lids, size_t n, int32_t* to) {
    std::fill(to, to + n, 0);
    size_t i = 0;
    for (const Segment& segment : reader.segments) {
        const FieldIndex& field_index = segment.field_indexes[field];
        for (; i < n && lids[i] < segment.base + segment.documents; ++i)
            if (field_index.header != nullptr && lids[i] >= segment.base) to[i] = field_index.field_lengths[lids[i] - segment.base];
    }
}

}  // namespace paperwasp
