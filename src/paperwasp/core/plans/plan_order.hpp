// Hits of a plan in the order of an attribute, as search/phases/order.py finds them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "plans/snapshot.hpp"

namespace paperwasp {

// What hits are in the order of.
struct OrderForm {
    std::string field;
    bool descending;
};

// The first `wanted` of the documents of a bitmap, which has `words` 64-bit words and covers the column; of equal values the lower lid
// first. The writer of the column may store into it meanwhile. Throws OutOfTime.
std::vector<uint32_t> first_in_order(const SnapshotColumn& column, bool descending, const uint64_t* bitmap, size_t words, size_t wanted);

// About how many nanoseconds that takes.
uint64_t steps_of_order(const SnapshotColumn& column);

}  // namespace paperwasp
