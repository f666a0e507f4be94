// How near the vectors of a query are to the nearest ones of each document, as MaxSim asks. The plain twin is in
// tests/oracles/max_similarity.py.
//
// Document i has the rows starts[i] to starts[i] + counts[i] of `cells` (rows, size), which are read where they stand. tokens: (m, size).
// greatest: (n, m) becomes, for each document and token, the greatest over the document's rows of
//   greatest_dots  the dot product, in the type of the tokens (float or double); cells of bfloat16 are the upper halves of floats
//   greatest_sums  the sum of the token's cells where the row has a bit; the first bit of an octet is its highest
// and least: (n, m) the least number of bits in which token and row differ. NaN is passed over; without rows it is -infinity, or the most
// that there is.
//
// Sums are added up cell by cell, each product fused with the sum before it: a number depends on its two vectors alone,
// and is the same on all machines. Those without the instruction for it take the C library's fma, which is right and slow.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#if defined(__x86_64__) && defined(__linux__) && defined(__GNUC__) && !defined(__clang__)
#define PAPERWASP_GENERATIONS
#include <immintrin.h>
#endif

#include "clock.hpp"
#include "clones.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

template <typename T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <typename T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

// The loops for one kind of machine, and how many tokens a vector of it has.
template <typename T>
struct Generation {
    size_t lanes;
    void (*raise_by_dots)(const T* tokens, size_t token_count, const T* rows, size_t count, size_t size, T* best);
    void (*raise_by_bits)(const T* sums, size_t token_count, const uint8_t* rows, size_t count, size_t octets, T* best);
};

#ifdef PAPERWASP_GENERATIONS
namespace v4 {
#define LANES_TARGET __attribute__((target("avx512f,avx512bw,avx512dq,avx512vl,avx2,fma")))
#define LANES_BYTES 64
#define LANES_ROWS 12
PAPERWASP_INLINE LANES_TARGET __m512 fused(__m512 a, float b, __m512 c) { return _mm512_fmadd_ps(a, _mm512_set1_ps(b), c); }
PAPERWASP_INLINE LANES_TARGET __m512d fused(__m512d a, double b, __m512d c) { return _mm512_fmadd_pd(a, _mm512_set1_pd(b), c); }
#define LANES_FUSED(T, a, b, c) fused(a, b, c)
#include "vectors/similarity_lanes.hpp"
#undef LANES_TARGET
#undef LANES_BYTES
#undef LANES_ROWS
#undef LANES_FUSED
}  // namespace v4

namespace v3 {
#define LANES_TARGET __attribute__((target("avx2,fma")))
#define LANES_BYTES 32
#define LANES_ROWS 6
PAPERWASP_INLINE LANES_TARGET __m256 fused(__m256 a, float b, __m256 c) { return _mm256_fmadd_ps(a, _mm256_set1_ps(b), c); }
PAPERWASP_INLINE LANES_TARGET __m256d fused(__m256d a, double b, __m256d c) { return _mm256_fmadd_pd(a, _mm256_set1_pd(b), c); }
#define LANES_FUSED(T, a, b, c) fused(a, b, c)
#include "vectors/similarity_lanes.hpp"
#undef LANES_TARGET
#undef LANES_BYTES
#undef LANES_ROWS
#undef LANES_FUSED
}  // namespace v3
#endif

namespace plain {
#define LANES_TARGET
#define LANES_BYTES 16
#define LANES_ROWS 6
#include "vectors/similarity_lanes.hpp"
}  // namespace plain

// The best that this machine has; `level` asks for less, for tests: 0 any, 1 the plain one, 2 that of AVX2.
template <typename T>
Generation<T> generation_of(int level) {
#ifdef PAPERWASP_GENERATIONS
    const bool has_v3 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_v4 = has_v3 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                        __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    if (has_v4 && level == 0) return v4::generation<T>();
    if (has_v3 && level != 1) return v3::generation<T>();
#endif
    (void)level;
    return plain::generation<T>();
}

struct Bfloat16 {
    uint16_t bits;
};

template <typename T, typename C>
PAPERWASP_INLINE T widened(C cell) {
    if constexpr (std::is_same_v<C, Bfloat16>) {
        const uint32_t bits = static_cast<uint32_t>(cell.bits) << 16;
        float value;
        std::memcpy(&value, &bits, sizeof value);
        return static_cast<T>(value);
    } else {
        return static_cast<T>(cell);
    }
}

#define WIDEN(T, C)                                                        \
    PAPERWASP_CLONES void widen(const C* from, size_t count, T* to) {      \
        for (size_t i = 0; i < count; ++i) to[i] = widened<T, C>(from[i]); \
    }
