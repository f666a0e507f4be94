// Codes and distances of a graph's nodes: see hnsw_space.hpp.
#include "vectors/hnsw_space.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

#include "vectors/hnsw_dots.hpp"

namespace paperwasp::hnsw {
namespace {

constexpr size_t AT_A_TIME = 32;  // distances that are computed from one call

template <typename T>
double as_double(T cell) {
    return static_cast<double>(cell);
}
double as_double(Bfloat16 cell) {
    const uint32_t bits = static_cast<uint32_t>(cell.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// Calls with a pointer of the cells' type.
template <typename With>
auto with_cells(uint32_t cell, const void* cells, With with) {
    switch (cell) {
        case FLOAT64:
            return with(static_cast<const double*>(cells));
        case FLOAT32:
            return with(static_cast<const float*>(cells));
        case BFLOAT16:
            return with(static_cast<const Bfloat16*>(cells));
        default:
            return with(static_cast<const int8_t*>(cells));
    }
}

// What a node's record says of a code.
struct Facts {
    float scale, square;
    int32_t sum;
};

// Of int8 cells that are multiplied with `unit`.
Facts facts_of(uint32_t metric, const int8_t* code, size_t size, double unit) {
    int64_t sum = 0, square = 0;
    for (size_t i = 0; i < size; ++i) sum += code[i], square += int32_t{code[i]} * code[i];
    const double length = std::sqrt(static_cast<double>(square));
    const double scale = metric == ANGULAR ? (square > 0 ? 1.0 / length : 0.0) : unit;
    return {static_cast<float>(scale), static_cast<float>(unit * unit * static_cast<double>(square)), static_cast<int32_t>(sum)};
}

// The code of a vector, and what its cells are multiplied with; a negative number where a cell is no number.
template <typename T>
double write_code(const T* cells, size_t size, int8_t* code, double* error) {
    double most = 0;
    bool finite = true;
    for (size_t i = 0; i < size; ++i) {
        const double cell = std::fabs(as_double(cells[i]));
        finite &= cell <= std::numeric_limits<double>::max();
        most = std::max(most, cell);
    }
    if (!finite) return -1;
    const double unit = most / 127, per_unit = unit > 0 ? 1.0 / unit : 0;
    constexpr double ROUNDS = 6755399441055744.0;  // 1.5 * 2^52: what is added to it loses its fraction
    double errors = 0;
    for (size_t i = 0; i < size; ++i) {
        const double cell = as_double(cells[i]), whole = std::min(127.0, std::max(-127.0, (cell * per_unit + ROUNDS) - ROUNDS));
        code[i] = static_cast<int8_t>(whole);
        errors += (cell - whole * unit) * (cell - whole * unit);
    }
    if (error != nullptr) *error = errors;
    return unit;
}

class CodeSpace final : public Space {
  public:
    CodeSpace(const Shape& shape, const Records& records, const Column& column)
        : shape_(shape), records_(records), column_(column), in_records_(shape.code_bytes() > 0), dots_(code_dots()) {
        if (in_records_) own_.resize(shape.dimensions);
    }

    void bind_query(const void* query) override {
        const auto* cells = static_cast<const int8_t*>(query);
        double unit = 1;
        if (in_records_) {
            // A query of bfloat16 comes as floats.
            const uint32_t cell = shape_.cell == BFLOAT16 ? static_cast<uint32_t>(FLOAT32) : shape_.cell;
            unit = with_cells(cell, query, [&](const auto* values) { return write_code(values, shape_.dimensions, own_.data(), nullptr); });
            cells = own_.data();
        }
        bind(cells, facts_of(shape_.metric, cells, shape_.dimensions, unit));
    }

    void bind_node(uint32_t number) override {
        const Node& node = records_.node(number);
        bind(code(number), {node.scale, node.square, node.sum});
    }

    void distances(const uint32_t* nodes, size_t count, float* out) const override {
        const int8_t* rows[AT_A_TIME];
        int32_t dots[AT_A_TIME];
        for (size_t from = 0; from < count; from += AT_A_TIME) {
            const size_t some = std::min(AT_A_TIME, count - from);
            for (size_t i = 0; i < some; ++i) {
                rows[i] = code(nodes[from + i]);
                __builtin_prefetch(&records_.node(nodes[from + i]));
            }
            dots_(code_, sum_, shape_.dimensions, rows, some, dots);
            for (size_t i = 0; i < some; ++i) {
                const Node& node = records_.node(nodes[from + i]);
                out[from + i] = constant_ + per_square_ * node.square - per_dot_ * (node.scale * static_cast<float>(dots[i]));
            }
        }
    }

  private:
    const int8_t* code(uint32_t node) const {
        return reinterpret_cast<const int8_t*>(in_records_ ? records_.record(node) : column_.row(node));
    }
    void bind(const int8_t* code, const Facts& facts) {
        code_ = code;
        sum_ = facts.sum;
        constant_ = shape_.metric == EUCLIDEAN ? facts.square : shape_.metric == ANGULAR ? 1.0f : 0.0f;
        per_square_ = shape_.metric == EUCLIDEAN ? 1.0f : 0.0f;
        per_dot_ = shape_.metric == EUCLIDEAN ? 2.0f * facts.scale : facts.scale;
    }

    const Shape shape_;
    const Records records_;
    const Column column_;
    const bool in_records_;
    const CodeDots dots_;
    std::vector<int8_t> own_;
    const int8_t* code_ = nullptr;
    int32_t sum_ = 0;
    float constant_ = 0, per_square_ = 0, per_dot_ = 0;
};

// Exact distances, from the column's cells.
template <typename Q, typename C>
class CellSpace final : public Space {
  public:
    CellSpace(const Shape& shape, const Column& column) : shape_(shape), column_(column), widened_(shape.dimensions) {}

    void bind_query(const void* query) override { query_ = static_cast<const Q*>(query); }

    void bind_node(uint32_t node) override {
        const C* cells = reinterpret_cast<const C*>(column_.row(node));
        for (size_t i = 0; i < shape_.dimensions; ++i) widened_[i] = static_cast<Q>(as_double(cells[i]));
        query_ = widened_.data();
    }

    void distances(const uint32_t* nodes, size_t count, float* out) const override {
        const Distance<Q, C> of(shape_.metric, query_, shape_.dimensions);
        for (size_t i = 0; i < count; ++i) {
            if (i + 1 < count) fetch(column_.row(nodes[i + 1]));
            out[i] = static_cast<float>(of(reinterpret_cast<const C*>(column_.row(nodes[i]))));
        }
    }

  private:
    void fetch(const char* row) const {
        for (size_t i = 0; i < column_.row_bytes; i += LINE) __builtin_prefetch(row + i);
    }

    const Shape shape_;
    const Column column_;
    std::vector<Q> widened_;
    const Q* query_ = nullptr;
};

template <typename Q, typename C>
class ExactOf final : public Exact {
  public:
    ExactOf(const Shape& shape, const Column& column, const void* query)
        : of_(shape.metric, static_cast<const Q*>(query), shape.dimensions), column_(column) {}
    double operator()(uint32_t node) const override { return of_(reinterpret_cast<const C*>(column_.row(node))); }

  private:
    const Distance<Q, C> of_;
    const Column column_;
};

}  // namespace

std::unique_ptr<Space> make_space(const Shape& shape, bool codes, const Records& records, const Column& column) {
    if (codes && shape.has_codes()) return std::make_unique<CodeSpace>(shape, records, column);
    switch (shape.cell) {
        case FLOAT64:
            return std::make_unique<CellSpace<double, double>>(shape, column);
        case FLOAT32:
            return std::make_unique<CellSpace<float, float>>(shape, column);
        case BFLOAT16:
            return std::make_unique<CellSpace<float, Bfloat16>>(shape, column);
        default:
            return std::make_unique<CellSpace<int8_t, int8_t>>(shape, column);
    }
}

std::unique_ptr<Exact> make_exact(const Shape& shape, const Column& column, const void* query) {
    switch (shape.cell) {
        case FLOAT64:
            return std::make_unique<ExactOf<double, double>>(shape, column, query);
        case FLOAT32:
            return std::make_unique<ExactOf<float, float>>(shape, column, query);
        case BFLOAT16:
            return std::make_unique<ExactOf<float, Bfloat16>>(shape, column, query);
        default:
            return std::make_unique<ExactOf<int8_t, int8_t>>(shape, column, query);
    }
}

bool encode(const Shape& shape, const Records& records, const Column& column, uint32_t number, double* error) {
    Node& node = records.node(number);
    *error = 0;
    const char* row = column.row(number);
    if (shape.code_bytes() > 0) {
        auto* code = reinterpret_cast<int8_t*>(records.record(number));
        const double unit =
            with_cells(shape.cell, row, [&](const auto* cells) { return write_code(cells, shape.dimensions, code, error); });
        if (unit < 0) return false;
        const Facts facts = facts_of(shape.metric, code, shape.dimensions, unit);
        node.scale = facts.scale, node.square = facts.square, node.sum = facts.sum;
        return true;
    }
    if (shape.cell == INT8) {
        const Facts facts = facts_of(shape.metric, reinterpret_cast<const int8_t*>(row), shape.dimensions, 1);
        node.scale = facts.scale, node.square = facts.square, node.sum = facts.sum;
        return true;
    }
    double square = 0;
    with_cells(shape.cell, row, [&](const auto* cells) {
        for (size_t i = 0; i < shape.dimensions; ++i) square += as_double(cells[i]) * as_double(cells[i]) + as_double(cells[i]) * 0;
        return 0;
    });
    node.square = static_cast<float>(square);
    return square <= std::numeric_limits<double>::max();
}

double straight_square(const Shape& shape, const Column& column, uint32_t a, uint32_t b) {
    return with_cells(shape.cell, column.row(a), [&](const auto* first) {
        const auto* second = reinterpret_cast<decltype(first)>(column.row(b));
        double dot = 0, norm = 0, other = 0;
        for (size_t i = 0; i < shape.dimensions; ++i) {
            const double x = as_double(first[i]), y = as_double(second[i]);
            dot += x * y, norm += x * x, other += y * y;
        }
        if (shape.metric != ANGULAR) return std::max(0.0, norm + other - 2 * dot);
        return norm > 0 && other > 0 ? 2 - 2 * dot / std::sqrt(norm * other) : 2.0;
    });
}

}  // namespace paperwasp::hnsw
