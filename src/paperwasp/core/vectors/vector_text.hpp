// The vector of a query as requests write it.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>
#include <vector>

#include "vectors/hnsw_space.hpp"

namespace paperwasp {

// Reads a JSON array of exactly `count` numbers. False, and what is in `numbers` is of no use: there is something else in it, or a number
// that no double is near to.
bool read_numbers(std::string_view json, size_t count, double* numbers);

// The cells that a column's kernels take for the query's vector, when its text is of this type, as storage/attributes/distances.py makes
// them; of bfloat16 they are floats. Nothing where a number cannot be such a cell, or is not finite.
std::optional<std::vector<char>> query_cells(std::string_view json, hnsw::Cell written, hnsw::Cell column, size_t dimensions);

}  // namespace paperwasp
