// How far the nodes of a graph are from each other and from a query, as a walk compares them.
//
// Walks read codes: each vector of floats has one of int8 cells in its node's record, a quarter of the bytes, whose products are computed
// in integers. They say nearly, not exactly, what is nearest, so what a search has found is ordered by exact distances afterwards. Columns
// of int8 cells are their own codes. Where codes are too coarse for the vectors (`Fineness`), for the other metrics, and for very long
// vectors, walks compute exact distances from the column's cells.
//
// PRODUCT: no distance, for the nearest of a node are the longest in about its direction. How links are chosen among them: hnsw_insert.cpp.
#pragma once

#include <memory>
#include <vector>

#include "vectors/hnsw_graph.hpp"
#include "vectors/vector_distance.hpp"

namespace paperwasp::hnsw {

enum Cell : uint32_t { FLOAT64, FLOAT32, BFLOAT16, INT8, CELLS };

constexpr size_t LONGEST_CODE = size_t{1} << 15;  // so that products fit 32 bits

struct Shape {
    uint32_t metric, cell;
    size_t dimensions;

    size_t cell_bytes() const { return cell == FLOAT64 ? 8 : cell == FLOAT32 ? 4 : cell == BFLOAT16 ? 2 : 1; }
    bool has_codes() const { return metric <= PRODUCT && dimensions <= LONGEST_CODE; }
    size_t code_bytes() const { return has_codes() && cell != INT8 ? dimensions : 0; }
};

// The cells of the column at some moment.
struct Column {
    const char* cells;
    size_t rows;
    size_t row_bytes;

    const char* row(uint32_t node) const { return cells + node * row_bytes; }
};

// One for a thread: it is bound to a query or a node, and computes distances from there.
class Space {
  public:
    virtual ~Space() = default;
    virtual void bind_query(const void* query) = 0;
    virtual void bind_node(uint32_t node) = 0;
    // From what is bound.
    virtual void distances(const uint32_t* nodes, size_t count, float* out) const = 0;
};

// codes: by codes.
std::unique_ptr<Space> make_space(const Shape& shape, bool codes, const Records& records, const Column& column);

// Writes what a node's record says of its vector. False where a cell is no number: nothing can be near it.
// error: the square of how far the code is from the vector.
bool encode(const Shape& shape, const Records& records, const Column& column, uint32_t node, double* error);

// The exact distance of a node's row from a query, the number that least_distances gives.
class Exact {
  public:
    virtual ~Exact() = default;
    virtual double operator()(uint32_t node) const = 0;
};
std::unique_ptr<Exact> make_exact(const Shape& shape, const Column& column, const void* query);

// The square of the straight distance of two rows (of their directions, for ANGULAR): what codes must be fine enough for.
double straight_square(const Shape& shape, const Column& column, uint32_t a, uint32_t b);

}  // namespace paperwasp::hnsw
