// Counts, sums and extremes of the values of groups in one pass over the rows. The plain twin is in tests/oracles/grouping.py.
//
// groups[i] is the group of row i, below `count`: out of bounds is a ValueError. What is returned has a number for each group.
#include "arrays.hpp"
#include "clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <stdexcept>
#include <type_traits>
#include <vector>

namespace paperwasp {
namespace {

constexpr size_t BLOCK_ROWS = 16'384;  // between two looks at the clock
constexpr size_t MOST_GROUPS = size_t{1} << 32;

template <typename T>
std::unique_ptr<std::vector<T>> each_group(size_t count, T start) {
    if (count > MOST_GROUPS) throw std::invalid_argument("too many groups");
    return std::make_unique<std::vector<T>>(count, start);
}

// Calls `row(row number, group)` for all rows. Throws OutOfTime.
template <typename Row>
void for_rows(In<uint32_t> groups, size_t count, Row row) {
    const size_t rows = groups.shape(0);
    const uint32_t* group = groups.data();
    const GilRelease release(is_much(2 * rows));
    Clock clock;
    for (size_t start = 0; start < rows; start += BLOCK_ROWS) {
        const size_t end = std::min(rows, start + BLOCK_ROWS);
        clock.spend(static_cast<int64_t>(3 * (end - start)));
        if (*std::max_element(group + start, group + end) >= count) throw std::invalid_argument("a group beyond their number");
        for (size_t i = start; i < end; ++i) row(i, group[i]);
    }
}

nb::object group_counts(In<uint32_t> groups, size_t count) {
    auto found = each_group<int64_t>(count, 0);
    int64_t* counts = found->data();
    for_rows(groups, count, [=](size_t, uint32_t group) { ++counts[group]; });
    return own(std::move(found));
}

template <typename T>
nb::object group_sums(In<T> values, In<uint32_t> groups, size_t count) {
    if (values.shape(0) != groups.shape(0)) throw std::invalid_argument("a group for each value");
    auto found = each_group<T>(count, 0);
    T* sums = found->data();
    const T* value = values.data();
    for_rows(groups, count, [=](size_t row, uint32_t group) {
        if constexpr (std::is_integral_v<T>)
            sums[group] = static_cast<T>(static_cast<uint64_t>(sums[group]) + static_cast<uint64_t>(value[row]));  // wraps
        else
            sums[group] += value[row];
    });
    return own(std::move(found));
}

template <typename T>
nb::object group_extremes(In<T> values, In<uint32_t> groups, size_t count, T start, bool is_max) {
    if (values.shape(0) != groups.shape(0)) throw std::invalid_argument("a group for each value");
    auto found = each_group<T>(count, start);
    T* best = found->data();
    const T* value = values.data();
    // What a comparison with NaN says is false: it is passed over.
    if (is_max)
        for_rows(groups, count, [=](size_t row, uint32_t group) {
            if (value[row] > best[group]) best[group] = value[row];
        });
    else
        for_rows(groups, count, [=](size_t row, uint32_t group) {
            if (value[row] < best[group]) best[group] = value[row];
        });
    return own(std::move(found));
}

nb::tuple group_best(In<double> values, In<uint32_t> groups, size_t count) {
    if (values.shape(0) != groups.shape(0)) throw std::invalid_argument("a group for each value");
    auto found = each_group<double>(count, -std::numeric_limits<double>::infinity());
    auto rows = each_group<uint32_t>(count, UINT32_MAX);
    double* best = found->data();
    uint32_t* first = rows->data();
    const double* value = values.data();
    for_rows(groups, count, [=](size_t row, uint32_t group) {
        if (value[row] > best[group] || first[group] == UINT32_MAX) {
            best[group] = std::isnan(value[row]) ? -std::numeric_limits<double>::infinity() : value[row];
            first[group] = static_cast<uint32_t>(row);
        }
    });
    return nb::make_tuple(own(std::move(found)), own(std::move(rows)));
}

template <typename T>
void bind_one(nb::module_& m) {
    m.def("group_sums", &group_sums<T>, nb::arg("values").noconvert(), nb::arg("groups").noconvert(), nb::arg("count"));
    m.def("group_extremes", &group_extremes<T>, nb::arg("values").noconvert(), nb::arg("groups").noconvert(), nb::arg("count"),
          nb::arg("start"), nb::arg("is_max"));
}

}  // namespace

void bind_group_values(nb::module_& m) {
    bind_one<int64_t>(m);
    bind_one<double>(m);
    m.def("group_counts", &group_counts, nb::arg("groups").noconvert(), nb::arg("count"));
    m.def("group_best", &group_best, nb::arg("values").noconvert(), nb::arg("groups").noconvert(), nb::arg("count"));
}

}  // namespace paperwasp
