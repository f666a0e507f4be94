// nearestNeighbor in plans: the vectors of a field in a view, what a template says of it, and the documents that are nearest to the vector
// of a request. What is found, and how near it is, is what search/operators/nearest_neighbor.py finds by a graph, or by comparing all.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "vectors/hnsw.hpp"
#include "vectors/hnsw_search.hpp"
#include "vectors/nearness.hpp"

namespace paperwasp {

// The vectors of a field in one view, one a document, and their graph. It holds counted references to all that it points into.
//
// Threads: immutable; of what it points into the writer changes the graph, which allows that (vectors/hnsw_graph.hpp), and places of rows,
// which are read as atomics.
struct NearVectors {
    GraphOfColumn graph;
    In<uint64_t> rows;  // by lid, as vectors/distances.cpp has them
    VectorCells cells;
    nb::object graph_owner;
};

// What a plan says of it. It never changes.
struct NearForm {
    std::string field;
    hnsw::Cell written;  // the type that the query's vector is declared to be of
    Nearness nearness;
    double threshold;    // the greatest distance, as people see it
    bool alone_matches;  // whether words beside it only rank; else they match as well
};

// How a graph is searched in a view, among the documents that a filter leaves (search/operators/nearest_neighbor.py).
struct NearSearch {
    uint32_t limit;  // of lids
    size_t count, explore;
    bool uses_filter, filter_first;
    double exploration, slack;
    size_t compared;  // documents that are compared one by one, without the graph; 0: it is searched
};

// The same as Python has it, in this order.
using SearchTuple = std::tuple<uint32_t, size_t, size_t, bool, bool, double, double, size_t>;

inline NearSearch search_of(const SearchTuple& given) {
    return std::apply([](auto... each) { return NearSearch{each...}; }, given);
}

struct NearDocument {
    uint32_t lid;
    double closeness;  // the raw score
};

// The search for one vector.
class NearQuery {
  public:
    // Nothing where the general steps see more in the vector.
    static std::optional<NearQuery> of(std::string_view json, const NearForm& form, const NearSearch& search, const NearVectors& vectors);

    // About how many nanoseconds it takes.
    uint64_t expected_ns() const;

    // The nearest of some live documents, by rising lid. Nothing where the graph is of a later moment, so that more has to be looked at.
    // Throws OutOfTime.
    std::optional<std::vector<NearDocument>> find(const In<uint64_t>& live, const In<uint64_t>& allowed) const;

    // How near documents are, by rising lid, whether they were found or not. False: a vector is of a later moment. Throws OutOfTime.
    bool read_closeness(const std::vector<NearDocument>& found, const std::vector<uint32_t>& lids, Clock& clock, double* closeness) const;

    // Of documents without a vector.
    double least() const;

  private:
    NearQuery(const NearForm& form, const NearSearch& search, const NearVectors& vectors, std::vector<char> cells);

    double closeness(double computed) const;
    std::optional<std::vector<NearDocument>> compare(const In<uint64_t>& allowed) const;
    bool read_distance(const hnsw::Exact& exact, uint32_t lid, Clock& clock, double& distance) const;
    hnsw::Wanted wanted(const In<uint64_t>* accept) const;

    const NearForm* form_;
    NearSearch search_;
    const NearVectors* vectors_;
    std::vector<char> cells_;
    double norm_, limit_;
};

}  // namespace paperwasp
