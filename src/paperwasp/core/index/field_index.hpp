// FieldIndex: the immutable inverted index of one field over a run of consecutive lids. docs/internals/formats/field-index.md has a worked
// example.
//
// One flat buffer, read in place (in memory or mapped from a file), 8-byte aligned sections, little-endian. Documents are numbered from 0
// within the field index. A term's postings are blocks of 64 documents; each block keeps its last document, the largest BM25 weight in it
// (tf · (k1 + 1) / (tf + k1 · (1 − b + b · length / average)), computed with the average at build time) and where its bytes are. The last
// block may be shorter. A term of one block has no block entries: its only bound is the term's.
//
// Invariants: terms rise; documents rise within a term; last_document and max_weight agree with the packed postings. `FieldIndex::open`
// checks that the sections fit the buffer, which is cheap. What else readers rely on to stay inside it is checked once, of a file that is
// opened: field_index_check.cpp.
//
// Threads: immutable after it is built; any number of readers.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <utility>
#include <vector>

#include "index/bitpack.hpp"

namespace paperwasp {

constexpr uint64_t FIELD_INDEX_MAGIC = 0x3230677365737077ull;  // "pwsseg02"
constexpr uint32_t NO_INDEX = 0xFFFFFFFFu;
constexpr uint32_t CHAMPIONS = 16;            // best documents kept for each long term
constexpr uint32_t CHAMPION_FREQUENCY = 128;  // terms in fewer documents have none
constexpr uint32_t ELEMENT_GAP = 100;         // positions between the elements of a field: no phrase crosses it
constexpr float DEFAULT_K1 = 1.2f, DEFAULT_B = 0.75f;

enum Section : uint32_t {
    FIELD_LENGTHS,     // u16[documents]: tokens, at most 65535; 0: the document does not have the field
    TERMS,             // u32[terms]: ids of the lexicon, rising
    FREQUENCIES,       // u32[terms]: documents with the term
    STARTS,            // u64[terms + 1]: offset of the term's first block in POSTINGS
    POSITION_STARTS,   // u64[terms + 1]: the same in POSITIONS
    MAX_WEIGHTS,       // f32[terms]
    BLOCK_STARTS,      // u32[terms]: first of the term's entries in the BLOCK_ sections; NO_INDEX where it has one block only
    CHAMPION_STARTS,   // u32[terms]: first of the term's CHAMPIONS entries; NO_INDEX where it has none
    BLOCK_LAST,        // u32[blocks]: last document of the block
    BLOCK_WEIGHTS,     // f32[blocks]: largest weight in the block
    BLOCK_OFFSETS,     // u32[blocks]: offset of the block from the term's start in POSTINGS
    BLOCK_POSITIONS,   // u32[blocks]: the same in POSITIONS
    CHAMPION_WEIGHTS,  // f32[champions]: falling within a term
    CHAMPION_DOCS,     // u32[champions]
    ELEMENT_STARTS,    // u32[documents + 1]: first of the document's elements; empty in a field of single values, as the next two
    ELEMENT_ENDS,      // u32[elements]: the position after the element's last token; the next element begins ELEMENT_GAP after it
    ELEMENT_WEIGHTS,   // i32[elements]; empty where all weigh 1
    POSTINGS,          // bytes
    POSITIONS,         // bytes
    SECTIONS
};

struct FieldIndexHeader {
    uint64_t magic;
    uint32_t documents;
    uint32_t documents_with_field;
    uint64_t tokens;
    uint32_t terms;
    uint32_t blocks;
    uint32_t champions;
    uint32_t elements;      // 0: of single values
    double average_length;  // that the weights were computed with
    uint64_t offsets[SECTIONS + 1];
};

inline float bm25_norm(float length, float average_length) { return DEFAULT_K1 * (1 - DEFAULT_B + DEFAULT_B * length / average_length); }

inline float bm25_weight(float frequency, float norm) { return frequency * (DEFAULT_K1 + 1) / (frequency + norm); }

inline float bm25_weight(float frequency, float length, float average_length) {
    return bm25_weight(frequency, bm25_norm(length, average_length));
}

inline uint32_t blocks_of(uint32_t frequency) { return (frequency + BLOCK - 1) / BLOCK; }

// A field index opened for reading: pointers into its buffer.
struct FieldIndex {
    const FieldIndexHeader* header = nullptr;
    const uint16_t* field_lengths = nullptr;
    const uint32_t *terms = nullptr, *frequencies = nullptr, *block_starts = nullptr, *champion_starts = nullptr;
    const uint64_t *starts = nullptr, *position_starts = nullptr;
    const float *max_weights = nullptr, *block_weights = nullptr, *champion_weights = nullptr;
    const uint32_t *block_last = nullptr, *block_offsets = nullptr, *block_positions = nullptr, *champion_docs = nullptr;
    const uint32_t *element_starts = nullptr, *element_ends = nullptr;  // nullptr: of single values
    const int32_t* element_weights = nullptr;                           // nullptr: all weigh 1
    const uint8_t *postings = nullptr, *positions = nullptr;

    // Throws std::invalid_argument if the buffer cannot be a field index.
    static FieldIndex open(const uint8_t* bytes, size_t size);

    uint32_t documents() const { return header->documents; }

    // The elements [first, second) of a document, in a field that has elements. Within bounds even in a damaged field index.
    std::pair<uint32_t, uint32_t> elements_of(uint32_t document) const {
        const uint32_t to = std::min(element_starts[document + 1], header->elements);
        return {std::min(element_starts[document], to), to};
    }

