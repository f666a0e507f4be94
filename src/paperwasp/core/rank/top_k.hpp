// The best k documents by a weighted sum of BM25 terms: see top_k.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "rank/bm25_query.hpp"

namespace paperwasp {

struct BestHits {
    std::vector<Scored> hits;  // best first
    uint64_t matches = 0;      // documents that match, where they are counted and all were searched
    uint32_t searched = 0;     // the lid up to which documents were searched: the reader's limit, unless the time was over before
};

// The best k of the accepted documents that have any of the query's terms, or `all` of them. `count`: whether those that match are counted.
// Throws OutOfTime where there was no time for any. Needs no lock of the interpreter.
BestHits find_best(const Reader& reader, const Query& query, uint32_t k, bool all, bool count, const Accepted& accept);

}  // namespace paperwasp
