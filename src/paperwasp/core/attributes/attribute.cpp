// Attribute kernels: which rows of a column have a value in a range, as a bitmap. (In a set: value_sets.cpp.)
//
// Ranges are closed: low <= value <= high; NaN is in none. The NumPy twins are in tests/oracles/attribute.py.
// The writer of a column may store into single elements while a kernel reads: a row shows its old or its new value.
#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

template <typename T>
PAPERWASP_INLINE void fill_range(const T* values, size_t rows, T low, T high, uint64_t* words) {
    fill(words, rows, [=](size_t i) -> uint8_t { return (values[i] >= low) & (values[i] <= high); }, values);
}

#define RANGE_OF(T)                                                                                \
    PAPERWASP_CLONES void range_of(const T* values, size_t rows, T low, T high, uint64_t* words) { \
        fill_range(values, rows, low, high, words);                                                \
    }
RANGE_OF(int8_t)
RANGE_OF(int32_t)
RANGE_OF(int64_t)
RANGE_OF(uint32_t)
RANGE_OF(float)
RANGE_OF(double)

template <typename T>
void range_bitmap(In<T> values, T low, T high, Out<uint64_t> bitmap) {
    const size_t rows = values.shape(0);
    check_bitmap(bitmap.shape(0), rows);
    const T* v = values.data();
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(rows));
    const GilRelease release(is_much(rows / 4));
    range_of(v, rows, low, high, words);
}

template <typename T>
void array_range_bitmap(In<T> values, In<uint64_t> rows, T low, T high, Out<uint64_t> bitmap) {
    check_bitmap(bitmap.shape(0), rows.shape(0));
    const T* v = values.data();
    const uint64_t* r = rows.data();
    const size_t count = rows.shape(0), elements = values.shape(0);
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(count));
    const GilRelease release(is_much(2 * (count + elements)));
    fill(words, count, [=](size_t i) -> uint8_t {
        return any_element(r[i], elements, [=](uint64_t place) { return v[place] >= low && v[place] <= high; });
    });
}

template <typename T>
void bind_ranges(nb::module_& m) {
    m.def("range_bitmap", &range_bitmap<T>, nb::arg("values").noconvert(), nb::arg("low"), nb::arg("high"), nb::arg("bitmap").noconvert());
    m.def("array_range_bitmap", &array_range_bitmap<T>, nb::arg("values").noconvert(), nb::arg("rows").noconvert(), nb::arg("low"),
          nb::arg("high"), nb::arg("bitmap").noconvert());
}

}  // namespace

void bind_attribute(nb::module_& m) {
    bind_ranges<int8_t>(m);
    bind_ranges<int32_t>(m);
    bind_ranges<int64_t>(m);
    bind_ranges<uint32_t>(m);
    bind_ranges<float>(m);
    bind_ranges<double>(m);
}

}  // namespace paperwasp
