// Whether a field index is what a builder makes: all that readers rely on to stay inside its buffer, and to find what is there.
//
// Asked once of every file that is opened; a checksum guards it before, so that what is found here was written so. Reads all postings,
// and of positions how many there are: about a nanosecond a posting.
#include <cmath>
#include <stdexcept>
#include <string>

#include "core.hpp"
#include "index/field_index.hpp"

namespace paperwasp {
namespace {

void require(bool holds, const char* what, uint32_t number) {
    if (!holds) throw std::invalid_argument("a damaged field index: " + std::string(what) + ", number " + std::to_string(number));
}

// Bytes of a term in one of the sections.
struct Extent {
    uint64_t from, to;
    bool has(uint64_t offset, uint64_t size) const { return offset <= to - from && size <= to - from - offset; }
};

Extent extent(const uint64_t* starts, uint32_t term, uint64_t section_bytes) {
    require(starts[term] <= starts[term + 1] && starts[term + 1] <= section_bytes, "the bytes of a term", term);
    return {starts[term], starts[term + 1]};
}

uint64_t bytes_of_run(uint64_t count, uint32_t width) { return (count * width + 7) / 8; }

// The blocks of one term: they stay in its bytes, and their documents rise below the number of all.
void check_blocks(const FieldIndex& s, uint32_t term, const Extent& postings, const Extent& positions) {
    const uint32_t frequency = s.frequencies[term], blocks = blocks_of(frequency), start = s.block_starts[term];
    const bool single = start == NO_INDEX;
    require(frequency > 0 && frequency <= s.documents(), "the frequency of a term", term);
    require(single ? blocks == 1 : start <= s.header->blocks && blocks <= s.header->blocks - start, "the blocks of a term", term);
    Cursor cursor(s, term);
    uint32_t last = 0;
    for (bool first = true; !cursor.exhausted(); cursor.next_block()) {
        const uint32_t at = cursor.block(), count = cursor.count();
        const uint64_t offset = single ? 0 : s.block_offsets[start + at], places = single ? 0 : s.block_positions[start + at];
        require(postings.has(offset, 2) && positions.has(places, 1), "a block of a term", term);
        const uint8_t* bytes = s.postings + postings.from + offset;
        const uint32_t gaps = bytes[0], counts = bytes[1], width = s.positions[positions.from + places];
        require(gaps <= 32 && counts <= 32 && width <= 32, "the widths in a block of a term", term);
        const uint64_t size = count == BLOCK ? uint64_t{full_block_bytes(gaps)} + full_block_bytes(counts)
                                             : bytes_of_run(count, gaps) + bytes_of_run(count, counts);
        require(postings.has(offset, 2 + size), "the size of a block of a term", term);
        const uint32_t* documents = cursor.documents();
        const uint32_t* frequencies = cursor.frequencies();
        uint64_t occurrences = 0;
        for (uint32_t i = 0; i < count; ++i) {
            require((first || documents[i] > last) && documents[i] < s.documents(), "the documents of a term", term);
            require(frequencies[i] > 0, "the occurrences of a term", term);
            last = documents[i];
            first = false;
            occurrences += frequencies[i];
        }
        require(occurrences <= 0xFFFFFFFFu && positions.has(places, 1 + bytes_of_run(occurrences, width)), "the positions of a term", term);
        require(single || s.block_last[start + at] == last, "the last document of a block of a term", term);
    }
}

void check_champions(const FieldIndex& s, uint32_t term) {
    const uint32_t start = s.champion_starts[term], all = s.header->champions;
    if (start == NO_INDEX) return;
    require(start <= all && CHAMPIONS <= all - start, "the champions of a term", term);
    for (uint32_t i = start; i < start + CHAMPIONS; ++i) require(s.champion_docs[i] < s.documents(), "the champions of a term", term);
}

void check_elements(const FieldIndex& s) {
    if (s.element_starts == nullptr) return;
    require(s.element_starts[0] == 0 && s.element_starts[s.documents()] == s.header->elements, "the elements of all documents", 0);
    for (uint32_t d = 0; d < s.documents(); ++d) {
        require(s.element_starts[d] <= s.element_starts[d + 1] && s.element_starts[d + 1] <= s.header->elements,
                "the elements of a document", d);
        for (uint32_t e = s.element_starts[d] + 1; e < s.element_starts[d + 1]; ++e)
            require(s.element_ends[e - 1] <= s.element_ends[e], "the ends of elements of a document", d);
    }
}

using Buffer = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

void check_field_index(Buffer buffer) {
    const Unlocked unlocked;
    const FieldIndex s = FieldIndex::open(buffer.data(), buffer.size());
    const FieldIndexHeader& header = *s.header;
    require(std::isfinite(header.average_length) && header.average_length > 0, "the average length", 0);
    for (uint32_t term = 0; term < header.terms; ++term) {
        require(term == 0 || s.terms[term - 1] < s.terms[term], "the terms rise", term);
        const Extent postings = extent(s.starts, term, header.offsets[POSTINGS + 1] - header.offsets[POSTINGS]);
        const Extent positions = extent(s.position_starts, term, header.offsets[POSITIONS + 1] - header.offsets[POSITIONS]);
        check_blocks(s, term, postings, positions);
        check_champions(s, term);
    }
    check_elements(s);
}

}  // namespace

void bind_field_index_check(nb::module_& m) {
    m.def("check_field_index", &check_field_index, nb::arg("field_index").noconvert(),
          "Raises ValueError unless the field_index is whole.");
}

}  // namespace paperwasp