WIDEN(float, int8_t)
WIDEN(float, Bfloat16)
WIDEN(double, int8_t)
WIDEN(double, Bfloat16)
WIDEN(double, float)

template <typename Tokens, typename Cells, typename Found>
void check(const Tokens& tokens, const Cells& cells, size_t cells_of_token, const In<int64_t>& starts, const In<int64_t>& counts,
           const Found& found) {
    const size_t n = starts.shape(0), rows = cells.shape(0);
    if (tokens.shape(1) != cells.shape(1) * cells_of_token) throw std::invalid_argument("vectors of different sizes");
    if (counts.shape(0) != n || found.shape(0) != n || found.shape(1) != tokens.shape(0))
        throw std::invalid_argument("a number for each document and token");
    for (size_t i = 0; i < n; ++i) {
        const int64_t start = starts.data()[i], count = counts.data()[i];
        if (start < 0 || count < 0 || static_cast<size_t>(start) > rows || static_cast<size_t>(count) > rows - static_cast<size_t>(start))
            throw std::invalid_argument("no such rows");
    }
}

// Of all documents together.
uint64_t rows_of(const In<int64_t>& counts) {
    uint64_t rows = 0;
    for (size_t i = 0; i < counts.shape(0); ++i) rows += static_cast<uint64_t>(counts.data()[i]);
    return rows;
}

size_t padded(size_t count, size_t lanes) { return (count + lanes - 1) / lanes * lanes; }

// Works documents one after another: `raise(row, count, best)` for some of its rows. `steps` of the clock for each row.
template <typename T, typename Raise>
void work(In<int64_t> starts, In<int64_t> counts, OutMatrix<T> greatest, size_t lanes, int64_t steps, size_t rows_at_once, Raise raise) {
    const size_t n = starts.shape(0), m = greatest.shape(1);
    T* out = greatest.data();
    std::vector<T> best(padded(m, lanes));
    Clock clock;
    const GilRelease release(is_much(static_cast<uint64_t>(steps) * rows_of(counts)));
    for (size_t i = 0; i < n; ++i) {
        std::fill(best.begin(), best.end(), -std::numeric_limits<T>::infinity());
        const size_t count = static_cast<size_t>(counts.data()[i]);
        for (size_t from = 0; from < count; from += rows_at_once) {
            const size_t part = std::min(rows_at_once, count - from);
            clock.spend(steps * static_cast<int64_t>(part) + 1);
            raise(static_cast<size_t>(starts.data()[i]) + from, part, best.data());
        }
        std::copy_n(best.begin(), m, out + i * m);
    }
}

constexpr size_t ROWS_AT_ONCE = 96;  // as many as are widened at a time

template <typename T, typename C, typename Raw>
void greatest_dots(Matrix<T> tokens, Matrix<Raw> cells, In<int64_t> starts, In<int64_t> counts, OutMatrix<T> greatest, int level) {
    check(tokens, cells, 1, starts, counts, greatest);
    static_assert(sizeof(C) == sizeof(Raw));
    const size_t m = tokens.shape(0), size = tokens.shape(1);
    const Generation<T> machine = generation_of<T>(level);
    const size_t lanes = machine.lanes, all = padded(m, lanes);
    std::vector<T> packed(all * size);
    for (size_t token = 0; token < m; ++token) {
        const size_t pair = token / (2 * lanes) * 2 * lanes, wide = std::min(2 * lanes, all - pair);
        for (size_t cell = 0; cell < size; ++cell) packed[pair * size + cell * wide + (token - pair)] = tokens.data()[token * size + cell];
    }
    const C* kept = reinterpret_cast<const C*>(cells.data());
    std::vector<T> wide(std::is_same_v<C, T> ? 0 : ROWS_AT_ONCE * size);
    const int64_t steps = static_cast<int64_t>(all * size / 32 + 1);
    work<T>(starts, counts, greatest, lanes, steps, ROWS_AT_ONCE, [&](size_t row, size_t count, T* best) {
        const T* rows;
        if constexpr (std::is_same_v<C, T>) {
            rows = kept + row * size;
        } else {
            widen(kept + row * size, count * size, wide.data());
            rows = wide.data();
        }
        machine.raise_by_dots(packed.data(), all, rows, count, size, best);
    });
}

