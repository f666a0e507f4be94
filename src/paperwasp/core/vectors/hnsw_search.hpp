// Searching a graph: see hnsw_search.cpp.
#pragma once

#include <vector>

#include "vectors/hnsw_index.hpp"

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
// clock's budget was spent. query: of the type of the column's cells, bfloat16 widened to float. Throws OutOfTime.
std::vector<Hit> find(const Index& index, const Column& column, const void* query, const Search& how, size_t count, double threshold,
                      BudgetClock* clock);

// What is looked for. What its members mean: PlainHnsw.search in tests/oracles/hnsw.py.
struct Wanted {
    size_t count, explore;
    const uint64_t* accept = nullptr;  // nullptr: all
    size_t accept_words = 0;
    uint32_t limit;
    double threshold;
    bool filter_first = false;
    double exploration = 0, slack = 0;
    int64_t end_ns = 0;
};

// The same, searched as its graph is best.
std::vector<Hit> find(const Index& index, const Column& column, const void* query, const Wanted& wanted);

// About how many nanoseconds that takes.
uint64_t steps_of(const Index& index, const Wanted& wanted);

}  // namespace paperwasp::hnsw
