// Making field indexes: from the tokens of a batch of documents, and from several field indexes.
//
// A batch of fed documents becomes a small field index at once, which is what makes it visible; small ones are merged into larger ones, in
// memory first, later on disk. All use the one format, so there is one way to search.
#include <algorithm>
#include <memory>
#include <optional>

#include <nanobind/stl/optional.h>

#include "arrays.hpp"
#include "index/field_index.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t MANY_TOKENS = 1 << 14;  // beyond this, other threads may run meanwhile

struct Occurrence {
    uint32_t term;
    uint32_t token;
};

// Sorts by term, keeping the order of tokens: least significant digit first, 11 bits at a time.
void sort_by_term(std::vector<Occurrence>& tokens) {
    if (tokens.size() < 512) {
        std::stable_sort(tokens.begin(), tokens.end(), [](const Occurrence& a, const Occurrence& b) { return a.term < b.term; });
        return;
    }
    uint32_t largest = 0;
    for (const Occurrence& token : tokens) largest = std::max(largest, token.term);
    std::vector<Occurrence> other(tokens.size());
    for (uint32_t shift = 0; shift < 33 && (shift == 0 || (static_cast<uint64_t>(largest) >> shift) != 0); shift += 11) {
        uint32_t counts[2049] = {};
        for (const Occurrence& token : tokens) ++counts[(token.term >> shift & 2047) + 1];
        for (uint32_t i = 0; i < 2048; ++i) counts[i + 1] += counts[i];
        for (const Occurrence& token : tokens) other[counts[token.term >> shift & 2047]++] = token;
        tokens.swap(other);
    }
}

std::unique_ptr<std::vector<uint8_t>> invert_tokens(const uint32_t* terms, const uint32_t* positions, const uint64_t* offsets,
                                                    uint32_t documents, double average_length, const Elements& elements) {
    const uint64_t n = offsets[documents];
    std::vector<uint16_t> lengths(documents);
    std::vector<uint32_t> owners(n);
    for (uint32_t d = 0; d < documents; ++d) {
        uint64_t length = 0;  // positions: a word and its stem may be at one
        for (uint64_t i = offsets[d]; i < offsets[d + 1]; ++i) length += i == offsets[d] || positions[i] != positions[i - 1];
        lengths[d] = static_cast<uint16_t>(std::min<uint64_t>(length, 65535));
        std::fill(owners.begin() + static_cast<int64_t>(offsets[d]), owners.begin() + static_cast<int64_t>(offsets[d + 1]), d);
    }
    std::vector<Occurrence> tokens(n);
    for (uint32_t i = 0; i < n; ++i) tokens[i] = {terms[i], i};
    sort_by_term(tokens);
    FieldIndexBuilder builder(lengths.data(), documents, average_length);
    std::vector<uint32_t> where;
    for (size_t i = 0; i < n;) {
        const uint32_t term = tokens[i].term;
        builder.begin_term(term);
        while (i < n && tokens[i].term == term) {
            const uint32_t document = owners[tokens[i].token];
            where.clear();
            for (; i < n && tokens[i].term == term && owners[tokens[i].token] == document; ++i) where.push_back(positions[tokens[i].token]);
            builder.add(document, where.data(), static_cast<uint32_t>(where.size()));
        }
        builder.end_term();
    }
    return std::make_unique<std::vector<uint8_t>>(builder.finish(elements));
}

// A copy of what describes the elements of `documents` documents; none given: a field of single values.
Elements elements_of(const std::optional<In<uint32_t>>& starts, const std::optional<In<uint32_t>>& ends,
                     const std::optional<In<int32_t>>& weights, size_t documents) {
    Elements elements;
    if (!starts) return elements;
    const uint32_t* s = starts->data();
    if (starts->size() != documents + 1 || !ends || s[0] != 0 || s[documents] != ends->size() ||
        (weights && weights->size() != ends->size()))
        throw nb::value_error("elements must be of all documents");
    for (size_t d = 0; d < documents; ++d)
        if (s[d] > s[d + 1]) throw nb::value_error("elements must rise");
    elements.starts.assign(s, s + documents + 1);
    elements.ends.assign(ends->data(), ends->data() + ends->size());
    if (weights) elements.weights.assign(weights->data(), weights->data() + weights->size());
    return elements;
}

