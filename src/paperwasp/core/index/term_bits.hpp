// Which documents of a segment have a term, as bits: set from its postings, or copied from a bitmap that is kept.
//
// FrequentTerms keeps the bitmaps of one segment's frequent terms: those that more than one of FREQUENT_SHARE documents has. A bitmap is
// made when a query first needs it, and lives as long as the segment. It can be made from the field index again at any time, so nothing of
// it is written to disk. All bitmaps of the process together stay within a number of bytes that the maker of each object gives; beyond it,
// postings are read as before.
//
// A bitmap is aligned as lids are: bit (lid & 63) of word (lid >> 6), where word 0 is that of the segment's first lid. Bits of lids outside
// of the segment are 0.
//
// What occurrences of a term are worth by nativeRank (rank/native_worths.hpp) is kept beside the bitmaps, within a number of bytes of its
// own.
//
// Threads: any number may ask for bitmaps and worths at once. What is made twice at the same time is kept once.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <shared_mutex>
#include <tuple>
#include <vector>

#include "clock.hpp"
#include "index/field_index.hpp"

namespace paperwasp {

constexpr uint64_t FREQUENT_SHARE = 64;  // setting so many bits one by one takes longer than joining the words of all documents

// The words of a bitmap that has the lids base..base + documents - 1.
inline size_t words_of_lids(uint32_t base, uint32_t documents) { return ((base & 63) + size_t{documents} + 63) / 64; }

// to[i] |= from[i], for n words.
void join_bits(uint64_t* to, const uint64_t* from, size_t n);

// to[i] = a[i] & b[i], for n words. `to` may be one of the others.
void meet_bits(uint64_t* to, const uint64_t* a, const uint64_t* b, size_t n);

// Sets the bits base + documents[i] of `words`, for `count` documents of a block, which ascend.
void set_bits(const uint32_t* documents, uint32_t count, uint32_t base, uint64_t* words);

// Sets the bits of all documents of a posting list. `base`: the bit of the field index's first document.
void set_postings(const FieldIndex& field_index, uint32_t place, uint32_t base, uint64_t* words, Clock& clock);

// By how occurrences count (a number for the tables), field, and place of the term.
using WorthsKey = std::tuple<uint64_t, uint32_t, uint32_t>;

class FrequentTerms {
  public:
    // Of a segment with so many field indexes, one for each field. `most_bytes`: of all bitmaps of the process; `most_worths_bytes`: of all
    // worths. A segment of fewer than `least_documents` keeps none: its postings are read fast enough.
    FrequentTerms(uint32_t base, uint32_t documents, size_t fields, uint64_t most_bytes, uint32_t least_documents,
                  uint64_t most_worths_bytes = 0);
    ~FrequentTerms();
    FrequentTerms(const FrequentTerms&) = delete;
    FrequentTerms& operator=(const FrequentTerms&) = delete;

    uint32_t base() const { return base_; }
    uint32_t documents() const { return documents_; }

    // The bitmap of the term at `place` of the field index of a field; nullptr: it is not kept. Makes it where that is due.
    const uint64_t* find(const FieldIndex& field_index, uint32_t field, uint32_t place, Clock& clock);

    // About how many nanoseconds it takes to set the bits of a term's documents.
    uint64_t steps_of(const FieldIndex& field_index, uint32_t field, uint32_t place);

    // The worths that are kept under a key; nullptr: none are.
    const uint8_t* find_worths(const WorthsKey& key) const;

    // Keeps worths and returns them, or what another thread has kept meanwhile; nullptr: there is no room, and they stay the caller's.
    const uint8_t* keep_worths(const WorthsKey& key, std::unique_ptr<uint8_t[]>& worths, size_t bytes);

    // Bytes of all bitmaps, and of all worths, of the process.
    static uint64_t bytes_kept();
    static uint64_t worths_bytes_kept();

  private:
    struct Table {
        std::vector<uint32_t> places;  // of the frequent terms, ascending
        std::unique_ptr<std::atomic<uint64_t*>[]> bitmaps;
    };

    bool is_frequent(uint32_t frequency) const { return frequency * FREQUENT_SHARE > documents_; }
    const Table& table_of(const FieldIndex& field_index, uint32_t field);
    std::atomic<uint64_t*>* slot_of(const FieldIndex& field_index, uint32_t field, uint32_t place);  // nullptr: the term is not frequent
    const uint64_t* make(std::atomic<uint64_t*>& kept, const FieldIndex& field_index, uint32_t place, Clock& clock);
    uint64_t bitmap_bytes() const { return words_of_lids(base_, documents_) * sizeof(uint64_t); }

    const uint32_t base_, documents_, least_documents_;
    const size_t fields_;
    const uint64_t most_bytes_, most_worths_bytes_;
    std::unique_ptr<std::atomic<Table*>[]> tables_;  // by field
    mutable std::shared_mutex worths_lock_;          // of `worths_` and their bytes
    std::map<WorthsKey, std::unique_ptr<uint8_t[]>> worths_;
    uint64_t worths_bytes_ = 0;
};

}  // namespace paperwasp
