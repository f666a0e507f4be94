// Which rows of a column have a value of a set, as a bitmap. The NumPy twins are in tests/oracles/attribute.py.
//
// A set of strings is a table of a byte per code. A set of numbers is an array of them, rising. Either becomes bits that are cheap to ask:
// where the numbers lie close together one bit for each number between them, which says it all; elsewhere one bit for each hash, whose
// yes is asked again of a table of the numbers. Few numbers are compared one by one. Floating point: -0.0 is 0.0, and NaN is in no set.
//
// The writer of a column may store into single elements while a kernel reads: a row shows its old or its new value.
#include <cstring>
#include <type_traits>
#include <vector>

#include "attributes/bit_test.hpp"
#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t FEW = 6;
constexpr uint64_t CLOSE = uint64_t{1} << 22;            // numbers from the least to the greatest: their bits stay in the cache
constexpr unsigned LEAST_FILTER = 13, MOST_FILTER = 22;  // bits of a hash

template <typename T>
using Word = std::conditional_t<sizeof(T) == 8, uint64_t, uint32_t>;

// Equal numbers have equal keys.
template <typename T>
PAPERWASP_INLINE Word<T> key_of(T value) {
    if constexpr (std::is_floating_point_v<T>) {
        value += T{0};
        Word<T> bits;
        std::memcpy(&bits, &value, sizeof bits);
        return bits;
    } else {
        return static_cast<Word<T>>(static_cast<std::conditional_t<sizeof(T) == 8, int64_t, int32_t>>(value));
    }
}

template <typename W>
PAPERWASP_INLINE W hash_of(W key, unsigned shift) {
    if constexpr (sizeof(W) == 8)
        return (key * 0x9E3779B97F4A7C15ull) >> shift;
    else
        return (key * 0x9E3779B1u) >> shift;
}

// Bits by number from `low`; a number beyond the last finds the zero behind it.
template <typename W>
struct CloseSet {
    W low = 0;
    W beyond = 0;
    const uint32_t* bits = nullptr;

    PAPERWASP_INLINE uint8_t has(W key) const {
        W at = static_cast<W>(key - low);
        at = at < beyond ? at : beyond;
        return bits[at >> 5] >> (at & 31) & 1;
    }
};

template <typename W>
struct HashSet {
    unsigned filter_shift = 0, table_shift = 0;
    const uint32_t* bits = nullptr;
    std::vector<W> keys;         // open addressing, at most half full
    std::vector<uint8_t> taken;  // which places have a key

    PAPERWASP_INLINE uint8_t may_have(W key) const {
        const W at = hash_of(key, filter_shift);
        return bits[at >> 5] >> (at & 31) & 1;
    }

    bool has(W key) const {
        const size_t mask = keys.size() - 1;
        for (size_t at = hash_of(key, table_shift);; ++at) {
            if (!taken[at & mask]) return false;
            if (keys[at & mask] == key) return true;
        }
    }
};

template <typename W>
HashSet<W> hash_set(const std::vector<W>& keys, std::vector<uint32_t>& bits) {
    constexpr unsigned width = 8 * sizeof(W);
    unsigned size = 1;
    while ((size_t{1} << size) < keys.size() * 2) ++size;
    unsigned filter = size + 7;
    filter = filter < LEAST_FILTER ? LEAST_FILTER : filter > MOST_FILTER ? MOST_FILTER : filter;
    HashSet<W> set;
    set.filter_shift = width - filter;
    set.table_shift = width - size;
    set.keys.resize(size_t{1} << size);
    set.taken.resize(size_t{1} << size);
    bits.assign((size_t{1} << filter) / 32, 0);
    for (const W key : keys) {
        const W at = hash_of(key, set.filter_shift);
        bits[at >> 5] |= 1u << (at & 31);
        size_t place = hash_of(key, set.table_shift);
        while (set.taken[place & (set.keys.size() - 1)]) ++place;
        set.keys[place & (set.keys.size() - 1)] = key;
        set.taken[place & (set.keys.size() - 1)] = 1;
    }
    set.bits = bits.data();
    return set;
}

