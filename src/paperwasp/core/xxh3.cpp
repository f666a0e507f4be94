// XXH3 of bytes: 64 bits, without a seed. Its twin and specification is tests/oracles/xxh3.py.
#include "xxh3.hpp"

#include <cstring>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t P32_1 = 0x9E3779B1, P32_2 = 0x85EBCA77, P32_3 = 0xC2B2AE3D;
constexpr uint64_t P64_1 = 0x9E3779B185EBCA87, P64_2 = 0xC2B2AE3D27D4EB4F, P64_3 = 0x165667B19E3779F9;
constexpr uint64_t P64_4 = 0x85EBCA77C2B2AE63, P64_5 = 0x27D4EB2F165667C5;
constexpr uint64_t MIX_1 = 0x165667919E3779F9, MIX_2 = 0x9FB21C651E98DF25;

constexpr unsigned char SECRET[192] = {
    0xB8, 0xFE, 0x6C, 0x39, 0x23, 0xA4, 0x4B, 0xBE, 0x7C, 0x01, 0x81, 0x2C, 0xF7, 0x21, 0xAD, 0x1C, 0xDE, 0xD4, 0x6D, 0xE9, 0x83, 0x90,
    0x97, 0xDB, 0x72, 0x40, 0xA4, 0xA4, 0xB7, 0xB3, 0x67, 0x1F, 0xCB, 0x79, 0xE6, 0x4E, 0xCC, 0xC0, 0xE5, 0x78, 0x82, 0x5A, 0xD0, 0x7D,
    0xCC, 0xFF, 0x72, 0x21, 0xB8, 0x08, 0x46, 0x74, 0xF7, 0x43, 0x24, 0x8E, 0xE0, 0x35, 0x90, 0xE6, 0x81, 0x3A, 0x26, 0x4C, 0x3C, 0x28,
    0x52, 0xBB, 0x91, 0xC3, 0x00, 0xCB, 0x88, 0xD0, 0x65, 0x8B, 0x1B, 0x53, 0x2E, 0xA3, 0x71, 0x64, 0x48, 0x97, 0xA2, 0x0D, 0xF9, 0x4E,
    0x38, 0x19, 0xEF, 0x46, 0xA9, 0xDE, 0xAC, 0xD8, 0xA8, 0xFA, 0x76, 0x3F, 0xE3, 0x9C, 0x34, 0x3F, 0xF9, 0xDC, 0xBB, 0xC7, 0xC7, 0x0B,
    0x4F, 0x1D, 0x8A, 0x51, 0xE0, 0x4B, 0xCD, 0xB4, 0x59, 0x31, 0xC8, 0x9F, 0x7E, 0xC9, 0xD9, 0x78, 0x73, 0x64, 0xEA, 0xC5, 0xAC, 0x83,
    0x34, 0xD3, 0xEB, 0xC3, 0xC5, 0x81, 0xA0, 0xFF, 0xFA, 0x13, 0x63, 0xEB, 0x17, 0x0D, 0xDD, 0x51, 0xB7, 0xF0, 0xDA, 0x49, 0xD3, 0x16,
    0x55, 0x26, 0x29, 0xD4, 0x68, 0x9E, 0x2B, 0x16, 0xBE, 0x58, 0x7D, 0x47, 0xA1, 0xFC, 0x8F, 0xF8, 0xB8, 0xD1, 0x7A, 0xD0, 0x31, 0xCE,
    0x45, 0xCB, 0x3A, 0x8F, 0x95, 0x16, 0x04, 0x28, 0xAF, 0xD7, 0xFB, 0xCA, 0xBB, 0x4B, 0x40, 0x7E,
};

// Little-endian, whatever the machine is.
template <int SIZE>
uint64_t word_at(const unsigned char* bytes) {
    uint64_t word = 0;
    for (int i = 0; i < SIZE; ++i) word |= uint64_t{bytes[i]} << (8 * i);
    return word;
}

uint64_t secret_at(size_t at) { return word_at<8>(SECRET + at); }

