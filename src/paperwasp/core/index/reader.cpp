// What queries ask of an index besides the best k: which documents have a term or a phrase, and where in them it stands.
//
// All take lids in rising order and walk each posting list once. Immutable input; the GIL is released.
#include "index/reader.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <optional>

#include <nanobind/stl/optional.h>

#include "arrays.hpp"
#include "clock.hpp"
#include "clones.hpp"
#include "index/phrase.hpp"
#include "index/visit_lids.hpp"

namespace paperwasp {

PAPERWASP_CLONES uint64_t count_bits(const uint64_t* a, const uint64_t* b, size_t n) {
    uint64_t total = 0;
    for (size_t i = 0; i < n; ++i) total += static_cast<uint64_t>(__builtin_popcountll(a[i] & b[i]));
    return total;
}

std::vector<uint32_t> lids_of(const uint64_t* bitmap, size_t n, uint32_t limit) {
    std::vector<uint32_t> lids;
    lids.reserve(count_bits(bitmap, bitmap, n));
    for (size_t w = 0; w < n; ++w)
        for (uint64_t bits = bitmap[w]; bits != 0; bits &= bits - 1) {
            const auto lid = static_cast<uint32_t>(w * 64 + static_cast<size_t>(__builtin_ctzll(bits)));
            if (lid < limit) lids.push_back(lid);
        }
    return lids;
}

namespace {

// segments: a list of (base, documents, [buffer or None for each field], FrequentTerms or None).
std::unique_ptr<Reader> make_reader(const nb::sequence& segments, uint32_t fields) {
    auto reader = std::make_unique<Reader>();
    reader->fields = fields;
    for (nb::handle item : segments) {
        auto described = nb::cast<nb::tuple>(item);
        Segment segment;
        segment.base = nb::cast<uint32_t>(described[0]);
        segment.documents = nb::cast<uint32_t>(described[1]);
        if (segment.documents == 0 || segment.base < reader->limit() || segment.base > 0xFFFFFFF0u - segment.documents)
            throw nb::value_error("segments must rise and not overlap");
        auto buffers = nb::cast<nb::list>(described[2]);
        if (buffers.size() > fields) throw nb::value_error("more field indexes than fields");
        for (nb::handle buffer : buffers) {
            if (buffer.is_none()) {
                segment.field_indexes.emplace_back();
                continue;
            }
            const auto bytes = as_given<uint8_t>(buffer);
            segment.field_indexes.push_back(FieldIndex::open(bytes.data(), bytes.size()));
            if (segment.field_indexes.back().documents() != segment.documents)
                throw nb::value_error("a field index of another size than its segment");
            reader->owners.push_back(nb::borrow(buffer));
        }
        segment.field_indexes.resize(fields);
        if (nb::handle frequent = described[3]; !frequent.is_none()) {
            segment.frequent = nb::cast<FrequentTerms*>(frequent);
            if (segment.frequent->base() != segment.base || segment.frequent->documents() != segment.documents)
                throw nb::value_error("frequent terms of another segment");
            reader->owners.push_back(nb::borrow(frequent));
        }
        reader->segments.push_back(std::move(segment));
    }
    return reader;
}

uint64_t document_frequency(const Reader& reader, uint32_t field, uint32_t term) {
    Clock clock;
    check_field(reader, field);
    return reader.frequency(field, term);
}

// Documents with the term that the bitmap accepts.
uint64_t count_accepted(const Reader& reader, uint32_t field, uint32_t term, In<uint64_t> accept) {
    check_field(reader, field);
    if (accept.size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    Clock clock;
    const GilRelease unlocked(is_much(reader.steps_of(field, term)));
    uint64_t total = 0;
    reader.for_each(field, term, [&](const Segment& segment, const FieldIndex& field_index, uint32_t place) {
        if (const uint64_t* kept = segment.kept_bits(field, place, clock)) {
            total += count_bits(kept, accept.data() + (segment.base >> 6), words_of_lids(segment.base, segment.documents));
            return;
        }
        for (Cursor cursor(field_index, place); !cursor.exhausted(); cursor.next_block()) {
            clock.spend(BLOCK);
            const uint32_t* documents = cursor.documents();
            for (uint32_t i = 0, n = cursor.count(); i < n; ++i) total += accepts(accept.data(), segment.base + documents[i]);
        }
    });
    return total;
}

// (documents with the field, tokens in it)
nb::tuple field_statistics(const Reader& reader, uint32_t field) {
    check_field(reader, field);
    uint64_t documents = 0, tokens = 0;
    for (const Segment& segment : reader.segments)
        if (const FieldIndexHeader* header = segment.field_indexes[field].header; header != nullptr) {
            documents += header->documents_with_field;
            tokens += header->tokens;
        }
    return nb::make_tuple(documents, tokens);
}

// Elements of all documents with the field: a single value is one.
uint64_t element_count(const Reader& reader, uint32_t field) {
    check_field(reader, field);
    uint64_t elements = 0;
    for (const Segment& segment : reader.segments)
        if (const FieldIndexHeader* header = segment.field_indexes[field].header; header != nullptr)
            elements += header->elements != 0 ? header->elements : header->documents_with_field;
    return elements;
}

// Of the documents that the bitmap does not accept and that have the field: (documents, tokens, elements). What merging has dropped has no
// length, and so does not count. Words of the bitmap that accept all are skipped: the cost is that of what is not accepted.
nb::tuple unaccepted_statistics(const Reader& reader, uint32_t field, In<uint64_t> accept) {
    check_field(reader, field);
    if (accept.size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    uint64_t documents = 0, tokens = 0, elements = 0;
    {
        const GilRelease unlocked(is_much(reader.limit() / 4));
        for (const Segment& segment : reader.segments) {
            const FieldIndex& field_index = segment.field_indexes[field];
            if (field_index.header == nullptr) continue;
            const uint32_t end = segment.base + segment.documents;
            for (uint32_t lid = segment.base; lid < end;) {
                const uint64_t left = ~accept.data()[lid >> 6] >> (lid & 63);
                if (left == 0) {
                    lid = (lid | 63) + 1;
                    continue;
                }
                lid += static_cast<uint32_t>(__builtin_ctzll(left));
                if (lid >= end) break;
                const uint32_t document = lid - segment.base;
                ++lid;
                if (field_index.field_lengths[document] == 0) continue;
                ++documents;
                tokens += field_index.field_lengths[document];
                if (field_index.element_starts == nullptr) {
                    ++elements;
                } else {
                    const auto [first, last] = field_index.elements_of(document);
                    elements += last - first;
                }
            }
        }
    }
    return nb::make_tuple(documents, tokens, elements);
}

// Sets the bits of all documents with the term, by lid.
void set_term(const Reader& reader, uint32_t field, uint32_t term, uint64_t* words, Clock& clock) {
    reader.for_each(field, term,
                    [&](const Segment& segment, const FieldIndex&, uint32_t place) { segment.set_term(field, place, words, clock); });
}

// Sets the bit of every document with the term.
void match(const Reader& reader, uint32_t field, uint32_t term, Out<uint64_t> bitmap) {
    check_field(reader, field);
    if (bitmap.size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    Clock clock;
    const GilRelease unlocked(is_much(reader.steps_of(field, term)));
    set_term(reader, field, term, bitmap.data(), clock);
}

// Occurrences of the term in each of the lids: 0 where it is not.
void occurrences(const Reader& reader, uint32_t field, uint32_t term, In<uint32_t> lids, Out<int32_t> to) {
    check_field(reader, field);
    if (to.size() != lids.size()) throw nb::value_error("one result for each lid");
    const GilRelease unlocked(is_much(STEPS_OF_LID * lids.size()));
    read_occurrences(reader, field, term, lids.data(), lids.size(), to.data());
}

// Where the term stands in each of the lids: (offsets[lids + 1], positions).
nb::tuple positions(const Reader& reader, uint32_t field, uint32_t term, In<uint32_t> lids) {
    check_field(reader, field);
    const size_t n = lids.size();
    auto offsets = std::make_unique<std::vector<uint32_t>>(n + 1, 0);
    auto values = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(is_much(STEPS_OF_LID * n));
        size_t done = 0;
        visit_lids(reader, field, term, lids.data(), n, [&](size_t i, Cursor& cursor, uint32_t at) {
            for (; done <= i; ++done) (*offsets)[done] = static_cast<uint32_t>(values->size());
            const size_t before = values->size();
            values->resize(before + cursor.frequencies()[at]);
            cursor.positions(at, values->data() + before);
        });
        for (; done <= n; ++done) (*offsets)[done] = static_cast<uint32_t>(values->size());
    }
    return nb::make_tuple(own(std::move(offsets)), own(std::move(values)));
}

void field_lengths(const Reader& reader, uint32_t field, In<uint32_t> lids, Out<int32_t> to) {
    check_field(reader, field);
    if (to.size() != lids.size()) throw nb::value_error("one result for each lid");
    const GilRelease unlocked(is_much(STEPS_OF_LID * lids.size()));
    read_lengths(reader, field, lids.data(), lids.size(), to.data());
}

// Of a document's position, its element.
struct Place {
    uint32_t element, start, end;
    int32_t weight;
};

// Calls visit for the positions [from, to) of a document, which rise.
template <typename Visit>
void locate_in(const FieldIndex& field_index, uint32_t document, const uint32_t* from, const uint32_t* to, Visit visit) {
    if (field_index.element_starts == nullptr) {
        for (; from < to; ++from) visit(Place{0, 0, field_index.field_lengths[document], 1});
        return;
    }
    const auto [first, last] = field_index.elements_of(document);
    uint32_t e = first;
    for (; from < to; ++from) {
        e = static_cast<uint32_t>(std::upper_bound(field_index.element_ends + e, field_index.element_ends + last, *from) -
                                  field_index.element_ends);
        if (e == last) throw std::invalid_argument("a position beyond the document's elements");
        const uint32_t start = e > first ? field_index.element_ends[e - 1] + ELEMENT_GAP : 0;
        visit(Place{e - first, start, field_index.element_ends[e],
                    field_index.element_weights != nullptr ? field_index.element_weights[e] : 1});
    }
}

// In which element each position stands: (element numbers from 0, where these start, where they end, their weights). Lid i has
// positions[offsets[i]..offsets[i + 1]], rising. A field of single values has one element, of weight 1.
nb::tuple locate(const Reader& reader, uint32_t field, In<uint32_t> lids, In<uint32_t> offsets, In<uint32_t> positions) {
    Clock clock;
    check_field(reader, field);
    if (offsets.size() != lids.size() + 1) throw nb::value_error("one offset for each lid, and one more");
    auto elements = std::make_unique<std::vector<uint32_t>>(positions.size(), 0);
    auto starts = std::make_unique<std::vector<uint32_t>>(positions.size(), 0);
    auto ends = std::make_unique<std::vector<uint32_t>>(positions.size(), 0);
    auto weights = std::make_unique<std::vector<int32_t>>(positions.size(), 1);
    {
        const GilRelease unlocked(is_much(4 * positions.size()));
        size_t i = 0;
        for (const Segment& segment : reader.segments) {
            const FieldIndex& field_index = segment.field_indexes[field];
            for (; i < lids.size() && lids.data()[i] < segment.base + segment.documents; ++i) {
                const uint32_t from = offsets.data()[i], to = offsets.data()[i + 1];
                if (field_index.header == nullptr || lids.data()[i] < segment.base || from >= to) continue;
                if (to > positions.size()) throw std::invalid_argument("offsets beyond the positions");
                clock.spend(4 * int64_t{to - from});
                size_t at = from;
                locate_in(field_index, lids.data()[i] - segment.base, positions.data() + from, positions.data() + to,
                          [&](const Place& place) {
                              (*elements)[at] = place.element;
                              (*starts)[at] = place.start;
                              (*ends)[at] = place.end;
                              (*weights)[at++] = place.weight;
                          });
            }
        }
    }
    return nb::make_tuple(own(std::move(elements)), own(std::move(starts)), own(std::move(ends)), own(std::move(weights)));
}

// Documents with the words next to each other, in order: (lids, offsets[lids + 1], positions of the first word).
nb::tuple phrase(const Reader& reader, uint32_t field, In<uint32_t> terms, const std::optional<In<uint64_t>>& accept) {
    check_field(reader, field);
    if (terms.size() == 0) throw nb::value_error("a phrase needs words");
    if (accept && accept->size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    auto lids = std::make_unique<std::vector<uint32_t>>();
    auto offsets = std::make_unique<std::vector<uint32_t>>(1, 0);
    auto values = std::make_unique<std::vector<uint32_t>>();
    {
        const GilRelease unlocked(is_much(steps_of_phrase(reader, field, terms.data(), terms.size())));
        find_phrase(reader, field, terms.data(), terms.size(), accept ? accept->data() : nullptr, {*lids, *offsets, *values});
    }
    return nb::make_tuple(own(std::move(lids)), own(std::move(offsets)), own(std::move(values)));
}

// The set bits of a bitmap below `limit`, rising.
nb::object bitmap_lids(In<uint64_t> bitmap, uint32_t limit) {
    auto lids = std::make_unique<std::vector<uint32_t>>();
    const uint64_t* words = bitmap.data();
    const size_t n = std::min<size_t>(bitmap.size(), (static_cast<size_t>(limit) + 63) / 64);
    {
        const GilRelease unlocked(is_much(n + count_bits(words, words, n)));
        *lids = lids_of(words, n, limit);
    }
    return own(std::move(lids));
}

// Whether a bitmap has each of some lids.
nb::object bitmap_has(In<uint64_t> bitmap, In<uint32_t> lids) {
    auto has = std::make_unique<std::vector<uint8_t>>(lids.size());
    const uint64_t* words = bitmap.data();
    const uint32_t* lid = lids.data();
    for (size_t i = 0; i < lids.size(); ++i) {
        if (lid[i] / 64 >= bitmap.size()) throw nb::value_error("a document beyond the bitmap");
        (*has)[i] = words[lid[i] / 64] >> (lid[i] % 64) & 1;
    }
    return own(std::move(has));
}

// Set bits in both bitmaps.
uint64_t bitmap_count(In<uint64_t> a, In<uint64_t> b) { return count_bits(a.data(), b.data(), std::min(a.size(), b.size())); }

}  // namespace

namespace {

// The accepted documents of a segment that have all the terms of which a bitmap is kept, from the word of its first document on; nullptr:
// all. May write them to `words`.
const uint64_t* documents_with_all(const Segment& segment, uint32_t field, const std::vector<uint32_t>& places, const uint64_t* accept,
                                   std::vector<uint64_t>& words, Clock& clock) {
    const size_t n = words_of_lids(segment.base, segment.documents);
    const uint64_t* met = accept != nullptr ? accept + (segment.base >> 6) : nullptr;
    for (const uint32_t place : places) {
        const uint64_t* kept = segment.kept_bits(field, place, clock);
        if (kept == nullptr) continue;
        if (met == nullptr) {
            met = kept;
            continue;
        }
        if (words.size() < n) words.resize(n);
        meet_bits(words.data(), met, kept, n);
        met = words.data();
    }
    return met;
}

}  // namespace

uint64_t steps_of_phrase(const Reader& reader, uint32_t field, const uint32_t* terms, size_t count) {
    uint64_t least = std::numeric_limits<uint64_t>::max();  // documents with the rarest word
    for (size_t i = 0; i < count; ++i) least = std::min(least, reader.frequency(field, terms[i]));
    return STEPS_OF_LID * count * least;
}

void find_phrase(const Reader& reader, uint32_t field, const uint32_t* terms, size_t count, const uint64_t* accept, PhraseFinds finds) {
    Clock clock;
    for (const Segment& segment : reader.segments) {
        const FieldIndex& field_index = segment.field_indexes[field];
        if (field_index.header == nullptr) continue;
        std::vector<uint32_t> places;
        for (size_t i = 0; i < count; ++i) {
            const uint32_t place = field_index.find(terms[i]);
            if (place != NO_INDEX) places.push_back(place);
        }
        if (places.size() < count) continue;
        PhraseInField in_field(field_index, places, clock);
        thread_local std::vector<uint64_t> words;
        const uint64_t* met = documents_with_all(segment, field, places, accept, words, clock);
        const uint32_t first = segment.base & 63;
        in_field.run([&](uint32_t document) { return accepts(met, first + document); }, segment.base, finds);
    }
}

void bind_reader(nb::module_& m) {
    nb::class_<Reader>(m, "Reader")
        .def(
            "__init__",
            [](Reader* self, const nb::sequence& segments, uint32_t fields) {
                new (self) Reader(std::move(*make_reader(segments, fields)));
            },
            nb::arg("segments"), nb::arg("fields"))
        .def_prop_ro("limit", &Reader::limit);
    m.def("document_frequency", &document_frequency, nb::arg("reader"), nb::arg("field"), nb::arg("term"));
    m.def("count_accepted", &count_accepted, nb::arg("reader"), nb::arg("field"), nb::arg("term"), nb::arg("accept"));
    m.def("field_statistics", &field_statistics, nb::arg("reader"), nb::arg("field"));
    m.def("element_count", &element_count, nb::arg("reader"), nb::arg("field"));
    m.def("unaccepted_statistics", &unaccepted_statistics, nb::arg("reader"), nb::arg("field"), nb::arg("accept"));
    m.def("match", &match, nb::arg("reader"), nb::arg("field"), nb::arg("term"), nb::arg("bitmap").noconvert());
    m.def("occurrences", &occurrences, nb::arg("reader"), nb::arg("field"), nb::arg("term"), nb::arg("lids"), nb::arg("to").noconvert());
    m.def("positions", &positions, nb::arg("reader"), nb::arg("field"), nb::arg("term"), nb::arg("lids"));
    m.def("field_lengths", &field_lengths, nb::arg("reader"), nb::arg("field"), nb::arg("lids"), nb::arg("to").noconvert());
    m.def("phrase", &phrase, nb::arg("reader"), nb::arg("field"), nb::arg("terms"), nb::arg("accept").none());
    m.def("locate", &locate, nb::arg("reader"), nb::arg("field"), nb::arg("lids"), nb::arg("offsets"), nb::arg("positions"));
    m.def("bitmap_has", &bitmap_has, nb::arg("bitmap").noconvert(), nb::arg("lids").noconvert());
    m.def("bitmap_lids", &bitmap_lids, nb::arg("bitmap"), nb::arg("limit"));
    m.def("bitmap_count", &bitmap_count, nb::arg("a"), nb::arg("b"));
}

}  // namespace paperwasp
