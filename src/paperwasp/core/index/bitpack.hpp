// Bit packing of blocks of 64 unsigned integers, and of short runs.
//
// Full blocks are packed vertically: value i lies in lane i % 4, so that one 128-bit operation unpacks four values; a block of
// width b takes (16 * b + 31) / 32 rows of 16 bytes. Runs (fewer than 64 values, and positions) are packed horizontally, one value
// after the other, so that any of them can be read alone. Every reader may read up to PADDING bytes past the last packed byte.
#pragma once

#include <cstdint>
#include <cstring>

namespace paperwasp {

constexpr uint32_t BLOCK = 64;
constexpr uint32_t PADDING = 32;

typedef uint32_t u32x4 __attribute__((vector_size(16)));
typedef int32_t i32x4 __attribute__((vector_size(16)));

// Lanes of two rows, numbered 0 to 7, as one row. GCC has the first form from version 12 on.
#if defined(__clang__) || __GNUC__ >= 12
#define PAPERWASP_LANES(a, b, i, j, k, l) __builtin_shufflevector(a, b, i, j, k, l)
#else
#define PAPERWASP_LANES(a, b, i, j, k, l) __builtin_shuffle(a, b, u32x4{i, j, k, l})
#endif

inline uint32_t bit_width(uint32_t value) { return value == 0 ? 0 : 32 - static_cast<uint32_t>(__builtin_clz(value)); }

inline uint32_t full_block_bytes(uint32_t width) { return (16 * width + 31) / 32 * 16; }

inline uint32_t run_bytes(uint64_t count, uint32_t width) { return static_cast<uint32_t>((count * width + 7) / 8); }

inline u32x4 load_row(const uint8_t* from) {
    u32x4 row;
    std::memcpy(&row, from, sizeof row);
    return row;
}

inline void store_row(uint32_t* to, u32x4 row) { std::memcpy(to, &row, sizeof row); }

// Packs 64 values of at most `width` bits; returns the bytes written.
inline uint32_t pack_block(const uint32_t* values, uint32_t width, uint8_t* to) {
    const uint32_t bytes = full_block_bytes(width);
    std::memset(to, 0, bytes);
    for (uint32_t i = 0; i < BLOCK && width > 0; ++i) {
        const uint32_t lane = i % 4, bit = i / 4 * width;
        uint8_t* word_at = to + (bit / 32 * 4 + lane) * 4;
        uint32_t word;
        std::memcpy(&word, word_at, 4);
        word |= values[i] << (bit % 32);
        std::memcpy(word_at, &word, 4);
        if (bit % 32 + width > 32) {
            std::memcpy(&word, word_at + 16, 4);
            word |= values[i] >> (32 - bit % 32);
            std::memcpy(word_at + 16, &word, 4);
        }
    }
    return bytes;
}

template <uint32_t WIDTH>
inline void unpack_block_of(const uint8_t* from, uint32_t* values) {
    if constexpr (WIDTH == 0) {
        std::memset(values, 0, BLOCK * sizeof(uint32_t));
    } else if constexpr (WIDTH == 32) {
        std::memcpy(values, from, BLOCK * sizeof(uint32_t));
    } else {
        constexpr uint32_t ONES = (1u << WIDTH) - 1;
        const u32x4 mask = {ONES, ONES, ONES, ONES};
        u32x4 row = load_row(from);
#pragma GCC unroll 16
        for (uint32_t i = 0; i < BLOCK / 4; ++i) {
            const uint32_t bit = i * WIDTH % 32;
            u32x4 value = row >> bit;
            if (bit + WIDTH >= 32 && i + 1 < BLOCK / 4) {
                from += 16;
                row = load_row(from);
                if (bit + WIDTH > 32) value |= row << (32 - bit);
            } else if (bit + WIDTH > 32) {
                value |= load_row(from + 16) << (32 - bit);
            }
            store_row(values + 4 * i, value & mask);
        }
    }
}

// Unpacks 64 values of `width` bits (at most 32).
inline void unpack_block(const uint8_t* from, uint32_t width, uint32_t* values) {
    // clang-format off
    switch (width) {
#define PAPERWASP_CASE(W) \
    case W: return unpack_block_of<W>(from, values);
#define PAPERWASP_CASES(W) PAPERWASP_CASE(W) PAPERWASP_CASE(W + 1) PAPERWASP_CASE(W + 2) PAPERWASP_CASE(W + 3)
        PAPERWASP_CASES(0) PAPERWASP_CASES(4) PAPERWASP_CASES(8) PAPERWASP_CASES(12)
        PAPERWASP_CASES(16) PAPERWASP_CASES(20) PAPERWASP_CASES(24) PAPERWASP_CASES(28)
        PAPERWASP_CASE(32)
#undef PAPERWASP_CASES
#undef PAPERWASP_CASE
    }
    // clang-format on
}

// Turns 64 gaps into rising values that start after `before`: value[i] = before + gap[0] + … + gap[i].
inline void prefix_sum(uint32_t* values, uint32_t before) {
    u32x4 carry = {before, before, before, before};
    const u32x4 zero = {0, 0, 0, 0};
    for (uint32_t i = 0; i < BLOCK; i += 4) {
        u32x4 row;
        std::memcpy(&row, values + i, sizeof row);
        row += PAPERWASP_LANES(zero, row, 0, 4, 5, 6);
        row += PAPERWASP_LANES(zero, row, 0, 1, 4, 5);
        row += carry;
        store_row(values + i, row);
        carry = PAPERWASP_LANES(row, row, 3, 3, 3, 3);
    }
}

// How many of 64 rising values are below `value`. Without branches, which could not be predicted where values are looked up one after the
// other.
inline uint32_t count_below(const uint32_t* values, uint32_t value) {
    const uint32_t from = 16 * ((values[15] < value) + (values[31] < value) + (values[47] < value));
    const u32x4 limit = {value, value, value, value};
    i32x4 below = {0, 0, 0, 0};  // -1 for each
    for (uint32_t i = from; i < from + 16; i += 4) {
        u32x4 row;
        std::memcpy(&row, values + i, sizeof row);
        below += row < limit;
    }
    return from - static_cast<uint32_t>(below[0] + below[1] + below[2] + below[3]);
}

// Value `index` of a run packed with `width` bits.
inline uint32_t run_value(const uint8_t* from, uint32_t width, uint64_t index) {
    const uint64_t bit = index * width;
    uint64_t word;
    std::memcpy(&word, from + bit / 8, 8);
    return static_cast<uint32_t>((word >> (bit % 8)) & ((uint64_t{1} << width) - 1));
}

constexpr uint32_t RUN_GROUP = 8;  // values of a run that begin with a byte

template <uint32_t WIDTH>
inline void unpack_run_of(const uint8_t* from, uint64_t count, uint32_t* values) {
    for (uint64_t i = 0; i < count; i += RUN_GROUP, from += WIDTH)
#pragma GCC unroll 8
        for (uint32_t k = 0; k < RUN_GROUP; ++k) {
            uint32_t word;
            std::memcpy(&word, from + k * WIDTH / 8, 4);
            values[i + k] = (word >> (k * WIDTH % 8)) & ((1u << WIDTH) - 1);
        }
}

// Unpacks the first `count` values of a run packed with `width` bits; `values` has room for RUN_GROUP more.
inline void unpack_run(const uint8_t* from, uint32_t width, uint64_t count, uint32_t* values) {
    // clang-format off
    switch (width) {
#define PAPERWASP_CASE(W) \
    case W: return unpack_run_of<W>(from, count, values);
        PAPERWASP_CASE(4) PAPERWASP_CASE(5) PAPERWASP_CASE(6) PAPERWASP_CASE(7) PAPERWASP_CASE(8) PAPERWASP_CASE(9)
        PAPERWASP_CASE(10) PAPERWASP_CASE(11) PAPERWASP_CASE(12) PAPERWASP_CASE(13)
#undef PAPERWASP_CASE
    default:
        for (uint64_t i = 0; i < count; ++i) values[i] = run_value(from, width, i);
    }
    // clang-format on
}

// Packs a run of values of at most 32 bits; `to` has room for run_bytes(count, width) + 8 bytes, of which the last may be zeroed.
inline void pack_run(const uint32_t* values, uint64_t count, uint32_t width, uint8_t* to) {
    uint64_t word = 0;
    uint32_t bits = 0;
    for (uint64_t i = 0; i < count; ++i) {
        word |= static_cast<uint64_t>(values[i]) << bits;
        bits += width;
        if (bits >= 32) {
            std::memcpy(to, &word, 4);
            to += 4;
            word >>= 32;
            bits -= 32;
        }
    }
    std::memcpy(to, &word, 8);
}

}  // namespace paperwasp