// The bits of 64 rows at a time: `at` says which bit a row asks for.
template <typename T, typename At>
PAPERWASP_INLINE void fill_tested(const T* values, uint64_t* words, size_t rows, const uint32_t* bits, BitTest test, At at) {
    fill_words(words, rows, test.held ? RUNS : 1, [=](size_t row) PAPERWASP_INLINED {
        uint32_t places[64];
        fetch_ahead(values, row);
        for (size_t i = 0; i < 64; ++i) places[i] = at(row + i);
        return test.word_of(places, bits);
    });
    if (const size_t row = rows / 64 * 64; row < rows) {
        uint32_t places[64];
        for (size_t i = 0; i < 64; ++i) places[i] = row + i < rows ? at(row + i) : 0;
        words[row / 64] = test.word_of(places, bits) & ((uint64_t{1} << (rows - row)) - 1);
    }
}

#define FILLS_OF(T)                                                                                                               \
    PAPERWASP_CLONES void fill_few(const T* values, size_t rows, const T* n, uint64_t* words) {                                   \
        const T a = n[0], b = n[1], c = n[2], d = n[3], e = n[4], f = n[5];                                                       \
        fill(                                                                                                                     \
            words, rows,                                                                                                          \
            [=](size_t i) -> uint8_t {                                                                                            \
                const T v = values[i];                                                                                            \
                return (v == a) | (v == b) | (v == c) | (v == d) | (v == e) | (v == f);                                           \
            },                                                                                                                    \
            values);                                                                                                              \
    }                                                                                                                             \
    PAPERWASP_CLONES void fill_close(const T* values, size_t rows, CloseSet<Word<T>> set, BitTest test, uint64_t* words) {        \
        const Word<T> low = set.low, beyond = set.beyond;                                                                         \
        fill_tested(values, words, rows, set.bits, test, [=](size_t i) {                                                          \
            const Word<T> at = static_cast<Word<T>>(key_of(values[i]) - low);                                                     \
            return static_cast<uint32_t>(at < beyond ? at : beyond);                                                              \
        });                                                                                                                       \
    }                                                                                                                             \
    PAPERWASP_CLONES void fill_hashed(const T* values, size_t rows, const HashSet<Word<T>>& set, BitTest test, uint64_t* words) { \
        const unsigned shift = set.filter_shift;                                                                                  \
        fill_tested(values, words, rows, set.bits, test,                                                                          \
                    [=](size_t i) { return static_cast<uint32_t>(hash_of(key_of(values[i]), shift)); });                          \
    }
FILLS_OF(int8_t)
FILLS_OF(int32_t)
FILLS_OF(int64_t)
FILLS_OF(uint32_t)
FILLS_OF(float)
FILLS_OF(double)

// Takes away the bits of rows that the set does not have.
template <typename T>
void verify(const T* values, size_t rows, const HashSet<Word<T>>& set, uint64_t* words) {
    for (size_t w = 0; w < (rows + 63) / 64; ++w)
        for (uint64_t left = words[w]; left != 0; left &= left - 1) {
            const unsigned bit = static_cast<unsigned>(__builtin_ctzll(left));
            if (!set.has(key_of(values[w * 64 + bit]))) words[w] &= ~(uint64_t{1} << bit);
        }
}

// The numbers of a set that can be found, and what to find them by.
template <typename T>
struct Numbers {
    std::vector<Word<T>> keys;
    std::vector<uint32_t> bits;
    CloseSet<Word<T>> close;
    HashSet<Word<T>> hashed;
    bool is_close = false;

    Numbers(const T* numbers, size_t count) {
        keys.reserve(count);
        for (size_t i = 0; i < count; ++i)
            if (numbers[i] == numbers[i]) keys.push_back(key_of(numbers[i]));
        if constexpr (!std::is_floating_point_v<T>) {
            // They rise, so the difference of keys is that of the numbers.
            const uint64_t between = keys.empty() ? 0 : static_cast<Word<T>>(keys.back() - keys.front());
            if (between < CLOSE) {
                is_close = true;
                close.low = keys.empty() ? 0 : keys.front();
                close.beyond = static_cast<Word<T>>(between + 1);
                bits.assign(words_of_bits(between + 2), 0);
                for (const Word<T> key : keys) {
                    const Word<T> at = static_cast<Word<T>>(key - close.low);
                    if (at > between) throw std::invalid_argument("the numbers of a set rise");
                    bits[at >> 5] |= 1u << (at & 31);
                }
                close.bits = bits.data();
                return;
            }
        }
        hashed = hash_set(keys, bits);
    }

    bool has(T value) const {
        const Word<T> key = key_of(value);
        return is_close ? close.has(key) : hashed.may_have(key) && hashed.has(key);
    }
};

