// What kernels read of the index for some lids, which rise.
#pragma once

#include <algorithm>

#include "clock.hpp"
#include "index/reader.hpp"

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

// How often the term is in a field of each of the lids; 0 where it is not. Where the lids of a whole block of postings stand together, as
// they do of a query's only word, nothing is looked up.
inline void read_occurrences(const Reader& reader, uint32_t field, uint32_t term, const uint32_t* lids, size_t n, int32_t* to) {
    std::fill(to, to + n, 0);
    Clock clock;
    size_t i = 0;
    for (const Segment& segment : reader.segments) {
        const size_t end = std::lower_bound(lids + i, lids + n, segment.base + segment.documents) - lids;
        const FieldIndex& field_index = segment.field_indexes[field];
        const uint32_t place = field_index.header != nullptr && i < end ? field_index.find(term) : NO_INDEX;
        if (place == NO_INDEX) {
            i = end;
            continue;
        }
        i = std::lower_bound(lids + i, lids + end, segment.base) - lids;
        Cursor cursor(field_index, place);
        while (i < end) {
            cursor.shallow_seek(lids[i] - segment.base);
            if (cursor.exhausted()) break;
            clock.spend(2 * BLOCK);
            const uint32_t count = cursor.count(), last = cursor.last_of(cursor.block());
            if (end - i >= count && lids[i + count - 1] - segment.base == last) {
                const uint32_t* documents = cursor.documents();
                uint32_t differs = 0;
                for (uint32_t k = 0; k < count; ++k) differs |= documents[k] ^ (lids[i + k] - segment.base);
                if (differs == 0) {
                    const uint32_t* frequencies = cursor.frequencies();
                    for (uint32_t k = 0; k < count; ++k) to[i + k] = static_cast<int32_t>(frequencies[k]);
                    i += count;
                    continue;
                }
            }
            for (; i < end && lids[i] - segment.base <= last; ++i) {
                const uint32_t at = cursor.find(lids[i] - segment.base);
                if (at != NO_INDEX) to[i] = static_cast<int32_t>(cursor.frequencies()[at]);
            }
        }
        i = end;
    }
}

// The length in tokens of a field of each of the lids; 0 where it has none.
inline void read_lengths(const Reader& reader, uint32_t field, const uint32_t* lids, size_t n, int32_t* to) {
    std::fill(to, to + n, 0);
    size_t i = 0;
    for (const Segment& segment : reader.segments) {
        const FieldIndex& field_index = segment.field_indexes[field];
        const size_t end = std::lower_bound(lids + i, lids + n, segment.base + segment.documents) - lids;
        if (field_index.header != nullptr) {
            i = std::lower_bound(lids + i, lids + end, segment.base) - lids;
            for (; i < end; ++i) to[i] = field_index.field_lengths[lids[i] - segment.base];
        }
        i = end;
    }
}

}  // namespace paperwasp