uint64_t rotated(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

uint64_t reversed(uint64_t word) {
    uint64_t turned = 0;
    for (int i = 0; i < 8; ++i) turned = turned << 8 | (word >> (8 * i) & 0xFF);
    return turned;
}

// Both halves of the product of 128 bits, combined by xor. Halves of 32 bits: not all compilers have 128.
uint64_t folded_product(uint64_t a, uint64_t b) {
    const uint64_t a_low = a & 0xFFFFFFFF, a_high = a >> 32, b_low = b & 0xFFFFFFFF, b_high = b >> 32;
    const uint64_t low = a_low * b_low, cross = a_high * b_low;
    const uint64_t middle = (low >> 32) + (cross & 0xFFFFFFFF) + a_low * b_high;
    const uint64_t high = a_high * b_high + (cross >> 32) + (middle >> 32);
    return high ^ (middle << 32 | (low & 0xFFFFFFFF));
}

uint64_t avalanche(uint64_t hash) {
    hash = (hash ^ hash >> 37) * MIX_1;
    return hash ^ hash >> 32;
}

uint64_t older_avalanche(uint64_t hash) {
    hash = (hash ^ hash >> 33) * P64_2;
    hash = (hash ^ hash >> 29) * P64_3;
    return hash ^ hash >> 32;
}

uint64_t mixed(const unsigned char* bytes, size_t secret) {
    return folded_product(word_at<8>(bytes) ^ secret_at(secret), word_at<8>(bytes + 8) ^ secret_at(secret + 8));
}

uint64_t hash_short(const unsigned char* bytes, size_t size) {
    if (size == 0) return older_avalanche(secret_at(56) ^ secret_at(64));
    if (size <= 3) {
        const uint64_t ends = uint64_t{bytes[0]} << 16 | bytes[size - 1];
        const uint64_t joined = ends | uint64_t{bytes[size >> 1]} << 24 | size << 8;
        return older_avalanche(joined ^ word_at<4>(SECRET) ^ word_at<4>(SECRET + 4));
    }
    if (size <= 8) {
        const uint64_t joined = word_at<4>(bytes + size - 4) + (word_at<4>(bytes) << 32);
        uint64_t hash = joined ^ secret_at(8) ^ secret_at(16);
        hash = (hash ^ rotated(hash, 49) ^ rotated(hash, 24)) * MIX_2;
        hash = (hash ^ ((hash >> 35) + size)) * MIX_2;
        return hash ^ hash >> 28;
    }
    const uint64_t low = word_at<8>(bytes) ^ secret_at(24) ^ secret_at(32);
    const uint64_t high = word_at<8>(bytes + size - 8) ^ secret_at(40) ^ secret_at(48);
    return avalanche(size + reversed(low) + high + folded_product(low, high));
}

// 17 to 240 bytes.
uint64_t hash_middle(const unsigned char* bytes, size_t size) {
    uint64_t hash = size * P64_1;
    if (size <= 128) {
        for (size_t i = 0; i <= (size - 1) / 32; ++i) {
            hash += mixed(bytes + 16 * i, 32 * i) + mixed(bytes + size - 16 * (i + 1), 32 * i + 16);
        }
        return avalanche(hash);
    }
    for (size_t i = 0; i < 8; ++i) hash += mixed(bytes + 16 * i, 16 * i);
    hash = avalanche(hash);
    for (size_t i = 8; i < size / 16; ++i) hash += mixed(bytes + 16 * i, 16 * (i - 8) + 3);
    return avalanche(hash + mixed(bytes + size - 16, 136 - 17));
}

struct Lanes {
    uint64_t of[8] = {P32_3, P64_1, P64_2, P64_3, P64_4, P32_2, P64_5, P32_1};

    void add_stripe(const unsigned char* bytes, size_t secret) {
        for (size_t i = 0; i < 8; ++i) {
            const uint64_t word = word_at<8>(bytes + 8 * i), key = word ^ secret_at(secret + 8 * i);
            of[i ^ 1] += word;
            of[i] += (key & 0xFFFFFFFF) * (key >> 32);
        }
    }

    void scramble() {
        for (size_t i = 0; i < 8; ++i) of[i] = (of[i] ^ of[i] >> 47 ^ secret_at(128 + 8 * i)) * P32_1;
    }
};

// More than 240 bytes: stripes of 64, of which 16 are a block.
uint64_t hash_long(const unsigned char* bytes, size_t size) {
    Lanes lanes;
    const size_t stripes = (size - 1) / 64;
    for (size_t i = 0; i < stripes; ++i) {
        lanes.add_stripe(bytes + 64 * i, 8 * (i % 16));
        if (i % 16 == 15) lanes.scramble();
    }
    lanes.add_stripe(bytes + size - 64, 121);
    uint64_t hash = size * P64_1;
    for (size_t i = 0; i < 4; ++i) {
        hash += folded_product(lanes.of[2 * i] ^ secret_at(11 + 16 * i), lanes.of[2 * i + 1] ^ secret_at(19 + 16 * i));
    }
    return avalanche(hash);
}

uint64_t xxh3(nb::bytes data) { return xxh3_of(static_cast<const unsigned char*>(data.data()), data.size()); }

}  // namespace

uint64_t xxh3_of(const unsigned char* bytes, size_t size) {
    return size <= 16 ? hash_short(bytes, size) : size <= 240 ? hash_middle(bytes, size) : hash_long(bytes, size);
}

void bind_xxh3(nb::module_& m) { m.def("xxh3", &xxh3, nb::arg("data"), "64 bits, without a sign. Twin: tests.oracles.xxh3.xxh3"); }

}  // namespace paperwasp