template <typename T>
void greatest_sums(Matrix<T> tokens, Matrix<int8_t> cells, In<int64_t> starts, In<int64_t> counts, OutMatrix<T> greatest, int level) {
    check(tokens, cells, 8, starts, counts, greatest);
    const size_t m = tokens.shape(0), size = tokens.shape(1), octets = cells.shape(1);
    const Generation<T> machine = generation_of<T>(level);
    const size_t lanes = machine.lanes, all = padded(m, lanes);
    std::vector<T> sums(all * size * 4);
    for (size_t token = 0; token < m; ++token)
        for (size_t cell = 0; cell < size; cell += 4)
            for (size_t choice = 0; choice < 16; ++choice) {
                const T* four = tokens.data() + token * size + cell;
                T sum = 0;  // of products: what is no number stays none, chosen or not
                for (size_t i = 0; i < 4; ++i) sum += four[i] * static_cast<T>(choice >> (3 - i) & 1);
                sums[((token / lanes * (size / 4) + cell / 4) * 16 + choice) * lanes + token % lanes] = sum;
            }
    const uint8_t* kept = reinterpret_cast<const uint8_t*>(cells.data());
    const int64_t steps = static_cast<int64_t>(all * size / 128 + 1);
    work<T>(starts, counts, greatest, lanes, steps, size_t{1} << 12,
            [&](size_t row, size_t count, T* best) { machine.raise_by_bits(sums.data(), all, kept + row * octets, count, octets, best); });
}

PAPERWASP_INLINE void lower_by(const uint64_t* tokens, size_t m, const uint64_t* row, size_t words, uint32_t* least) {
    for (size_t token = 0; token < m; ++token) {
        uint32_t bits = 0;
        for (size_t word = 0; word < words; ++word)
            bits += static_cast<uint32_t>(__builtin_popcountll(tokens[token * words + word] ^ row[word]));
        least[token] = std::min(least[token], bits);
    }
}

// The loops of words are of the sizes that are common, or of any.
PAPERWASP_CLONES void lower_by_row(const uint64_t* tokens, size_t m, const uint64_t* row, size_t words, uint32_t* least) {
    if (words == 2)
        lower_by(tokens, m, row, 2, least);
    else if (words == 1)
        lower_by(tokens, m, row, 1, least);
    else
        lower_by(tokens, m, row, words, least);
}

void least_bits(Matrix<int8_t> tokens, Matrix<int8_t> cells, In<int64_t> starts, In<int64_t> counts, OutMatrix<uint32_t> least) {
    check(tokens, cells, 1, starts, counts, least);
    const size_t n = starts.shape(0), m = tokens.shape(0), octets = cells.shape(1), words = (octets + 7) / 8;
    const int8_t* kept = cells.data();
    uint32_t* out = least.data();
    std::vector<uint64_t> given(m * words), row(words);
    for (size_t token = 0; token < m; ++token)
        if (octets != 0) std::memcpy(given.data() + token * words, tokens.data() + token * octets, octets);
    Clock clock;
    const GilRelease release(is_much(m * words * rows_of(counts)));
    std::fill(out, out + n * m, std::numeric_limits<uint32_t>::max());
    for (size_t i = 0; i < n; ++i) {
        const size_t start = static_cast<size_t>(starts.data()[i]), count = static_cast<size_t>(counts.data()[i]);
        for (size_t at = start; at < start + count; ++at) {
            clock.spend(static_cast<int64_t>(m * words + 1));
            if (octets != 0) std::memcpy(row.data(), kept + at * octets, octets);
            lower_by_row(given.data(), m, row.data(), words, out + i * m);
        }
    }
}

template <typename T, typename C, typename Raw>
void bind_dots_of(nb::module_& m) {
    m.def("greatest_dots", &greatest_dots<T, C, Raw>, nb::arg("tokens").noconvert(), nb::arg("cells").noconvert(),
          nb::arg("starts").noconvert(), nb::arg("counts").noconvert(), nb::arg("greatest").noconvert(), nb::arg("level") = 0);
}

template <typename T>
void bind_sums_of(nb::module_& m) {
    m.def("greatest_sums", &greatest_sums<T>, nb::arg("tokens").noconvert(), nb::arg("cells").noconvert(), nb::arg("starts").noconvert(),
          nb::arg("counts").noconvert(), nb::arg("greatest").noconvert(), nb::arg("level") = 0);
}

}  // namespace

void bind_max_similarity(nb::module_& m) {
    bind_dots_of<float, float, float>(m);
    bind_dots_of<float, int8_t, int8_t>(m);
    bind_dots_of<float, Bfloat16, uint16_t>(m);
    bind_dots_of<double, double, double>(m);
    bind_dots_of<double, float, float>(m);
    bind_dots_of<double, int8_t, int8_t>(m);
    bind_dots_of<double, Bfloat16, uint16_t>(m);
    bind_sums_of<float>(m);
    bind_sums_of<double>(m);
    m.def("least_bits", &least_bits, nb::arg("tokens").noconvert(), nb::arg("cells").noconvert(), nb::arg("starts").noconvert(),
          nb::arg("counts").noconvert(), nb::arg("least").noconvert());
}

}  // namespace paperwasp