template <typename T>
void set_bitmap(In<T> values, In<T> numbers, Out<uint64_t> bitmap) {
    const size_t rows = values.shape(0), count = numbers.shape(0);
    check_bitmap(bitmap.shape(0), rows);
    const T *v = values.data(), *n = numbers.data();
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(rows));
    const GilRelease release(is_much(rows + 20 * count));
    if (count > 0 && count <= FEW) {
        T few[FEW];
        for (size_t i = 0; i < FEW; ++i) few[i] = n[i < count ? i : 0];
        fill_few(v, rows, few, words);
        return;
    }
    const Numbers<T> set(n, count);
    if (set.is_close) {
        fill_close(v, rows, set.close, test_bits(set.bits.size()), words);
    } else {
        fill_hashed(v, rows, set.hashed, test_bits(set.bits.size()), words);
        verify(v, rows, set.hashed, words);
    }
}

template <typename T>
void array_set_bitmap(In<T> values, In<uint64_t> rows, In<T> numbers, Out<uint64_t> bitmap) {
    const size_t count = rows.shape(0), elements = values.shape(0);
    check_bitmap(bitmap.shape(0), count);
    const T* v = values.data();
    const uint64_t* r = rows.data();
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(count));
    const GilRelease release(is_much(2 * (count + elements)));
    const Numbers<T> set(numbers.data(), numbers.shape(0));
    fill(words, count, [&](size_t i) -> uint8_t { return any_element(r[i], elements, [&](uint64_t place) { return set.has(v[place]); }); });
}

// A table of bytes as bits.
CloseSet<uint32_t> set_of_table(In<uint8_t> table, std::vector<uint32_t>& bits) {
    const size_t size = table.shape(0);
    if (size >= INT32_MAX) throw std::invalid_argument("a table of too many codes");
    bits.assign(words_of_bits(size + 1), 0);
    for (size_t code = 0; code < size; ++code) bits[code >> 5] |= static_cast<uint32_t>(table.data()[code] != 0) << (code & 31);
    return {0, static_cast<uint32_t>(size), bits.data()};
}

// Rows whose code has a one in `table`; codes beyond it are in no set.
void member_bitmap(In<uint32_t> codes, In<uint8_t> table, Out<uint64_t> bitmap) {
    const size_t rows = codes.shape(0);
    check_bitmap(bitmap.shape(0), rows);
    const uint32_t* code = codes.data();
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(rows));
    const GilRelease release(is_much(rows));
    std::vector<uint32_t> bits;
    const CloseSet<uint32_t> set = set_of_table(table, bits);
    fill_close(code, rows, set, test_bits(bits.size()), words);
}

void array_member_bitmap(In<uint32_t> codes, In<uint64_t> rows, In<uint8_t> table, Out<uint64_t> bitmap) {
    const size_t count = rows.shape(0), elements = codes.shape(0);
    check_bitmap(bitmap.shape(0), count);
    const uint32_t* code = codes.data();
    const uint64_t* r = rows.data();
    uint64_t* words = bitmap.data();
    Clock().spend(static_cast<int64_t>(count));
    const GilRelease release(is_much(2 * (count + elements)));
    std::vector<uint32_t> bits;
    const CloseSet<uint32_t> set = set_of_table(table, bits);
    fill(words, count,
         [&](size_t i) -> uint8_t { return any_element(r[i], elements, [&](uint64_t place) { return set.has(code[place]) != 0; }); });
}

template <typename T>
void bind_sets(nb::module_& m) {
    m.def("set_bitmap", &set_bitmap<T>, nb::arg("values").noconvert(), nb::arg("numbers").noconvert(), nb::arg("bitmap").noconvert());
    m.def("array_set_bitmap", &array_set_bitmap<T>, nb::arg("values").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("numbers").noconvert(), nb::arg("bitmap").noconvert());
}

}  // namespace

void bind_value_sets(nb::module_& m) {
    bind_sets<int8_t>(m);
    bind_sets<int32_t>(m);
    bind_sets<int64_t>(m);
    bind_sets<uint32_t>(m);
    bind_sets<float>(m);
    bind_sets<double>(m);
    m.def("member_bitmap", &member_bitmap, nb::arg("codes").noconvert(), nb::arg("table").noconvert(), nb::arg("bitmap").noconvert());
    m.def("array_member_bitmap", &array_member_bitmap, nb::arg("codes").noconvert(), nb::arg("rows").noconvert(),
          nb::arg("table").noconvert(), nb::arg("bitmap").noconvert());
}

}  // namespace paperwasp
