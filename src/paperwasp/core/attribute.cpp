// Attribute kernels: which rows of a column have a value in a range, or in a set, as a bitmap.
//
// Bitmap: bit (lid & 63) of word (lid >> 6). `bitmap` is written whole: (n + 63) / 64 words, n being the number of rows.
// Ranges are closed: low <= value <= high; NaN is in none. The NumPy twins are in attribute.py.
// The writer of a column may store into single elements while a kernel reads: a row shows its old or its new value.
#include "core.hpp"

#include <stdexcept>
#include <string>

namespace paperwasp {
namespace {

// Eight bytes that are 0 or 1 to eight bits, the first byte lowest.
inline uint64_t pack8(const uint8_t* flags) {
    uint64_t bytes = 0;
    for (int i = 0; i < 8; ++i) bytes |= static_cast<uint64_t>(flags[i]) << (8 * i);
    return (bytes * 0x0102040810204080ull) >> 56;
}

inline uint64_t pack64(const uint8_t* flags) {
    uint64_t word = 0;
    for (int i = 0; i < 8; ++i) word |= pack8(flags + 8 * i) << (8 * i);
    return word;
}

void check_size(size_t words, size_t rows) {
    if (words != (rows + 63) / 64) throw std::invalid_argument("bitmap has " + std::to_string(words) + " words for " + std::to_string(rows) + " rows");
}

// Fills the bitmap from a test of one row; the test is inlined into a loop over 64 rows that vectorizes where it can.
template <typename Test>
void fill(uint64_t* words, size_t rows, Test test) {
    uint8_t flags[64];
    size_t row = 0;
    for (; row + 64 <= rows; row += 64) {
        for (size_t i = 0; i < 64; ++i) flags[i] = test(row + i);
        *words++ = pack64(flags);
    }
    if (row < rows) {
        uint64_t last = 0;
        for (size_t i = 0; row + i < rows; ++i) last |= static_cast<uint64_t>(test(row + i)) << i;
        *words = last;
    }
}

template <typename T>
void range_bitmap(In<T> values, T low, T high, Out<uint64_t> bitmap) {
    const size_t rows = values.shape(0);
    check_size(bitmap.shape(0), rows);
    const T* v = values.data();
    uint64_t* words = bitmap.data();
    nb::gil_scoped_release release;
    fill(words, rows, [=](size_t i) -> uint8_t { return (v[i] >= low) & (v[i] <= high); });
}

// Rows whose code has a one in `table`; codes beyond it are in no set.
void member_bitmap(In<uint32_t> codes, In<uint8_t> table, Out<uint64_t> bitmap) {
    const size_t rows = codes.shape(0), size = table.shape(0);
    check_size(bitmap.shape(0), rows);
    const uint32_t* code = codes.data();
    const uint8_t* member = table.data();
    uint64_t* words = bitmap.data();
    nb::gil_scoped_release release;
    fill(words, rows, [=](size_t i) -> uint8_t { return code[i] < size && member[code[i]]; });
}

// `rows[lid]` says where the row's elements stand in `values`: offset << 24 | length. A row that points outside has none.
template <typename Any>
void fill_rows(const uint64_t* rows, size_t count, size_t elements, uint64_t* words, Any any) {
    fill(words, count, [=](size_t i) -> uint8_t {
        const uint64_t start = rows[i] >> 24, length = rows[i] & 0xFFFFFF;
        return start + length <= elements && any(start, start + length);
    });
}

template <typename T>
void array_range_bitmap(In<T> values, In<uint64_t> rows, T low, T high, Out<uint64_t> bitmap) {
    check_size(bitmap.shape(0), rows.shape(0));
    const T* v = values.data();
    const uint64_t* r = rows.data();
    const size_t count = rows.shape(0), elements = values.shape(0);
    uint64_t* words = bitmap.data();
    nb::gil_scoped_release release;
    fill_rows(r, count, elements, words, [=](uint64_t from, uint64_t to) -> uint8_t {
        for (uint64_t i = from; i < to; ++i)
            if (v[i] >= low && v[i] <= high) return 1;
        return 0;
    });
}

void array_member_bitmap(In<uint32_t> codes, In<uint64_t> rows, In<uint8_t> table, Out<uint64_t> bitmap) {
    check_size(bitmap.shape(0), rows.shape(0));
    const uint32_t* code = codes.data();
    const uint64_t* r = rows.data();
    const uint8_t* member = table.data();
    const size_t count = rows.shape(0), elements = codes.shape(0), size = table.shape(0);
    uint64_t* words = bitmap.data();
    nb::gil_scoped_release release;
    fill_rows(r, count, elements, words, [=](uint64_t from, uint64_t to) -> uint8_t {
        for (uint64_t i = from; i < to; ++i)
            if (code[i] < size && member[code[i]]) return 1;
        return 0;
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
    m.def("member_bitmap", &member_bitmap, nb::arg("codes").noconvert(), nb::arg("table").noconvert(), nb::arg("bitmap").noconvert());
    m.def("array_member_bitmap", &array_member_bitmap, nb::arg("codes").noconvert(), nb::arg("rows").noconvert(), nb::arg("table").noconvert(),
          nb::arg("bitmap").noconvert());
}

}  // namespace paperwasp
