// The first groups of each parent by several keys, without sorting those that are not among them. The plain twin is in
// tests/oracles/grouping.py.
//
// Keys are columns of int64 or double, most important first, lower ones before higher ones; NaN is behind all numbers, and both zeros are
// equal. Of groups that are equal in all keys the lower number comes first. Throws ValueError for columns of other lengths or types.
#include "arrays.hpp"
#include "clock.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <numeric>
#include <stdexcept>
#include <type_traits>
#include <utility>
#include <vector>

namespace paperwasp {
namespace {

constexpr size_t BLOCK_GROUPS = 4096;  // between two looks at the clock
constexpr size_t COUNTED_PARENTS = 1 << 16;

// An integer that rises with the double.
int64_t rising(double number) {
    if (std::isnan(number)) return INT64_MAX;
    number += 0.0;  // one zero of both
    int64_t bits;
    std::memcpy(&bits, &number, sizeof bits);
    return bits ^ static_cast<int64_t>(static_cast<uint64_t>(bits >> 63) >> 1);
}

class Keys {
  public:
    Keys() = default;

    Keys(nb::list columns, size_t groups) {
        for (nb::handle column : columns) {
            In<double> doubles;
            if (nb::try_cast(column, doubles, false)) {
                check(doubles.shape(0), groups);
                std::vector<int64_t> own(groups);
                std::transform(doubles.data(), doubles.data() + groups, own.begin(), rising);
                made_.push_back(std::move(own));
                columns_.push_back(made_.back().data());
            } else {
                const auto numbers = as_given<int64_t>(column);
                check(numbers.shape(0), groups);
                given_.push_back(numbers);
                columns_.push_back(numbers.data());
            }
        }
    }

    // A column of as many integers as there are groups, behind those that are there.
    void add(std::vector<int64_t> column) {
        made_.push_back(std::move(column));
        columns_.push_back(made_.back().data());
    }

    void pop() { columns_.pop_back(); }

    size_t count() const { return columns_.size(); }

    bool are_equal(uint32_t one, uint32_t other) const {
        return std::all_of(columns_.begin(), columns_.end(), [=](const int64_t* column) { return column[one] == column[other]; });
    }

    bool before(uint32_t one, uint32_t other) const {
        for (const int64_t* column : columns_) {
            if (column[one] != column[other]) return column[one] < column[other];
        }
        return one < other;
    }

  private:
    static void check(size_t found, size_t groups) {
        if (found != groups) throw std::invalid_argument("a key for each group");
    }

