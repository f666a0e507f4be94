// Hits in the order of an attribute: see plan_order.hpp.
#include "plans/plan_order.hpp"

#include <algorithm>
#include <type_traits>
#include <utility>
#include <variant>

#include "attributes/sorting.hpp"
#include "clock.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t STEPS_OF_ROW = 2;

template <typename T, typename Before>
std::vector<uint32_t> first_by(const T* values, size_t rows, const uint64_t* bitmap, size_t wanted, Before before) {
    std::vector<std::pair<T, uint32_t>> found;  // by the values of now: they may change
    const auto candidates = first_of(values, rows, bitmap, wanted, before);
    for (const uint32_t lid : *candidates) found.emplace_back(value_now(values + lid), lid);
    Clock().spend(static_cast<int64_t>(16 * found.size()));
    const size_t count = std::min(wanted, found.size());
    std::partial_sort(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(count), found.end(),
                      [&](const auto& a, const auto& b) { return a.first != b.first ? before(a.first, b.first) : a.second < b.second; });
    std::vector<uint32_t> lids;
    for (size_t i = 0; i < count; ++i) lids.push_back(found[i].second);
    return lids;
}

}  // namespace

std::vector<uint32_t> first_in_order(const SnapshotColumn& column, bool descending, const uint64_t* bitmap, size_t words, size_t wanted) {
    Clock().spend(static_cast<int64_t>(steps_of_order(column)));
    return std::visit(
        [&](const auto& values) {
            using T = std::remove_cv_t<std::remove_reference_t<decltype(values.data()[0])>>;
            const size_t rows = std::min<size_t>(values.size(), words * 64), most = std::min(wanted, std::max<size_t>(rows, 1));
            return descending ? first_by(values.data(), rows, bitmap, most, [](T a, T b) { return a > b; })
                              : first_by(values.data(), rows, bitmap, most, [](T a, T b) { return a < b; });
        },
        column.values);
}

uint64_t steps_of_order(const SnapshotColumn& column) {
    return std::visit([](const auto& values) { return STEPS_OF_ROW * values.size(); }, column.values);
}

}  // namespace paperwasp
