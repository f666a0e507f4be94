// SipHash-2-4 of bytes with the key 00 01 ... 0f: 64 bits. Its twin and specification is tests/oracles/siphash.py.
#include <cstring>

#include "core.hpp"

namespace paperwasp {
namespace {

struct State {
    uint64_t v0 = 0x0706050403020100 ^ 0x736F6D6570736575, v1 = 0x0F0E0D0C0B0A0908 ^ 0x646F72616E646F6D;
    uint64_t v2 = 0x0706050403020100 ^ 0x6C7967656E657261, v3 = 0x0F0E0D0C0B0A0908 ^ 0x7465646279746573;

    static uint64_t turned(uint64_t word, int bits) { return word << bits | word >> (64 - bits); }

    void rounds(int count) {
        for (; count > 0; --count) {
            v0 += v1, v2 += v3;
            v1 = turned(v1, 13) ^ v0, v3 = turned(v3, 16) ^ v2;
            v0 = turned(v0, 32);
            v2 += v1, v0 += v3;
            v1 = turned(v1, 17) ^ v2, v3 = turned(v3, 21) ^ v0;
            v2 = turned(v2, 32);
        }
    }

    void add(uint64_t word) {
        v3 ^= word;
        rounds(2);
        v0 ^= word;
    }
};

// Little-endian, of at most eight bytes.
uint64_t word_of(const unsigned char* bytes, size_t size) {
    uint64_t word = 0;
    for (size_t i = 0; i < size; ++i) word |= uint64_t{bytes[i]} << (8 * i);
    return word;
}

uint64_t siphash(nb::bytes data) {
    const auto* bytes = static_cast<const unsigned char*>(data.data());
    const size_t size = data.size(), whole = size & ~size_t{7};
    State state;
    for (size_t at = 0; at < whole; at += 8) state.add(word_of(bytes + at, 8));
    state.add(word_of(bytes + whole, size - whole) | static_cast<uint64_t>(size & 0xFF) << 56);
    state.v2 ^= 0xFF;
    state.rounds(4);
    return state.v0 ^ state.v1 ^ state.v2 ^ state.v3;
}

}  // namespace

void bind_siphash(nb::module_& m) {
    m.def("siphash", &siphash, nb::arg("data"), "64 bits, without a sign. Twin: tests.oracles.siphash.siphash");
}

}  // namespace paperwasp