nb::object invert(In<uint32_t> terms, In<uint32_t> positions, In<uint64_t> offsets, double average_length,
                  std::optional<In<uint32_t>> element_starts, std::optional<In<uint32_t>> element_ends,
                  std::optional<In<int32_t>> element_weights) {
    const size_t n = terms.size();
    if (offsets.size() < 2 || offsets.data()[0] != 0 || offsets.data()[offsets.size() - 1] != n || positions.size() != n ||
        n > 0xFFFFFFFFull)
        throw nb::value_error("offsets must run from 0 to the number of tokens");
    for (size_t i = 0; i + 1 < offsets.size(); ++i)
        if (offsets.data()[i] > offsets.data()[i + 1]) throw nb::value_error("offsets must rise");
    const Elements elements = elements_of(element_starts, element_ends, element_weights, offsets.size() - 1);
    std::unique_ptr<std::vector<uint8_t>> buffer;
    {
        const GilRelease unlocked(n > MANY_TOKENS);
        buffer = invert_tokens(terms.data(), positions.data(), offsets.data(), static_cast<uint32_t>(offsets.size() - 1), average_length,
                               elements);
    }
    return own(std::move(buffer));
}

// One field index that goes into a merge: where its documents go (NO_INDEX: nowhere), and which of its terms is next.
struct Source {
    FieldIndex field_index;
    const uint32_t* map;
    uint32_t next = 0;
};

void merge_term(FieldIndexBuilder& builder, const Source& source, uint32_t place, std::vector<uint32_t>& where) {
    for (Cursor cursor(source.field_index, place); !cursor.exhausted(); cursor.next_block()) {
        const uint32_t* documents = cursor.documents();
        const uint32_t* frequencies = cursor.frequencies();
        for (uint32_t i = 0, n = cursor.count(); i < n; ++i) {
            const uint32_t document = source.map[documents[i]];
            if (document == NO_INDEX) continue;
            where.resize(frequencies[i]);
            cursor.positions(i, where.data());
            builder.add(document, where.data(), frequencies[i]);
        }
    }
}

// The elements of what is kept of the sources, if any of them has some. A single value is one element.
Elements merged_elements(const std::vector<Source>& sources, uint32_t documents) {
    Elements merged;
    const auto any = [&](auto has) {
        return std::any_of(sources.begin(), sources.end(), [&](const Source& s) { return has(s.field_index); });
    };
    if (!any([](const FieldIndex& s) { return s.element_starts != nullptr; })) return merged;
    const bool weighted = any([](const FieldIndex& s) { return s.element_weights != nullptr; });
    merged.starts.assign(1, 0);
    const auto close = [&](uint32_t document) { merged.starts.resize(document + 1, static_cast<uint32_t>(merged.ends.size())); };
    for (const Source& source : sources) {
        const FieldIndex& s = source.field_index;
        for (uint32_t d = 0; d < s.documents(); ++d) {
            if (source.map[d] == NO_INDEX) continue;
            close(source.map[d]);
            if (s.element_starts == nullptr) {
                if (s.field_lengths[d] == 0) continue;
                merged.ends.push_back(s.field_lengths[d]);
                if (weighted) merged.weights.push_back(1);
                continue;
            }
            const auto [from, to] = s.elements_of(d);
            merged.ends.insert(merged.ends.end(), s.element_ends + from, s.element_ends + to);
            for (uint32_t e = from; weighted && e < to; ++e)
                merged.weights.push_back(s.element_weights != nullptr ? s.element_weights[e] : 1);
        }
    }
    close(documents);
    return merged;
}

