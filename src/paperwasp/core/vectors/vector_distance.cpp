// The distance of one vector from another, by metric and type of cells. Metrics, as in Vespa, before they become what people see:
//   EUCLIDEAN sum of squared differences    ANGULAR 1 - cosine    PRODUCT -dot product    HAMMING bits that differ (int8), or cells
//   GEODEGREES haversine of the central angle; two cells, latitude and longitude
// Sums of floats are in single precision, in 32 lanes that are added up at the end; of int8 in integers.
#include "vectors/vector_distance.hpp"

#include <cmath>
#include <cstring>
#include <type_traits>

#include "clones.hpp"
#include "vectors/hamming.hpp"

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

struct Products {
    double dot, square;
};

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

// The product of both, and of the cells with themselves, from one reading: the same numbers as from two.
template <typename Sum, typename Q, typename C>
PAPERWASP_INLINE Products products_of(const Q* query, const C* cells, size_t size) {
    constexpr size_t BLOCK = size_t{1} << 15;
    Products found{0, 0};
    for (size_t from = 0; from < size; from += BLOCK) {
        const size_t to = size - from < BLOCK ? size : from + BLOCK;
        Sum dots[LANES] = {}, squares[LANES] = {};
        size_t i = from;
        for (; i + LANES <= to; i += LANES) {
            for (size_t lane = 0; lane < LANES; ++lane) {
                const Sum cell = wide(cells[i + lane]);
                dots[lane] += wide(query[i + lane]) * cell;
                squares[lane] += cell * cell;
            }
        }
        for (; i < to; ++i) {
            const Sum cell = wide(cells[i]);
            dots[i % LANES] += wide(query[i]) * cell;
            squares[i % LANES] += cell * cell;
        }
        for (size_t width = LANES / 2; width > 0; width /= 2) {
            for (size_t lane = 0; lane < width; ++lane) dots[lane] += dots[lane + width];
            for (size_t lane = 0; lane < width; ++lane) squares[lane] += squares[lane + width];
        }
        found.dot += static_cast<double>(dots[0]);
        found.square += static_cast<double>(squares[0]);
    }
    return found;
}

#define KERNELS_OF(Q, C, Sum)                                                        \
    PAPERWASP_CLONES double dot_of(const Q* a, const C* b, size_t n) {               \
        return sum_of<Sum>(a, b, n, [](Sum x, Sum y) { return x * y; });             \
    }                                                                                \
    PAPERWASP_CLONES double square_of(const Q* a, const C* b, size_t n) {            \
        return sum_of<Sum>(a, b, n, [](Sum x, Sum y) { return (x - y) * (x - y); }); \
    }                                                                                \
    PAPERWASP_CLONES Products both_of(const Q* a, const C* b, size_t n) { return products_of<Sum>(a, b, n); }

// Of queries, which are never of bfloat16.
#define NORM_OF(Q, Sum)                                                  \
    PAPERWASP_CLONES double norm_of(const Q* a, size_t n) {              \
        return sum_of<Sum>(a, a, n, [](Sum x, Sum y) { return x * y; }); \
    }

#define DIFFERING_OF(Q, C)                                                                      \
    PAPERWASP_CLONES double hamming_of(const Q* a, const C* b, size_t n) {                      \
        return sum_of<int32_t>(a, b, n, [](Q x, Q y) { return static_cast<int32_t>(x != y); }); \
    }
KERNELS_OF(float, float, float)
KERNELS_OF(double, double, double)
KERNELS_OF(int8_t, int8_t, int32_t)
KERNELS_OF(float, Bfloat16, float)
NORM_OF(float, float)
NORM_OF(double, double)
NORM_OF(int8_t, int32_t)
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
            const Products both = both_of(query_, cells, size_);
            const double norms = query_norm_ * both.square;
            return 1.0 - both.dot / (norms > 0 ? std::sqrt(norms) : 1.0);
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

}  // namespace paperwasp
