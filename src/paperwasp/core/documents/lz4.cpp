// LZ4 blocks: see lz4.hpp.
//
// A block is sequences of a token, literals and a match: the token's upper four bits are the number of literals, its
// lower four the length of the match less four, 15 meaning that bytes follow that are added up until one is below 255.
// A match is a distance back, of two bytes. The last sequence has literals alone. A compressor keeps five bytes at the
// end literal and begins no match in the last twelve, which is what fast decompressors count on.
#include "documents/lz4.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t LEAST_MATCH = 4, LITERAL_END = 5, LAST_MATCH_START = 12, FARTHEST = 65535;
constexpr size_t TOKEN_MOST = 15, WIDE = 16;
constexpr size_t CHANCE_MATCH = 6;            // of at most this many equal digits it is assumed that chance made them so
constexpr size_t SHORT_MATCH_WORTH = 4;       // other bytes are a match from this length on, which outweighs as many places without a match
constexpr int HASH_BITS = 12, SKIP_BITS = 6;  // a step grows by one each 64 places without a match

uint32_t word_at(const uint8_t* at) {
    uint32_t word;
    std::memcpy(&word, at, sizeof word);
    return word;
}

size_t slot_of(const uint8_t* at) { return (word_at(at) * 2654435761u) >> (32 - HASH_BITS); }

bool is_of_number(uint8_t byte) { return byte >= '-' && byte <= '9'; }

// Whether a match is within a number and so short that it saves a few bytes at most. A vector takes several times as long with such
// matches, and is hardly shorter.
bool is_by_chance(const uint8_t* at, size_t length) {
    return length <= CHANCE_MATCH && is_of_number(at[0]) && is_of_number(at[1]) && is_of_number(at[2]) && is_of_number(at[3]);
}

void append_length(size_t rest, std::string& to) {
    for (; rest >= 255; rest -= 255) to += static_cast<char>(255);
    to += static_cast<char>(rest);
}

// Literals, and behind them a match; without one where `match` is 0.
void append_sequence(const uint8_t* literals, size_t count, size_t distance, size_t match, std::string& to) {
    const size_t extra = match == 0 ? 0 : match - LEAST_MATCH;
    to += static_cast<char>(std::min(count, TOKEN_MOST) << 4 | std::min(extra, TOKEN_MOST));
    if (count >= TOKEN_MOST) append_length(count - TOKEN_MOST, to);
    to.append(reinterpret_cast<const char*>(literals), count);
    if (match == 0) return;
    to += static_cast<char>(distance & 0xFF);
    to += static_cast<char>(distance >> 8);
    if (extra >= TOKEN_MOST) append_length(extra - TOKEN_MOST, to);
}

// Adds what follows a 15 to `length`. False: the block ends before.
bool read_length(const uint8_t*& at, const uint8_t* end, size_t& length) {
    uint8_t byte;
    do {
        if (at == end) return false;
        byte = *at++;
        length += byte;
    } while (byte == 255);
    return true;
}

// Copies what stands `distance` before `to` there; what is copied may be what this has just written. There is room for
// `room` bytes, of which those behind `length` may be overwritten too.
void copy_match(uint8_t* to, size_t distance, size_t length, size_t room) {
    const uint8_t* from = to - distance;
    if (distance >= WIDE && length + WIDE <= room) {
        for (size_t i = 0; i < length; i += WIDE) std::memcpy(to + i, from + i, WIDE);
        return;
    }
    for (size_t i = 0; i < length; ++i) to[i] = from[i];
}

nb::bytes compressed_block(nb::bytes data) {
    std::string block;
    lz4_compress(static_cast<const uint8_t*>(data.data()), data.size(), block);
    return nb::bytes(block.data(), block.size());
}

nb::object decompressed_block(nb::bytes block, size_t size) {
    if (size > block.size() * LZ4_MOST_BYTES_OF_ONE) return nb::none();
    std::vector<uint8_t> plain(size + 1);
    const bool whole = lz4_decompress(static_cast<const uint8_t*>(block.data()), block.size(), plain.data(), size);
    return whole ? nb::object(nb::bytes(plain.data(), size)) : nb::none();
}

}  // namespace

void lz4_compress(const uint8_t* from, size_t size, std::string& to) {
    size_t done = 0;
    if (size > LAST_MATCH_START) {
        std::array<uint32_t, 1 << HASH_BITS> seen{};  // place + 1 of the last four bytes with this hash; 0: none
        const size_t last_start = size - LAST_MATCH_START, last_end = size - LITERAL_END;
        size_t misses = 0;
        for (size_t at = 0; at <= last_start;) {
            uint32_t& slot = seen[slot_of(from + at)];
            const size_t before = slot;
            slot = static_cast<uint32_t>(at + 1);
            const size_t distance = at + 1 - before;
            if (before == 0 || distance > FARTHEST || word_at(from + at) != word_at(from + at - distance)) {
                at += 1 + (misses++ >> SKIP_BITS);
                continue;
            }
            size_t length = LEAST_MATCH;
            while (at + length < last_end && from[at + length] == from[at + length - distance]) ++length;
            if (is_by_chance(from + at, length)) {
                at += 1 + (misses++ >> SKIP_BITS);
                continue;
            }
            append_sequence(from + done, at - done, distance, length, to);
            done = at += length;
            misses = length > CHANCE_MATCH ? 0 : misses - std::min(misses, SHORT_MATCH_WORTH);
        }
    }
    append_sequence(from + done, size - done, 0, 0, to);
}

bool lz4_decompress(const uint8_t* block, size_t size, uint8_t* to, size_t to_size) {
    const uint8_t *at = block, *const end = block + size;
    uint8_t *out = to, *const limit = to + to_size;
    while (at < end) {
        const uint8_t token = *at++;
        size_t literals = token >> 4, match = token & 15;
        if (literals == TOKEN_MOST && !read_length(at, end, literals)) return false;
        if (literals > static_cast<size_t>(end - at) || literals > static_cast<size_t>(limit - out)) return false;
        if (literals <= WIDE && end - at >= static_cast<ptrdiff_t>(WIDE) && limit - out >= static_cast<ptrdiff_t>(WIDE)) {
            std::memcpy(out, at, WIDE);
        } else if (literals > 0) {
            std::memcpy(out, at, literals);
        }
        at += literals;
        out += literals;
        if (at == end) return out == limit;
        if (end - at < 2) return false;
        const size_t distance = at[0] | static_cast<size_t>(at[1]) << 8;
        at += 2;
        if (match == TOKEN_MOST && !read_length(at, end, match)) return false;
        match += LEAST_MATCH;
        const auto room = static_cast<size_t>(limit - out);
        if (distance == 0 || distance > static_cast<size_t>(out - to) || match > room) return false;
        copy_match(out, distance, match, room);
        out += match;
    }
    return false;
}

void bind_lz4(nb::module_& m) {
    m.def("lz4_compress", &compressed_block, nb::arg("data"), "The LZ4 block of some bytes.");
    m.def("lz4_decompress", &decompressed_block, nb::arg("block"), nb::arg("size"),
          "The `size` bytes of an LZ4 block; None where it is damaged or makes another number of them. Twin:"
          " tests.oracles.lz4_block");
}

}  // namespace paperwasp
