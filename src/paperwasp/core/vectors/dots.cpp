// Dot products of each row of one matrix with each row of another, and of a vector with rows wherever they stand. The plain twin is in
// tests/oracles/dots.py.
//
// a: (n, size), b: (m, size), out: (n, m), all float or all double. A sum is added up in lanes and then lane by lane, in an order that
// depends on `size` alone: the same two rows always give the same number, wherever they stand. NaN is no special case of a product.
// dots_at: vector (size), rows (n, size), starts (m) the number of a row, counts (m) 0 where there is none: the number is `nothing` then.
#include "vectors/dots.hpp"

#include <algorithm>
#include <cstring>
#include <memory>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "clock.hpp"
#include "clones.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t VECTOR_BYTES = 64;
constexpr size_t ROWS_AT_A_TIME = 4;             // of rows in the cache
constexpr size_t AHEAD_BYTES = 4096;             // beyond a page, where the processor's own looking ahead ends
constexpr size_t CACHE_BYTES = size_t{1} << 15;  // of rows of b that are used for all rows of a before the next

template <typename T>
struct Lanes {
    typedef T type __attribute__((vector_size(VECTOR_BYTES)));
    typedef T four __attribute__((vector_size(4 * sizeof(T))));
};

// The upper half of the lanes onto the lower one, until one is left.
template <typename T>
PAPERWASP_INLINE T added_up(const typename Lanes<T>::type& sums) {
    constexpr size_t FOURS = VECTOR_BYTES / sizeof(typename Lanes<T>::four);
    typename Lanes<T>::four parts[FOURS];
    std::memcpy(parts, &sums, sizeof parts);
    for (size_t width = FOURS / 2; width > 0; width /= 2)
        for (size_t part = 0; part < width; ++part) parts[part] += parts[part + width];
    return (parts[0][0] + parts[0][2]) + (parts[0][1] + parts[0][3]);
}

// from_memory: the rows of b are not in the cache yet, and are asked for before they are needed.
template <typename T, size_t ROWS, bool from_memory = false>
PAPERWASP_INLINE void dots_of(const T* a, const T* b, size_t size, T* out) {
    using Vector = typename Lanes<T>::type;
    constexpr size_t LANES = VECTOR_BYTES / sizeof(T);
    Vector sums[ROWS] = {};
    size_t i = 0;
    for (; i + LANES <= size; i += LANES) {
        Vector x, y;
        std::memcpy(&x, a + i, sizeof x);
        for (size_t row = 0; row < ROWS; ++row) {
            if (from_memory) __builtin_prefetch(reinterpret_cast<const char*>(b + row * size + i) + AHEAD_BYTES);
            std::memcpy(&y, b + row * size + i, sizeof y);
            sums[row] += x * y;
        }
    }
    if (i < size) {
        Vector x = {}, y = {};
        std::memcpy(&x, a + i, (size - i) * sizeof(T));
        for (size_t row = 0; row < ROWS; ++row) {
            std::memcpy(&y, b + row * size + i, (size - i) * sizeof(T));
            sums[row] += x * y;
        }
    }
    for (size_t row = 0; row < ROWS; ++row) out[row] = added_up<T>(sums[row]);
}

template <typename T>
PAPERWASP_INLINE void row_with_rows(const T* a, const T* b, size_t m, size_t size, T* out) {
    size_t j = 0;
    for (; j + ROWS_AT_A_TIME <= m; j += ROWS_AT_A_TIME) dots_of<T, ROWS_AT_A_TIME>(a, b + j * size, size, out + j);
    for (; j < m; ++j) dots_of<T, 1>(a, b + j * size, size, out + j);
}

#define ROW_WITH_ROWS_OF(T) \
    PAPERWASP_CLONES void dots_with(const T* a, const T* b, size_t m, size_t size, T* out) { row_with_rows(a, b, m, size, out); }
ROW_WITH_ROWS_OF(float)
ROW_WITH_ROWS_OF(double)

template <typename T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

template <typename T>
size_t rows_in_cache(size_t size) {
    return std::max(ROWS_AT_A_TIME, CACHE_BYTES / sizeof(T) / std::max(size, size_t{1}) / ROWS_AT_A_TIME * ROWS_AT_A_TIME);
}

template <typename T>
void all_dots(Matrix<T> a, Matrix<T> b, OutMatrix<T> out) {
    const size_t n = a.shape(0), m = b.shape(0), size = a.shape(1);
    if (b.shape(1) != size) throw std::invalid_argument("rows of different sizes");
    if (out.shape(0) != n || out.shape(1) != m) throw std::invalid_argument("a number for each pair of rows");
    const T *rows = a.data(), *others = b.data();
    T* to = out.data();
    const size_t step = rows_in_cache<T>(size);
    Clock clock;
    const GilRelease release(is_much(n * m * (size / 4 + 1)));
    for (size_t from = 0; from < m; from += step) {
        const size_t count = std::min(step, m - from);
        for (size_t i = 0; i < n; ++i) {
            clock.spend(static_cast<int64_t>(count * size / 8 + 1));
            dots_with(rows + i * size, others + from * size, count, size, to + i * m + from);
        }
    }
}

template <typename T>
nb::object dots_at(In<T> vector, Matrix<T> rows, In<int64_t> starts, In<int64_t> counts, T nothing) {
    const size_t size = rows.shape(1), n = rows.shape(0), m = starts.size();
    if (vector.size() != size) throw std::invalid_argument("rows of different sizes");
    if (counts.size() != m) throw std::invalid_argument("a count for each row");
    auto found = std::make_unique<std::vector<double>>(m);
    {
        const GilRelease release(is_much(m * (size / 4 + 1)));
        Clock clock;
        T numbers[ROWS_AT_ONCE];
        for (size_t from = 0; from < m; from += ROWS_AT_ONCE) {
            const int64_t *row = starts.data() + from, *count = counts.data() + from;
            const auto place = [=](size_t i) -> size_t { return count[i] == 0 ? NO_ROW : row[i] < 0 ? n : static_cast<size_t>(row[i]); };
            const size_t some = std::min(ROWS_AT_ONCE, m - from);
            dots_at_places(vector.data(), rows.data(), n, size, some, place, nothing, numbers, clock);
            std::copy(numbers, numbers + some, found->begin() + static_cast<std::ptrdiff_t>(from));
        }
    }
    return own(std::move(found));
}

template <typename T>
void bind_one(nb::module_& m) {
    m.def("all_dots", &all_dots<T>, nb::arg("a").noconvert(), nb::arg("b").noconvert(), nb::arg("out").noconvert());
    m.def("dots_at", &dots_at<T>, nb::arg("vector").noconvert(), nb::arg("rows").noconvert(), nb::arg("starts").noconvert(),
          nb::arg("counts").noconvert(), nb::arg("nothing"));
}

}  // namespace

// Memory gives one run of addresses faster than several: 100,000 rows of 128 floats take 1.1 ms; four at a time, without asking ahead, 1.9.
#define DOTS_IN_TURN_OF(T)                                                                      \
    PAPERWASP_CLONES void dots_in_turn(const T* a, const T* b, size_t m, size_t size, T* out) { \
        for (size_t j = 0; j < m; ++j) dots_of<T, 1, true>(a, b + j * size, size, out + j);     \
    }
DOTS_IN_TURN_OF(float)
DOTS_IN_TURN_OF(double)

void bind_dots(nb::module_& m) {
    bind_one<float>(m);
    bind_one<double>(m);
}

}  // namespace paperwasp
