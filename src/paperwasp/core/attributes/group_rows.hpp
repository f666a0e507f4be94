// Rows put into groups by their keys: see group_rows.cpp.
#pragma once

#include <cstdint>
#include <vector>

#include "clock.hpp"

namespace paperwasp {

// The group of each row, and the first row of each group. Groups are numbered in the order of their first rows.
struct RowGroups {
    std::vector<uint32_t> groups, first;
};

// Throws OutOfTime. Fewer than 2^32 - 1 keys. Needs no lock of the interpreter.
RowGroups group_keys(const std::vector<int64_t>& keys, Clock& clock);

}  // namespace paperwasp
