// Many single bits asked at once: what sets of values are looked up by.
//
// Where the processor has AVX-512 its gather is called by name: twice as fast as what compilers make of the plain loop. Bits that fit two
// of its registers are not even gathered.
#pragma once

#include <cstddef>
#include <cstdint>

#include "clones.hpp"
#if defined(__x86_64__) && defined(__GNUC__) && !defined(__clang__)
#include <immintrin.h>
#define PAPERWASP_GATHERS 1
#endif

namespace paperwasp {

// Bit at[i] of `bits` (each word holds 32) as bit i of the result. No number is 2^31 or above.
using TestBits = uint64_t (*)(const uint32_t at[64], const uint32_t* bits);

constexpr size_t LEAST_WORDS = 32;  // that bits have: what the registers hold

inline size_t words_of_bits(uint64_t bits) { return bits <= LEAST_WORDS * 32 ? LEAST_WORDS : (bits + 31) / 32; }

inline uint64_t test_bits_plain(const uint32_t at[64], const uint32_t* bits) {
    uint64_t word = 0;
    for (int i = 0; i < 64; ++i) word |= static_cast<uint64_t>(bits[at[i] >> 5] >> (at[i] & 31) & 1) << i;
    return word;
}

#ifdef PAPERWASP_GATHERS
__attribute__((target("avx512f"))) inline uint64_t test_bits_gathered(const uint32_t at[64], const uint32_t* bits) {
    const __m512i one = _mm512_set1_epi32(1), low = _mm512_set1_epi32(31);
    uint64_t word = 0;
    for (int i = 0; i < 4; ++i) {
        const __m512i places = _mm512_loadu_si512(at + 16 * i);
        // The masked forms, with all lanes: GCC 12 warns of its own header in the others.
        const __m512i words = _mm512_maskz_srli_epi32(0xFFFF, places, 5);
        const __m512i found = _mm512_mask_i32gather_epi32(places, 0xFFFF, words, bits, 4);
        const __mmask16 set = _mm512_test_epi32_mask(found, _mm512_maskz_sllv_epi32(0xFFFF, one, _mm512_and_si512(places, low)));
        word |= static_cast<uint64_t>(set) << (16 * i);
    }
    return word;
}

// Of LEAST_WORDS words.
__attribute__((target("avx512f"))) inline uint64_t test_bits_held(const uint32_t at[64], const uint32_t* bits) {
    const __m512i one = _mm512_set1_epi32(1), low = _mm512_set1_epi32(31);
    const __m512i first = _mm512_loadu_si512(bits), second = _mm512_loadu_si512(bits + 16);
    uint64_t word = 0;
    for (int i = 0; i < 4; ++i) {
        const __m512i places = _mm512_loadu_si512(at + 16 * i);
        const __m512i words = _mm512_maskz_srli_epi32(0xFFFF, places, 5);
        const __m512i found = _mm512_maskz_permutex2var_epi32(0xFFFF, first, words, second);
        const __mmask16 set = _mm512_test_epi32_mask(found, _mm512_maskz_sllv_epi32(0xFFFF, one, _mm512_and_si512(places, low)));
        word |= static_cast<uint64_t>(set) << (16 * i);
    }
    return word;
}
#endif

struct BitTest {
    TestBits word_of;
    bool held;  // whether the bits are in registers, and no memory is read for them
};

// For bits of so many words.
inline BitTest test_bits([[maybe_unused]] size_t words) {
#ifdef PAPERWASP_GATHERS
    if (__builtin_cpu_supports("avx512f")) return words == LEAST_WORDS ? BitTest{test_bits_held, true} : BitTest{test_bits_gathered, false};
#endif
    return {test_bits_plain, false};
}

}  // namespace paperwasp
