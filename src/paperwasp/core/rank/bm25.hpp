// What terms add to the bm25 of documents: see bm25.cpp.
#pragma once

#include <cstdint>
#include <utility>
#include <vector>

#include "index/reader.hpp"

namespace paperwasp {

// Adds it for terms of the index in a field, (number, weight), one after another, whose occurrences and lengths are read for `n` rising
// lids. Throws OutOfTime.
void add_bm25_of(const Reader& reader, uint32_t field, const std::vector<std::pair<uint32_t, double>>& terms, double k1, double b,
                 double average_length, const uint32_t* lids, size_t n, double* scores);

}  // namespace paperwasp
