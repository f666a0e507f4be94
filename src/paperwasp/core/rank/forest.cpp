// The sum of a forest of decision trees over many rows. Its twin and specification is tests/oracles/forest.py.
//
// nodes: two words for each node: the bits of its threshold, a double; and its column (low half) and its left child (high half). The right
// child is the one after the left. A node goes right where the value of its column is not below the threshold. A leaf is its own left
// child; its column is 0, where every row has 0, and its threshold is infinite.
// values: for each node what it adds if a row ends there. roots, depths: for each tree its first node, and its longest way.
// columns: four numbers for each: the feature, the kind, and the range of its members in `members`. Column 0 is of no feature.
//
// Rows are worked in blocks, whose columns are made first: a missing value (NaN) becomes an infinity on the side that it goes to, so that
// no node has to ask. Then each tree is walked by several rows at once, all of them in step and without a branch, so that their loads
// overlap. Scratch memory: one block. Values are added in the order of the trees.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <stdexcept>
#include <vector>

#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t LANES = 16;             // rows that walk together
constexpr size_t SCRATCH_VALUES = 4096;  // of a block, about: 32 kB
constexpr int32_t MISSING_RIGHT = 0, MISSING_LEFT = 1, MEMBER = 2, MEMBER_OR_MISSING = 3;
constexpr double INFINITE = std::numeric_limits<double>::infinity();

struct Node {
    double threshold;
    uint32_t column, left;
};
static_assert(sizeof(Node) == 16);

struct Column {
    const double* values;
    size_t step;  // 0: one value for all rows
    int32_t kind;
    const double *members, *members_end;  // rising

    double value(size_t row) const {
        const double x = values[row * step];
        if (kind <= MISSING_LEFT) return std::isnan(x) ? (kind == MISSING_LEFT ? -INFINITE : INFINITE) : x;
        const bool found = std::isnan(x) ? kind == MEMBER_OR_MISSING : std::binary_search(members, members_end, x);
        return found ? -1.0 : 1.0;
    }
};

std::vector<Column> checked_columns(const In<int32_t>& columns, const In<double>& members, const nb::list& features, size_t rows,
                                    std::vector<In<double>>& held) {
    for (nb::handle feature : features) {
        held.push_back(as_given<double>(feature));
        if (held.back().shape(0) != rows && held.back().shape(0) != 1)
            throw std::invalid_argument("a feature has not a value for each row");
    }
    if (columns.shape(0) % 4 != 0 || columns.shape(0) == 0) throw std::invalid_argument("a column has four numbers");
    std::vector<Column> found;
    static const double zero = 0.0;
    found.push_back({&zero, 0, MISSING_RIGHT, nullptr, nullptr});
    for (size_t i = 4; i < columns.shape(0); i += 4) {
        const int32_t* said = columns.data() + i;
        if (said[0] < 0 || static_cast<size_t>(said[0]) >= held.size() || said[1] < 0 || said[1] > MEMBER_OR_MISSING || said[2] < 0 ||
            said[3] < said[2] || static_cast<size_t>(said[3]) > members.shape(0))
            throw std::invalid_argument("a column reaches past what there is");
        const In<double>& feature = held[said[0]];
        const double* const m = members.data();
        found.push_back({feature.data(), feature.shape(0) == rows ? size_t{1} : size_t{0}, said[1], m + said[2], m + said[3]});
    }
    return found;
}

const Node* checked_nodes(const In<uint64_t>& nodes, size_t values, size_t columns) {
    if (nodes.shape(0) != 2 * values) throw std::invalid_argument("nodes and values do not fit");
    const Node* const found = reinterpret_cast<const Node*>(nodes.data());
    for (size_t i = 0; i < values; ++i) {
        const bool is_leaf = found[i].left == i;
        if (is_leaf ? found[i].column != 0 || found[i].threshold != INFINITE
                    : found[i].left <= i || found[i].left + 1 >= values || found[i].column >= columns)
            throw std::invalid_argument("a node reaches past what there is");
    }
    return found;
}

void walk(const Node* nodes, const double* values, uint32_t root, int32_t depth, const double* block, size_t width, size_t rows,
          double* sums) {
    for (size_t first = 0; first < rows; first += LANES) {
        uint32_t at[LANES];
        for (size_t lane = 0; lane < LANES; ++lane) at[lane] = root;
        const double* const cells = block + first * width;
        for (int32_t level = 0; level < depth; ++level) {
            uint32_t moved = 0;
#pragma GCC unroll 16
            for (size_t lane = 0; lane < LANES; ++lane) {
                const Node& node = nodes[at[lane]];
                const uint32_t next = node.left + static_cast<uint32_t>(cells[lane * width + node.column] >= node.threshold);
                moved |= next ^ at[lane];
                at[lane] = next;
            }
            if (!moved) break;
        }
        for (size_t lane = 0; lane < LANES; ++lane) sums[first + lane] += values[at[lane]];
    }
}

void forest_sum(In<uint64_t> nodes, In<double> values, In<uint32_t> roots, In<int32_t> depths, In<int32_t> columns, In<double> members,
                nb::list features, Out<double> sums) {
    const size_t rows = sums.shape(0);
    std::vector<In<double>> held;
    const std::vector<Column> made = checked_columns(columns, members, features, rows, held);
    const Node* const node = checked_nodes(nodes, values.shape(0), made.size());
    if (roots.shape(0) != depths.shape(0)) throw std::invalid_argument("roots and depths do not fit");
    for (size_t tree = 0; tree < roots.shape(0); ++tree)
        if (roots.data()[tree] >= values.shape(0)) throw std::invalid_argument("a root is no node");

    const size_t width = made.size();
    const size_t lanes = std::clamp<size_t>(SCRATCH_VALUES / width / LANES, 1, 64);
    const size_t block_rows = lanes * LANES;
    Clock clock;
    const GilRelease release(is_much(16 * rows * roots.shape(0)));
    std::vector<double> block(block_rows * width), added(block_rows);
    for (size_t first = 0; first < rows; first += block_rows) {
        const size_t here = std::min(block_rows, rows - first);
        for (size_t row = 0; row < here; ++row)
            for (size_t c = 0; c < width; ++c) block[row * width + c] = made[c].value(first + row);
        std::fill(added.begin(), added.end(), 0.0);
        for (size_t tree = 0; tree < roots.shape(0); ++tree) {
            walk(node, values.data(), roots.data()[tree], depths.data()[tree], block.data(), width, here, added.data());
            clock.spend(static_cast<int64_t>(here) * 16);
        }
        std::memcpy(sums.data() + first, added.data(), here * sizeof(double));
    }
}

}  // namespace

void bind_forest(nb::module_& m) {
    m.def("forest_sum", &forest_sum, nb::arg("nodes").noconvert(), nb::arg("values").noconvert(), nb::arg("roots").noconvert(),
          nb::arg("depths").noconvert(), nb::arg("columns").noconvert(), nb::arg("members").noconvert(), nb::arg("features"),
          nb::arg("sums").noconvert(), "The sum of a forest of decision trees for each row. Twin: tests.oracles.forest.forest_sum");
}

}  // namespace paperwasp
