// Reader: all field indexes of an index as one, for queries. Made once for each published snapshot; immutable after.
//
// A segment is a run of consecutive lids; it has one field index for each field that any of its documents has. Segments rise by `base` and
// do not overlap, so a document's lid is its segment's base plus its number in the field index.
#pragma once

#include <cstdint>
#include <vector>

#include "core.hpp"
#include "index/field_index.hpp"
#include "index/term_bits.hpp"

namespace paperwasp {

struct Segment {
    uint32_t base = 0;
    uint32_t documents = 0;
    std::vector<FieldIndex> field_indexes;  // by field; header == nullptr where no document has the field
    FrequentTerms* frequent = nullptr;      // nullptr: no bitmaps are kept

    // Tokens in a field of a document.
    uint32_t length(uint32_t field, uint32_t document) const {
        return field_indexes[field].header == nullptr ? 0 : field_indexes[field].field_lengths[document];
    }

    // The bitmap that is kept of a term, from the word of the segment's first document on; nullptr: there is none.
    const uint64_t* kept_bits(uint32_t field, uint32_t place, Clock& clock) const {
        return frequent == nullptr ? nullptr : frequent->find(field_indexes[field], field, place, clock);
    }

    // Sets the bits of the documents that have a term. `words`: by lid, of the whole index.
    void set_term(uint32_t field, uint32_t place, uint64_t* words, Clock& clock) const {
        if (const uint64_t* kept = kept_bits(field, place, clock))
            join_bits(words + (base >> 6), kept, words_of_lids(base, documents));
        else
            set_postings(field_indexes[field], place, base, words, clock);
    }
};

struct Reader {
    std::vector<Segment> segments;
    std::vector<nb::object> owners;  // keep the buffers alive
    uint32_t fields = 0;

    // Documents with a term, over all segments.
    uint64_t frequency(uint32_t field, uint32_t term) const {
        uint64_t total = 0;
        for_each(field, term,
                 [&](const Segment&, const FieldIndex& field_index, uint32_t place) { total += field_index.frequencies[place]; });
        return total;
    }

    // About how many nanoseconds it takes to set the bits of all documents with a term.
    uint64_t steps_of(uint32_t field, uint32_t term) const {
        uint64_t steps = 0;
        for_each(field, term, [&](const Segment& segment, const FieldIndex& field_index, uint32_t place) {
            steps += segment.frequent != nullptr ? segment.frequent->steps_of(field_index, field, place) : field_index.frequencies[place];
        });
        return steps;
    }

    uint32_t limit() const { return segments.empty() ? 0 : segments.back().base + segments.back().documents; }

    // Calls visit(segment, field_index, place) where the term occurs.
    template <typename Visit>
    void for_each(uint32_t field, uint32_t term, Visit visit) const {
        for (const Segment& segment : segments) {
            const FieldIndex& field_index = segment.field_indexes[field];
            if (field_index.header == nullptr) continue;
            if (const uint32_t place = field_index.find(term); place != NO_INDEX) visit(segment, field_index, place);
        }
    }
};

inline void check_field(const Reader& reader, uint32_t field) {
    if (field >= reader.fields) throw std::invalid_argument("no such field");
}

struct PhraseFinds;

// Finds the accepted documents with `count` words next to each other, in order. Throws OutOfTime. Needs no lock of the interpreter.
void find_phrase(const Reader& reader, uint32_t field, const uint32_t* terms, size_t count, const uint64_t* accept, PhraseFinds finds);

// About how many nanoseconds that takes.
uint64_t steps_of_phrase(const Reader& reader, uint32_t field, const uint32_t* terms, size_t count);

// Bits set in both of two bitmaps of n words.
uint64_t count_bits(const uint64_t* a, const uint64_t* b, size_t n);

// The set bits of a bitmap of n words below `limit`, rising.
std::vector<uint32_t> lids_of(const uint64_t* bitmap, size_t n, uint32_t limit = 0xFFFFFFFFu);

inline bool accepts(const uint64_t* bitmap, uint32_t lid) { return bitmap == nullptr || (bitmap[lid >> 6] >> (lid & 63) & 1) != 0; }

}  // namespace paperwasp
