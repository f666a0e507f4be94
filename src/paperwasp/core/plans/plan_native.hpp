// nativeRank, or a part of it, as plans rank by it: what a rank profile says, and the query of some words. What is worked out here for a
// query is what search/features/native_query.py works out, number by number.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "plans/snapshot.hpp"
#include "rank/native_best.hpp"
#include "rank/native_query.hpp"

namespace paperwasp {

struct NativeRank {
    std::vector<std::string> names;  // of the fields
    std::vector<NativeField> fields;
    std::vector<bool> has_elements;  // by field: nearness in it is not known here
    uint32_t window = 1;             // terms in a row that are compared
    NativeWeights weights{};         // without what depends on the query
    nb::list tables;                 // which the fields point into
};

// A term of a query.
struct NativeTerm {
    double significance;
    uint32_t length;  // in words
    const std::vector<WordMatch>* matches;
    const Word* whole;  // the word without which it does not count, or nullptr
};

// What is given in place of a list's postings; no match: nothing.
struct NativeGiven {
    const WordMatch* match = nullptr;
    const Word* whole = nullptr;
};

// The query of some terms. numbers: of the fields, in the index. given: by list. Nothing where the kernels cannot run it.
std::optional<NativeQuery> native_query_of(const NativeRank& rank, const std::vector<uint32_t>& numbers,
                                           const std::vector<NativeTerm>& terms, std::vector<NativeGiven>& given);

// The scores of documents whose lids rise. `found`: for each list its postings, or nullptr if the list is a term of the index. Throws
// OutOfTime.
void score_by_native_rank(const Reader& reader, NativeQuery query, const std::vector<const NativeFound*>& found,
                          const std::vector<uint32_t>& lids, std::vector<double>& scores, Clock& clock);

// The best k of the bitmap `hits`, which has `hits_count`, as best_by_native_rank finds them, in parts. most_threads: how many
// threads may share them; 0: any number.
std::optional<NativeHits> best_in_parts(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found,
                                        const uint64_t* hits, size_t words, uint64_t hits_count, uint32_t k, size_t most_threads);

// All documents of the bitmap `hits`, which has `words` 64-bit words and covers every lid: best first, of equal scores the lower lid first.
// Empty where a score is not finite. Throws OutOfTime.
NativeHits all_by_native_rank(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found,
                              const uint64_t* hits, size_t words, Clock& clock);

}  // namespace paperwasp
