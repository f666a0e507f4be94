// Rank programs for kernels that have columns themselves: see rank_program.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "clock.hpp"

namespace paperwasp {

// Never changes once it is checked: any thread.
struct RankProgram {
    std::vector<int32_t> code;
    std::vector<double> constants;
    size_t columns, temporaries, result;
};

// The values of a feature: one for each row, or one for all.
struct RankColumn {
    const double* values;
    bool is_one;
};

// Throws std::invalid_argument for what is no program.
void check_program(const RankProgram& program);

// Runs a checked program over its columns. Throws OutOfTime.
void run_program(const RankProgram& program, const std::vector<RankColumn>& columns, size_t n, double* out, Clock& clock);

}  // namespace paperwasp
