// The graph of an object of Python, with the cells of its column, for kernels that search it themselves.
#pragma once

#include "core.hpp"
#include "vectors/hnsw_index.hpp"

namespace paperwasp {

// (rows, dimensions), of the column's type; bfloat16 as the upper halves of floats.
using VectorCells = nb::ndarray<nb::ro, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// It points into the object and the array.
struct GraphOfColumn {
    const hnsw::Index* index;
    hnsw::Column column;
};

// `graph`: an Hnsw. Throws std::invalid_argument for cells that are not of its column.
GraphOfColumn graph_of(nb::handle graph, const VectorCells& cells);

}  // namespace paperwasp
