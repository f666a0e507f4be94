// Dot products of a vector with rows, wherever these stand: see dots.cpp.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <stdexcept>

#include "clock.hpp"

namespace paperwasp {

constexpr size_t ROWS_AT_ONCE = 1024;  // between two looks at the clock
constexpr size_t NO_ROW = static_cast<size_t>(-1);

// out[j]: the dot product of `a` and row j of `b`, of `m` rows that are read once, one after another.
void dots_in_turn(const float* a, const float* b, size_t m, size_t size, float* out);
void dots_in_turn(const double* a, const double* b, size_t m, size_t size, double* out);

// numbers[i]: the dot product of `vector` and row place(i) of the `n` rows that there are; `nothing` where that is NO_ROW. ROWS_AT_ONCE
// numbers at most. Needs no lock of the interpreter. Throws std::invalid_argument for a row that is not there, and OutOfTime.
template <typename T, typename Place>
void dots_at_places(const T* vector, const T* rows, size_t n, size_t size, size_t count, Place place, T nothing, T* numbers, Clock& clock) {
    for (size_t i = 0; i < count;) {
        const size_t row = place(i);
        if (row == NO_ROW) {
            numbers[i++] = nothing;
            continue;
        }
        size_t run = 1, next = NO_ROW;  // rows that stand together are read as one matrix
        while (i + run < count && (next = place(i + run)) == row + run) ++run;
        if (row >= n || n - row < run) throw std::invalid_argument("no such row");
        if (i + run < count && next < n) __builtin_prefetch(rows + next * size);
        clock.spend(static_cast<int64_t>(run * size / 8 + 1));
        dots_in_turn(vector, rows + row * size, run, size, numbers + i);
        i += run;
    }
}

}  // namespace paperwasp
