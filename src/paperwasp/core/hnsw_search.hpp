// Searching a graph: see hnsw_search.cpp.
#pragma once

#include <vector>

#include "hnsw_index.hpp"

namespace paperwasp::hnsw {

struct Hit {
    double distance;
    uint32_t owner, node;

    bool operator<(const Hit& other) const {
        if (distance != other.distance) return distance < other.distance;
        return owner < other.owner || (owner == other.owner && node < other.node);
    }
};

// The nearest nodes of at most `count` documents, the nearest first, none farther than the threshold; of those that were met before the
// clock's budget was spent. Throws OutOfTime.
std::vector<Hit> find(const Index& index, const Column& column, const void* query, const Search& how, size_t count, double threshold,
                      BudgetClock* clock);

}  // namespace paperwasp::hnsw