using Buffer = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Merges field indexes. map: for every document of every source, in order, its number in the result, rising, or NO_INDEX to drop it.
nb::object merge(const nb::list& buffers, In<uint32_t> map, uint32_t documents, double average_length) {
    std::vector<Source> sources;
    size_t at = 0;
    for (nb::handle buffer : buffers) {
        const auto bytes = as_given<uint8_t>(buffer);
        Source source{FieldIndex::open(bytes.data(), bytes.size()), map.data() + at};
        at += source.field_index.documents();
        if (at > map.size()) throw nb::value_error("the map is too short");
        sources.push_back(source);
    }
    if (at != map.size()) throw nb::value_error("the map is too long");
    std::unique_ptr<std::vector<uint8_t>> result;
    {
        uint64_t tokens = 0;
        for (const Source& source : sources) tokens += source.field_index.header->tokens;
        const GilRelease unlocked(tokens > MANY_TOKENS);
        std::vector<uint16_t> lengths(documents, 0);
        uint32_t previous = 0;
        bool first = true;
        for (const Source& source : sources)
            for (uint32_t d = 0; d < source.field_index.documents(); ++d) {
                if (source.map[d] == NO_INDEX) continue;
                if (source.map[d] >= documents || (!first && source.map[d] <= previous))
                    throw std::invalid_argument("the map must rise below documents");
                lengths[source.map[d]] = source.field_index.field_lengths[d];
                previous = source.map[d];
                first = false;
            }
        FieldIndexBuilder builder(lengths.data(), documents, average_length);
        std::vector<uint32_t> where;
        for (;;) {
            uint32_t term = NO_INDEX;
            for (const Source& source : sources)
                if (source.next < source.field_index.header->terms) term = std::min(term, source.field_index.terms[source.next]);
            if (term == NO_INDEX) break;
            builder.begin_term(term);
            for (Source& source : sources)
                if (source.next < source.field_index.header->terms && source.field_index.terms[source.next] == term)
                    merge_term(builder, source, source.next++, where);
            builder.end_term();
        }
        result = std::make_unique<std::vector<uint8_t>>(builder.finish(merged_elements(sources, documents)));
    }
    return own(std::move(result));
}

// What a field index holds: a mapping for explanations and tests.
nb::dict describe(Buffer buffer) {
    const FieldIndex field_index = FieldIndex::open(buffer.data(), buffer.size());
    nb::dict result;
    result["documents"] = field_index.header->documents;
    result["documents_with_field"] = field_index.header->documents_with_field;
    result["tokens"] = field_index.header->tokens;
    result["terms"] = field_index.header->terms;
    result["elements"] = field_index.header->elements;
    result["blocks"] = field_index.header->blocks;
    result["average_length"] = field_index.header->average_length;
    result["postings_bytes"] = field_index.header->offsets[POSTINGS + 1] - field_index.header->offsets[POSTINGS];
    result["positions_bytes"] = field_index.header->offsets[POSITIONS + 1] - field_index.header->offsets[POSITIONS];
    return result;
}

}  // namespace

void bind_field_index(nb::module_& m) {
    m.attr("NO_INDEX") = NO_INDEX;
    m.def(
        "invert", &invert, nb::arg("terms"), nb::arg("positions"), nb::arg("offsets"), nb::arg("average_length"),
        nb::arg("element_starts").none() = nb::none(), nb::arg("element_ends").none() = nb::none(),
        nb::arg("element_weights").none() = nb::none(),
        "A field index of documents: document d has tokens offsets[d]..offsets[d + 1], and elements element_starts[d]..element_starts[d + 1].");
    m.def("merge", &merge, nb::arg("field_indexes"), nb::arg("map"), nb::arg("documents"), nb::arg("average_length"));
    m.def("describe", &describe, nb::arg("field_index"));
}

}  // namespace paperwasp
