// The bm25 of some documents: see bm25_scores.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "index/reader.hpp"
#include "plans/word_finder.hpp"
#include "rank/term_lists.hpp"

namespace paperwasp {

// A term with the documents it was found in; nullptr: those of its posting list.
struct ScoredTerm {
    QueryTerm term;
    const TermDocuments* documents;
};

// What a sum of bm25 features scores documents whose lids rise: `terms` field by field, in the order of the query. Throws OutOfTime.
// Needs no lock of the interpreter.
void score_by_bm25(const Reader& reader, const std::vector<ScoredTerm>& terms, const std::vector<uint32_t>& lids,
                   std::vector<double>& scores, Clock& clock);

}  // namespace paperwasp