    // The place of a term id among `terms`, or NO_INDEX.
    uint32_t find(uint32_t term) const;
};

// The elements of a field of many values, document after document. Empty: of single values.
struct Elements {
    std::vector<uint32_t> starts;  // [documents + 1]
    std::vector<uint32_t> ends;
    std::vector<int32_t> weights;  // empty: all weigh 1
};

// Collects the postings of a field_index, term by term, and writes the buffer.
class FieldIndexBuilder {
  public:
    FieldIndexBuilder(const uint16_t* field_lengths, uint32_t documents, double average_length);

    void begin_term(uint32_t term);
    // One document of the term. Documents rise. `positions` rise, one for each occurrence.
    void add(uint32_t document, const uint32_t* positions, uint32_t frequency);
    void end_term();
    std::vector<uint8_t> finish(const Elements& elements = {});

  private:
    void flush_block(bool last);

    const uint16_t* lengths_;
    uint32_t documents_;
    double average_length_;
    std::vector<float> length_norms_;  // by document
    uint32_t frequency_ = 0, previous_ = 0, buffered_ = 0;
    uint32_t block_documents_[BLOCK], block_frequencies_[BLOCK];
    std::vector<uint32_t> block_position_values_;
    struct Champion {
        float weight;
        uint32_t document;
    };
    std::vector<Champion> weights_;  // of the term's documents
    std::vector<uint32_t> terms_, frequencies_, block_starts_, champion_starts_, block_last_, block_offsets_, block_positions_,
        champion_docs_;
    std::vector<uint64_t> starts_, position_starts_;
    std::vector<float> max_weights_, block_weights_, champion_weights_;
    std::vector<uint8_t> postings_, positions_;
};

// A posting list in memory, unpacked, of documents of one field index: of what is found by a query and is no term of the field index.
struct PlainPostings {
    std::vector<uint32_t> documents, frequencies;
    std::vector<uint32_t> block_last;
    std::vector<float> block_weights;
    float max_weight = 0;

    void reserve(size_t count);
    // Documents ascend; each has the field, in which it has lengths[document] tokens.
    void add(uint32_t document, uint32_t frequency, const uint16_t* lengths, double average_length);
};

// A cursor over one term's postings in one field index: decodes a block at a time. Copies are cheap only before the first decode.
class Cursor {
  public:
    Cursor() = default;
    Cursor(const FieldIndex& field_index, uint32_t place);
    // Without positions. The postings are not empty.
    explicit Cursor(const PlainPostings& postings);

    uint32_t frequency() const { return frequency_; }
    uint32_t block_count() const { return blocks_; }
    uint32_t block() const { return block_; }
    bool exhausted() const { return block_ >= blocks_; }

    // Bounds of block number b.
    uint32_t last_of(uint32_t b) const { return last_ != nullptr ? last_[b] : single_last_; }
    float weight_of(uint32_t b) const { return weight_ != nullptr ? weight_[b] : max_weight_; }
    float max_weight() const { return max_weight_; }

    // Moves to the first block whose last document is at least `document`, without decoding it.
    void shallow_seek(uint32_t document);

    // Documents, or frequencies, of the current block; `count()` of them.
    uint32_t count() const { return block_ + 1 < blocks_ ? BLOCK : frequency_ - (blocks_ - 1) * BLOCK; }
    const uint32_t* documents();
    const uint32_t* frequencies();

    void next_block() { ++block_; }
    void return_to(uint32_t block) { block_ = block; }

    // The place of `document` in the current block after seeking there, or NO_INDEX. Documents must be asked for in rising order.
    uint32_t find(uint32_t document);

    // Where in the positions of the current block those of each document begin, and where the last ends.
    const uint32_t* occurrence_starts() {
        if (counted_block_ != block_) count_occurrences();
        return occurrence_starts_;
    }

    // Writes the positions of occurrence list `index` of the current block to `to` (frequencies()[index] of them).
    void positions(uint32_t index, uint32_t* to);

    // Bits of a position in the current block.
    uint32_t position_width() const { return position_run()[0]; }

    // The positions of the current block: bits of each, and then the run of them.
    const uint8_t* position_run() const { return position_bytes_ + (position_offsets_ != nullptr ? position_offsets_[block_] : 0); }

    // Writes the positions of all documents of the current block to `to`, which has room for RUN_GROUP more.
    void block_positions(uint32_t* to);

  private:
    void decode_documents();
    void decode_frequencies();
    void count_occurrences();

    const PlainPostings* plain_ = nullptr;
    const uint8_t *bytes_ = nullptr, *position_bytes_ = nullptr;
    const uint32_t *last_ = nullptr, *offsets_ = nullptr, *position_offsets_ = nullptr;
    const float* weight_ = nullptr;
    float max_weight_ = 0;
    uint32_t single_last_ = 0;
    uint32_t frequency_ = 0, blocks_ = 0, block_ = 0;
    uint32_t decoded_documents_ = NO_INDEX, decoded_frequencies_ = NO_INDEX, counted_block_ = NO_INDEX;
    alignas(32) uint32_t document_values_[BLOCK + 4];
    alignas(32) uint32_t frequency_values_[BLOCK + 4];
    uint32_t occurrence_starts_[BLOCK + 1];
};

}  // namespace paperwasp