    std::vector<std::vector<int64_t>> made_;
    std::vector<In<int64_t>> given_;
    std::vector<const int64_t*> columns_;
};

using Numbers = std::vector<uint32_t>;

// What sorting this many groups costs, in steps.
int64_t sort_steps(size_t count, const Keys& keys) {
    int64_t levels = 1;
    for (size_t left = count; left > 1; left /= 2) ++levels;
    return static_cast<int64_t>(count) * levels * 4 * static_cast<int64_t>(keys.count() + 1);
}

// Sorts the first `most` to the front of the numbers from `begin` to `end`; gives how many these are.
size_t sort_first(uint32_t* begin, uint32_t* end, size_t most, const Keys& keys, Clock& clock) {
    const auto before = [&](uint32_t one, uint32_t other) { return keys.before(one, other); };
    const size_t count = static_cast<size_t>(end - begin);
    clock.spend(static_cast<int64_t>(8 * count));
    if (most < count) std::nth_element(begin, begin + most, end, before);
    const size_t kept = std::min(most, count);
    clock.spend(sort_steps(kept, keys));
    std::sort(begin, begin + kept, before);
    return kept;
}

// The first of all groups: of twice as many as wanted the worse half goes, and the last that stays is the bound from then on.
Numbers first_of_all(size_t groups, size_t most, const Keys& keys, Clock& clock) {
    Numbers best;
    best.reserve(std::min(groups, 2 * most));
    bool bounded = false;
    uint32_t bound = 0;
    const auto before = [&](uint32_t one, uint32_t other) { return keys.before(one, other); };
    for (size_t start = 0; start < groups; start += BLOCK_GROUPS) {
        const size_t end = std::min(groups, start + BLOCK_GROUPS);
        clock.spend(static_cast<int64_t>(8 * (end - start)));
        for (size_t group = start; group < end; ++group) {
            const uint32_t number = static_cast<uint32_t>(group);
            if (bounded && !keys.before(number, bound)) continue;
            best.push_back(number);
            if (best.size() < 2 * most) continue;
            std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(most - 1), best.end(), before);
            best.resize(most);
            bound = best[most - 1];
            bounded = true;
        }
    }
    best.resize(sort_first(best.data(), best.data() + best.size(), most, keys, clock));
    return best;
}

// The numbers of all groups, parent by parent, rising within a parent.
Numbers by_parent(const uint32_t* parents, size_t groups, Clock& clock) {
    Numbers numbers(groups);
    const size_t parents_count = size_t{*std::max_element(parents, parents + groups)} + 1;
    if (parents_count > COUNTED_PARENTS && parents_count / 4 > groups) {  // most parents have none: these are not counted
        std::iota(numbers.begin(), numbers.end(), 0);
        clock.spend(static_cast<int64_t>(64 * groups));
        std::stable_sort(numbers.begin(), numbers.end(), [=](uint32_t one, uint32_t other) { return parents[one] < parents[other]; });
        return numbers;
    }
    std::vector<size_t> next(parents_count + 1);
    clock.spend(static_cast<int64_t>(4 * groups + parents_count));
    for (size_t group = 0; group < groups; ++group) ++next[parents[group] + 1];
    for (size_t parent = 0; parent < parents_count; ++parent) next[parent + 1] += next[parent];
    for (size_t group = 0; group < groups; ++group) numbers[next[parents[group]]++] = static_cast<uint32_t>(group);
    return numbers;
}

// The first of each parent, parent by parent.
Numbers first_of_each(const uint32_t* parents, size_t groups, size_t most, const Keys& keys, Clock& clock) {
    Numbers numbers = by_parent(parents, groups, clock), found;
    for (size_t start = 0, end = 0; start < groups; start = end) {
        while (end < groups && parents[numbers[end]] == parents[numbers[start]]) ++end;
        uint32_t* begin = numbers.data() + start;
        found.insert(found.end(), begin, begin + sort_first(begin, numbers.data() + end, most, keys, clock));
    }
    return found;
}

nb::object first_groups(In<uint32_t> parents, nb::list columns, size_t most) {
    const size_t groups = parents.shape(0);
    if (groups >= UINT32_MAX) throw std::invalid_argument("too many groups");
    const Keys keys(columns, groups);
    auto found = std::make_unique<std::vector<int64_t>>();
    if (groups > 0 && most > 0) {
        const GilRelease release(is_much(8 * groups));
        Clock clock;
        const uint32_t* parent = parents.data();
        const bool is_one = std::all_of(parent, parent + groups, [=](uint32_t each) { return each == parent[0]; });
        const Numbers numbers =
            is_one ? first_of_all(groups, std::min(most, groups), keys, clock) : first_of_each(parent, groups, most, keys, clock);
        found->assign(numbers.begin(), numbers.end());
    }
    return own(std::move(found));
}

// What all groups of one parent are ordered by: how many rows they have, and their best relevance, falling.
Keys counted_keys(In<int64_t> counts, In<double> relevances, int order) {
    const size_t groups = counts.shape(0);
    Keys keys;
    if (order != 0) {
        std::vector<int64_t> column(counts.data(), counts.data() + groups);
        if (order < 0) std::transform(column.begin(), column.end(), column.begin(), [](int64_t count) { return ~count; });
        keys.add(std::move(column));
    }
    std::vector<int64_t> falling(groups);
    std::transform(relevances.data(), relevances.data() + groups, falling.begin(), [](double relevance) { return rising(-relevance); });
    keys.add(std::move(falling));
    return keys;
}

// Of groups that `count_values` made: the first `most`, and whether two of these are equal in all but their values, which are no numbers.
template <typename Value>
nb::tuple first_counted(In<Value> values, In<int64_t> counts, In<double> relevances, In<uint32_t> rows, int order, size_t most) {
    const size_t groups = values.shape(0);
    if (counts.shape(0) != groups || relevances.shape(0) != groups || rows.shape(0) != groups)
        throw std::invalid_argument("a count, a relevance and a row for each value");
    auto found = std::make_unique<std::vector<int64_t>>();
    bool has_equal = false;
    {
        const GilRelease release(is_much(8 * groups));
        Clock clock;
        clock.spend(static_cast<int64_t>(4 * groups));
        Keys keys = counted_keys(counts, relevances, order);
        Numbers numbers(groups);
        if (most < groups) {
            keys.add({rows.data(), rows.data() + groups});
            numbers = most > 0 ? first_of_all(groups, most, keys, clock) : Numbers();
            keys.pop();
        } else {
            std::iota(numbers.begin(), numbers.end(), 0);
        }
        if constexpr (std::is_same_v<Value, int64_t>) keys.add({values.data(), values.data() + groups});
        sort_first(numbers.data(), numbers.data() + numbers.size(), numbers.size(), keys, clock);
        if constexpr (!std::is_same_v<Value, int64_t>)
            has_equal = std::adjacent_find(numbers.begin(), numbers.end(),
                                           [&](uint32_t one, uint32_t other) { return keys.are_equal(one, other); }) != numbers.end();
        found->assign(numbers.begin(), numbers.end());
    }
    return nb::make_tuple(own(std::move(found)), has_equal);
}

template <typename Value>
void bind_first_counted(nb::module_& m) {
    m.def("first_counted", &first_counted<Value>, nb::arg("values").noconvert(), nb::arg("counts").noconvert(),
          nb::arg("relevances").noconvert(), nb::arg("rows").noconvert(), nb::arg("order"), nb::arg("most"));
}

}  // namespace

void bind_group_order(nb::module_& m) {
    bind_first_counted<uint32_t>(m);
    bind_first_counted<int64_t>(m);
    m.def("first_groups", &first_groups, nb::arg("parents").noconvert(), nb::arg("keys"), nb::arg("most"));
}

}  // namespace paperwasp
