// Distances from one vector to the vectors of documents, the least of each document. The plain twin is in distances.py.
//
// `cells` are vectors of `size` cells, one after another, of the column's type: float, double, int8, or bfloat16 as the upper halves of
// floats. Document i has the vectors rows[i] (offset << 24 | length); one that has none, or none that is a number, gets infinity. `query`
// has the column's type too, bfloat16 widened to float. Metrics, as in Vespa, before they become what people see:
//   EUCLIDEAN sum of squared differences    ANGULAR 1 - cosine    PRODUCT -dot product    HAMMING bits that differ (int8), or cells
//   GEODEGREES haversine of the central angle; two cells, latitude and longitude
// Sums of floats are in single precision, in 32 lanes that are added up at the end; of int8 in integers.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <type_traits>

#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "core.hpp"
#include "distances.hpp"
#include "hamming.hpp"

namespace paperwasp {
namespace {

constexpr size_t LANES = 32;

PAPERWASP_INLINE float wide(float cell) { return cell; }
PAPERWASP_INLINE double wide(double cell) { return cell; }
PAPERWASP_INLINE int32_t wide(int8_t cell) { return cell; }
PAPERWASP_INLINE float wide(Bfloat16 cell) {
    const uint32_t bits = static_cast<uint32_t>(cell.bits) << 16;
    float value;
    std::memcpy(&value, &bits, sizeof value);
    return value;
}

// The sum over all cells of term(query cell, cell), in lanes that vectorize. Integers: products of int8 in blocks that cannot overflow.
template <typename Sum, typename Q, typename C, typename Term>
PAPERWASP_INLINE double sum_of(const Q* query, const C* cells, size_t size, Term term) {
    constexpr size_t BLOCK = size_t{1} << 15;
    double total = 0;
    for (size_t from = 0; from < size; from += BLOCK) {
        const size_t to = size - from < BLOCK ? size : from + BLOCK;
        Sum lanes[LANES] = {};
        size_t i = from;
        for (; i + LANES <= to; i += LANES)
            for (size_t lane = 0; lane < LANES; ++lane) lanes[lane] += term(wide(query[i + lane]), wide(cells[i + lane]));
        for (; i < to; ++i) lanes[i % LANES] += term(wide(query[i]), wide(cells[i]));
        for (size_t width = LANES / 2; width > 0; width /= 2)
            for (size_t lane = 0; lane < width; ++lane) lanes[lane] += lanes[lane + width];
        total += static_cast<double>(lanes[0]);
    }
    return total;
}

#define KERNELS_OF(Q, C, Sum)                                                        \
    PAPERWASP_CLONES double dot_of(const Q* a, const C* b, size_t n) {               \
        return sum_of<Sum>(a, b, n, [](Sum x, Sum y) { return x * y; });             \
    }                                                                                \
    PAPERWASP_CLONES double norm_of(const C* a, size_t n) {                          \
        return sum_of<Sum>(a, a, n, [](Sum x, Sum y) { return x * y; });             \
    }                                                                                \
    PAPERWASP_CLONES double square_of(const Q* a, const C* b, size_t n) {            \
        return sum_of<Sum>(a, b, n, [](Sum x, Sum y) { return (x - y) * (x - y); }); \
    }

#define DIFFERING_OF(Q, C)                                                                      \
    PAPERWASP_CLONES double hamming_of(const Q* a, const C* b, size_t n) {                      \
        return sum_of<int32_t>(a, b, n, [](Q x, Q y) { return static_cast<int32_t>(x != y); }); \
    }
KERNELS_OF(float, float, float)
KERNELS_OF(double, double, double)
KERNELS_OF(int8_t, int8_t, int32_t)
KERNELS_OF(float, Bfloat16, float)
DIFFERING_OF(float, float)
DIFFERING_OF(double, double)
DIFFERING_OF(float, Bfloat16)

double hamming_of(const int8_t* a, const int8_t* b, size_t n) {
    double bits;
    differing_bits(a, b, 1, n, &bits);
    return bits;
}

template <typename Q, typename C>
double haversine_of(const Q* a, const C* b) {
    constexpr double RADIANS = M_PI / 180.0;
    const double latitude = wide(a[0]) * RADIANS, other = wide(b[0]) * RADIANS;
    const double up = std::sin((latitude - other) / 2), along = std::sin((wide(a[1]) * RADIANS - wide(b[1]) * RADIANS) / 2);
    return up * up + std::cos(latitude) * std::cos(other) * (along * along);
}

}  // namespace

template <typename Q, typename C>
Distance<Q, C>::Distance(uint32_t metric, const Q* query, size_t size)
    : metric_(metric), query_(query), size_(size), query_norm_(metric == ANGULAR ? norm_of(query, size) : 0) {}

template <typename Q, typename C>
double Distance<Q, C>::operator()(const C* cells) const {
    switch (metric_) {
        case EUCLIDEAN:
            return square_of(query_, cells, size_);
        case ANGULAR: {
            const double norms = query_norm_ * norm_of(cells, size_);
            return 1.0 - dot_of(query_, cells, size_) / (norms > 0 ? std::sqrt(norms) : 1.0);
        }
        case PRODUCT:
            return -dot_of(query_, cells, size_);
        case HAMMING:
            return hamming_of(query_, cells, size_);
        default:
            return haversine_of(query_, cells);
    }
}

template <typename Q, typename C>
void Distance<Q, C>::of_run(const C* cells, size_t count, double* distances) const {
    if constexpr (std::is_same_v<C, int8_t>) {
        if (metric_ == HAMMING) return differing_bits(query_, cells, count, size_, distances);
    }
    for (size_t i = 0; i < count; ++i) distances[i] = (*this)(cells + i * size_);
}

template class Distance<float, float>;
template class Distance<double, double>;
template class Distance<int8_t, int8_t>;
template class Distance<float, Bfloat16>;

namespace {

constexpr double NOTHING = std::numeric_limits<double>::infinity();
constexpr size_t LONGEST_RUN = 1024;  // between two looks at the clock

// How many rows from here on have one vector each, and these one after another.
size_t run_of(const uint64_t* row, size_t count, size_t vectors) {
    constexpr uint64_t NEXT = uint64_t{1} << ROW_LENGTH_BITS;
    if (number_of_elements(row[0]) != 1) return 0;
    size_t run = 1;
    const size_t most = std::min(count, LONGEST_RUN);
    while (run < most && row[run] == row[run - 1] + NEXT) ++run;
    return (row[0] >> ROW_LENGTH_BITS) + run <= vectors ? run : 0;
}

template <typename Q, typename C, typename Raw>
void least(uint32_t metric, In<Q> query, nb::ndarray<const Raw, nb::ndim<2>, nb::c_contig, nb::device::cpu> cells, In<uint64_t> rows,
           Out<double> distances, Out<uint32_t> vectors) {
    const size_t count = rows.shape(0), all = cells.shape(0), size = cells.shape(1);
    if (metric >= METRICS) throw std::invalid_argument("no such metric");
    if (query.shape(0) != size || size == 0) throw std::invalid_argument("a query of another size");
    if (metric == GEODEGREES && size != 2) throw std::invalid_argument("a place has two cells");
    if (distances.shape(0) != count || vectors.shape(0) != count) throw std::invalid_argument("a distance for each document");
    static_assert(sizeof(C) == sizeof(Raw));
    const C* cell = reinterpret_cast<const C*>(cells.data());
    const uint64_t* row = rows.data();
    double* distance = distances.data();
    uint32_t* vector = vectors.data();
    const Distance<Q, C> of(metric, query.data(), size);
    Clock clock;
    const GilRelease release(is_much(count * (size / 8 + 10)));
    for (size_t i = 0; i < count; ++i) {
        if (const size_t run = run_of(row + i, count - i, all); run > 1) {
            clock.spend(static_cast<int64_t>(run * size / 4 + 1));
            of.of_run(cell + (row[i] >> ROW_LENGTH_BITS) * size, run, distance + i);
            std::fill_n(vector + i, run, 0);
            for (size_t k = i; k < i + run; ++k)
                if (!(distance[k] < NOTHING)) distance[k] = NOTHING;
            i += run - 1;
            continue;
        }
        clock.spend(static_cast<int64_t>(number_of_elements(row[i]) * size / 4 + 1));
        double best = NOTHING;
        uint32_t which = 0, number = 0;
        any_element(row[i], all, [&](uint64_t place) {
            const double found = of(cell + place * size);
            if (found < best) best = found, which = number;
            ++number;
            return false;
        });
        distance[i] = best;
        vector[i] = which;
    }
}

template <typename Q, typename C, typename Raw>
void bind_one(nb::module_& m) {
    m.def("least_distances", &least<Q, C, Raw>, nb::arg("metric"), nb::arg("query").noconvert(), nb::arg("cells").noconvert(),
          nb::arg("rows").noconvert(), nb::arg("distances").noconvert(), nb::arg("vectors").noconvert());
}

}  // namespace

void bind_distances(nb::module_& m) {
    bind_one<float, float, float>(m);
    bind_one<double, double, double>(m);
    bind_one<int8_t, int8_t, int8_t>(m);
    bind_one<float, Bfloat16, uint16_t>(m);
}

}  // namespace paperwasp
