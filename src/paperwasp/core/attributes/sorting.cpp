// Which rows of a column can be among the first ones in its order: see sorting.hpp. The NumPy twin is in tests/oracles/sorting.py.
#include "attributes/sorting.hpp"

#include <algorithm>
#include <memory>
#include <stdexcept>
#include <vector>

#include "arrays.hpp"
#include "clock.hpp"

namespace paperwasp {
namespace {

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
