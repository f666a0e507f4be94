// Products of codes: see hnsw_dots.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paperwasp::hnsw {

// out[i]: the product of `query` and rows[i], of `size` cells each, at most 2^15; sum: of the query's cells.
using CodeDots = void (*)(const int8_t* query, int32_t sum, size_t size, const int8_t* const* rows, size_t count, int32_t* out);

// The fastest that this machine has; all give the same numbers. plain: for tests, without instructions called by name.
CodeDots code_dots(bool plain = false);

}  // namespace paperwasp::hnsw
