// How many bits of vectors differ. As fast as memory gives the vectors, where the processor counts the bits of a whole register.
#include "vectors/hamming.hpp"

#include <cstring>

#include "clones.hpp"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define PAPERWASP_COUNTS 1
#endif

namespace paperwasp {
namespace {

constexpr size_t AHEAD_BYTES = 4096;  // beyond a page, where the processor's own looking ahead ends

PAPERWASP_CLONES void differing_plain(const int8_t* query, const int8_t* rows, size_t count, size_t size, double* out) {
    for (size_t row = 0; row < count; ++row, rows += size) {
        uint64_t bits = 0;
        size_t i = 0;
        for (; i + 8 <= size; i += 8) {
            uint64_t x, y;
            std::memcpy(&x, query + i, 8);
            std::memcpy(&y, rows + i, 8);
            bits += static_cast<uint64_t>(__builtin_popcountll(x ^ y));
        }
        for (; i < size; ++i) bits += static_cast<uint64_t>(__builtin_popcount(static_cast<uint8_t>(query[i] ^ rows[i])));
        out[row] = static_cast<double>(bits);
    }
}

#ifdef PAPERWASP_COUNTS
#define COUNTS_TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512vpopcntdq")))

COUNTS_TARGET inline uint64_t sum_of_lanes(__m512i sums) {
    // The masked form, with all lanes: GCC 12 warns of its own header in the other.
    const __m256i half = _mm256_add_epi64(_mm512_maskz_extracti64x4_epi64(0xF, sums, 0), _mm512_maskz_extracti64x4_epi64(0xF, sums, 1));
    const __m128i two = _mm_add_epi64(_mm256_castsi256_si128(half), _mm256_extracti128_si256(half, 1));
    return static_cast<uint64_t>(_mm_cvtsi128_si64(_mm_add_epi64(two, _mm_unpackhi_epi64(two, two))));
}

COUNTS_TARGET inline __m512i differing(__m512i a, __m512i b) { return _mm512_popcnt_epi64(_mm512_xor_si512(a, b)); }

COUNTS_TARGET void differing_counted(const int8_t* query, const int8_t* rows, size_t count, size_t size, double* out) {
    const size_t whole = size / 64 * 64;
    const __mmask64 rest = (uint64_t{1} << (size - whole)) - 1;
    const __m512i last = _mm512_maskz_loadu_epi8(rest, query + whole);
    for (size_t row = 0; row < count; ++row, rows += size) {
        __m512i sums = _mm512_setzero_si512();
        for (size_t i = 0; i < whole; i += 64) {
            // Beyond the last row there may be nothing, and that is no harm.
            __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(rows + i) + AHEAD_BYTES));
            sums = _mm512_add_epi64(sums, differing(_mm512_loadu_si512(rows + i), _mm512_loadu_si512(query + i)));
        }
        if (rest != 0) sums = _mm512_add_epi64(sums, differing(_mm512_maskz_loadu_epi8(rest, rows + whole), last));
        out[row] = static_cast<double>(sum_of_lanes(sums));
    }
}
#endif

using Differing = void (*)(const int8_t*, const int8_t*, size_t, size_t, double*);

Differing best_differing() {
#ifdef PAPERWASP_COUNTS
    if (__builtin_cpu_supports("avx512vpopcntdq") && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vl"))
        return differing_counted;
#endif
    return differing_plain;
}

}  // namespace

void differing_bits(const int8_t* query, const int8_t* rows, size_t count, size_t size, double* out) {
    static const Differing best = best_differing();
    best(query, rows, count, size, out);
}

}  // namespace paperwasp
