// Bits that differ: see hamming.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paperwasp {

// out[i]: how many bits of row i differ from the query's. `rows` are `count` vectors of `size` cells, one after another.
void differing_bits(const int8_t* query, const int8_t* rows, size_t count, size_t size, double* out);

}  // namespace paperwasp
