// A query for the best documents by BM25, as the kernel takes it.
#pragma once

#include <cstdint>
#include <optional>
#include <tuple>
#include <vector>

#include "clock.hpp"
#include "core.hpp"
#include "index/reader.hpp"
#include "rank/term_lists.hpp"

namespace paperwasp {

// The documents that may be hits: a bitmap by lid, and its size in words. nullptr: all documents.
struct Accepted {
    const uint64_t* bitmap = nullptr;
    size_t words = 0;
};

// The posting lists of one segment, and which of them a term of the query reads.
struct SegmentLists {
    std::vector<List> lists;
    std::vector<uint32_t> of_term;     // NO_INDEX: no document of the segment has the term
    std::vector<PlainPostings> plain;  // what lists read that are not in the field indexes

    // The exact score of a document: by probes, for which documents must ascend.
    double score(const std::vector<QueryTerm>& terms, uint32_t document) {
        Sum exact;
        for (size_t t = 0; t < terms.size(); ++t) {
            if (of_term[t] == NO_INDEX) continue;
            List& list = lists[of_term[t]];
            if (!list.may_have(document)) continue;
            const uint32_t at = list.probe.find(document);
            if (at != NO_INDEX) exact.add(terms[t], terms[t].score(list.probe.frequencies()[at], list.lengths[document]));
        }
        return exact.total();
    }
};

// Documents that have been found to match a term that is no word, such as a phrase. Document i has occurrences offsets[i] to offsets[i +
// 1].
struct Found {
    const uint32_t *lids, *offsets;
    size_t count;

    uint32_t lid(size_t i) const { return lids[i]; }
    uint32_t frequency(size_t i) const { return offsets[i + 1] - offsets[i]; }

    // The postings within one segment. lengths: [document of the segment] the tokens of its field.
    PlainPostings in(const Segment& segment, const uint16_t* lengths, double average_length) const;
};

// A posting list of a query, with the weight of all terms that read it.
struct QueryList {
    QueryTerm term;
    const Found* found;  // nullptr: it is in the field indexes

    uint64_t frequency(const Reader& reader) const { return found != nullptr ? found->count : reader.frequency(term.field, term.term); }
};

struct Query {
    std::vector<QueryTerm> terms;  // in the order of the query: in this order scores are added up
    std::vector<QueryList> lists;
    std::vector<uint32_t> list_of;  // by term

    // `found`: nullptr of a word. It must outlive the query.
    void add(const QueryTerm& term, const Found* found);

    // Of all its lists.
    uint64_t postings(const Reader& reader) const;

    // The posting lists of a segment, with the bitmaps that are kept of them.
    SegmentLists in(const Segment& segment, Clock& clock) const;
};

using TermTuple = std::tuple<uint32_t, uint32_t, double, double, double, double>;  // field, term, weight, k1, b, average length
using FoundTuple = std::tuple<uint32_t, In<uint32_t>, In<uint32_t>>;               // number of the term, lids, offsets

// Documents that are found, by term; throws ValueError for what cannot be.
std::vector<std::optional<Found>> read_found(const Reader& reader, size_t terms, const std::vector<FoundTuple>& found);

// Throws ValueError for what cannot be a query of this index.
Query read_query(const Reader& reader, const std::vector<TermTuple>& terms, const std::vector<std::optional<Found>>& found);

// A score that at least `k` accepted documents reach: the k-th best of some term's champions.
double floor_of(const Reader& reader, const Query& query, uint32_t k, const uint64_t* accept);

// How many accepted documents have any of the terms.
uint64_t count_any(const Reader& reader, const Query& query, const Accepted& accept, Clock& clock);

// About how many nanoseconds a search takes. `all`: for documents with all terms; `count`: that are counted.
uint64_t steps_of(const Reader& reader, const Query& query, bool all, bool count);

}  // namespace paperwasp
