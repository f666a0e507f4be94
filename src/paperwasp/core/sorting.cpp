// Which rows of a column can be among the first ones in its order, without sorting the rest.
//
// Bitmap: bit (lid & 63) of word (lid >> 6); bits from the number of rows on do not count. NaN is less than any number.
// The NumPy twin is in sorting.py. The writer of the column may store into single elements meanwhile: a row is then taken by its old
// or its new value, and may be missed or be one too many; nothing else happens.
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

template <typename T>
inline T comparable(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        if (std::isnan(value)) return -std::numeric_limits<T>::infinity();
    }
    return value;
}

template <typename Row>
void for_rows(const uint64_t* words, size_t rows, Row row) {
    const size_t count = (rows + 63) / 64;
    for (size_t i = 0; i < count; ++i) {
        uint64_t word = words[i];
        if (i + 1 == count && rows % 64) word &= (uint64_t{1} << (rows % 64)) - 1;
        for (; word; word &= word - 1) row(i * 64 + static_cast<size_t>(__builtin_ctzll(word)));
    }
}

// Rising lids of all rows whose value comes before, or equals, that of row `wanted` in the order of the values.
template <typename T, typename Before>
std::unique_ptr<std::vector<uint32_t>> first_of(const T* values, size_t rows, const uint64_t* words, size_t wanted, Before before) {
    auto found = std::make_unique<std::vector<uint32_t>>();
    // The best so far, unordered: when twice as many as wanted, the worse half goes, and the last that stays is the bound from then on.
    std::vector<T> best;
    best.reserve(2 * wanted);
    bool bounded = false;
    T bound{};
    const auto cut = [&] {
        std::nth_element(best.begin(), best.begin() + (wanted - 1), best.end(), before);
        best.resize(wanted);
        bound = best[wanted - 1];
        bounded = true;
    };
    for_rows(words, rows, [&](size_t row) {
        const T value = comparable(values[row]);
        if (bounded && !before(value, bound)) return;
        best.push_back(value);
        if (best.size() == 2 * wanted) cut();
    });
    if (best.size() >= wanted) cut();
    for_rows(words, rows, [&](size_t row) {
        if (!bounded || !before(bound, comparable(values[row]))) found->push_back(static_cast<uint32_t>(row));
    });
    return found;
}

template <typename T>
nb::object first_rows(In<T> values, In<uint64_t> bitmap, size_t wanted, bool descending) {
    const size_t rows = values.shape(0);
    if (bitmap.shape(0) < (rows + 63) / 64) throw std::invalid_argument("the bitmap has fewer rows than the column");
    if (wanted == 0) throw std::invalid_argument("no row is wanted");
    wanted = std::min(wanted, std::max<size_t>(rows, 1));
    std::unique_ptr<std::vector<uint32_t>> found;
    {
        Clock().spend(static_cast<int64_t>(2 * rows));
        const GilRelease release(is_much(rows));
        const T* v = values.data();
        found = descending ? first_of(v, rows, bitmap.data(), wanted, [](T a, T b) { return a > b; })
                           : first_of(v, rows, bitmap.data(), wanted, [](T a, T b) { return a < b; });
    }
    return own(std::move(found));
}

template <typename T>
void bind_type(nb::module_& m) {
    m.def("first_rows", &first_rows<T>, nb::arg("values").noconvert(), nb::arg("bitmap").noconvert(), nb::arg("wanted"),
          nb::arg("descending"));
}

}  // namespace

void bind_sorting(nb::module_& m) {
    bind_type<int8_t>(m);
    bind_type<int32_t>(m);
    bind_type<int64_t>(m);
    bind_type<float>(m);
    bind_type<double>(m);
}

}  // namespace paperwasp
