// The Huffman code of header strings: what huffman.hpp declares.
//
// Decoding looks at 12 bits at a time, which hold one or two whole codes of what headers are made of; codes of 13 bits
// and more, which stand for bytes that are rare, are found by their length. Bits are kept at the top of a word of 64.
#include "http/huffman.hpp"

#include <algorithm>
#include <cstring>

namespace paperwasp {
namespace {

constexpr int SYMBOLS = 257, EOS = 256;
constexpr int LONGEST_BITS = 30;
constexpr int LOOK_BITS = 12;
constexpr int STEPS_OF_A_FILL = 4;  // a filled word has at least 56 bits, and a step takes 12

// Bits of the code of each symbol: RFC 7541, appendix B.
constexpr uint8_t CODE_BITS[SYMBOLS] = {
    13, 23, 28, 28, 28, 28, 28, 28, 28, 24, 30, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 30, 28, 28, 28, 28, 28, 28, 28, 28, 28, 6,
    10, 10, 12, 13, 6,  8,  11, 10, 10, 8,  11, 8,  6,  6,  6,  5,  5,  5,  6,  6,  6,  6,  6,  6,  6,  7,  8,  15, 6,  12, 10, 13, 6,
    7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  7,  8,  7,  8,  13, 19, 13, 14, 6,  15, 5,  6,
    5,  6,  5,  6,  6,  6,  5,  7,  7,  6,  6,  6,  5,  6,  7,  6,  5,  5,  6,  7,  7,  7,  7,  7,  15, 11, 14, 13, 28, 20, 22, 20, 20,
    22, 22, 22, 23, 22, 23, 23, 23, 23, 23, 24, 23, 24, 24, 22, 23, 24, 23, 23, 23, 23, 21, 22, 23, 22, 23, 23, 24, 22, 21, 20, 22, 22,
    23, 23, 21, 23, 22, 22, 24, 21, 22, 23, 23, 21, 21, 22, 21, 23, 22, 23, 23, 20, 22, 22, 22, 23, 22, 22, 23, 26, 26, 20, 19, 22, 23,
    22, 25, 26, 26, 26, 27, 27, 26, 24, 25, 19, 21, 26, 27, 27, 26, 27, 24, 21, 21, 26, 26, 28, 27, 27, 27, 20, 24, 20, 21, 22, 21, 21,
    23, 22, 22, 25, 25, 24, 24, 26, 23, 26, 27, 26, 26, 27, 27, 27, 27, 27, 28, 27, 27, 27, 27, 27, 26, 30};

struct Step {
    uint8_t symbols[2];  // those whose codes are whole within LOOK_BITS
    uint8_t count;       // 0: the first code is longer
    uint8_t bits;        // of all of them
    uint8_t first_bits;  // of the first
};

struct Tables {
    uint32_t codes[SYMBOLS];
    uint16_t by_code[SYMBOLS];        // symbols in the order of their codes
    uint64_t ends[LONGEST_BITS + 1];  // behind the last code of a length, at the top of 32 bits; 0: it has none
    uint32_t first_codes[LONGEST_BITS + 1];
    uint16_t first_ranks[LONGEST_BITS + 1];  // of the first code of a length in `by_code`
    Step steps[1 << LOOK_BITS];

    Tables() : ends{}, first_codes{}, first_ranks{} {
        for (int symbol = 0; symbol < SYMBOLS; ++symbol) by_code[symbol] = static_cast<uint16_t>(symbol);
        std::stable_sort(by_code, by_code + SYMBOLS, [](uint16_t a, uint16_t b) { return CODE_BITS[a] < CODE_BITS[b]; });
        uint32_t code = 0;
        int bits = CODE_BITS[by_code[0]];
        for (int rank = 0; rank < SYMBOLS; ++rank) {
            const uint16_t symbol = by_code[rank];
            if (CODE_BITS[symbol] != bits || rank == 0) {
                code <<= CODE_BITS[symbol] - bits;
                bits = CODE_BITS[symbol];
                first_codes[bits] = code;
                first_ranks[bits] = static_cast<uint16_t>(rank);
            }
            codes[symbol] = code++;
            ends[bits] = uint64_t{code} << (32 - bits);
        }
        for (uint32_t look = 0; look < 1u << LOOK_BITS; ++look) steps[look] = step(look);
    }

    // The symbol whose code is first in these 32 bits, and how long that is.
    uint16_t first(uint32_t bits, int& length) const {
        for (length = 5; length <= LONGEST_BITS; ++length) {
            if (bits >= ends[length]) continue;
            return by_code[first_ranks[length] + ((bits >> (32 - length)) - first_codes[length])];
        }
        length = LONGEST_BITS;  // not reached: the last code is all ones, and its end is 2^32
        return EOS;
    }

  private:
    Step step(uint32_t look) const {
        Step found{};
        uint32_t bits = look << (32 - LOOK_BITS);
        int length = 0;
        for (int left = LOOK_BITS; found.count < 2; left -= length) {
            const uint16_t symbol = first(bits, length);
            if (length > left) break;
            if (found.count == 0) found.first_bits = static_cast<uint8_t>(length);
            found.symbols[found.count++] = static_cast<uint8_t>(symbol);
            found.bits = static_cast<uint8_t>(found.bits + length);
            bits <<= length;
        }
        return found;
    }
};

const Tables TABLES;

inline uint64_t big_endian(const uint8_t* from) {
    uint64_t word;
    std::memcpy(&word, from, sizeof word);
    return __builtin_bswap64(word);
}

// Bits of a string, taken from the front: `available` of them stand at the top of `word`. Below are the bits that come
// next, or zeros, so that a byte may be put there twice.
struct Bits {
    const uint8_t* from;
    const uint8_t* end;
    uint64_t word = 0;
    int available = 0;

    void fill() {
        while (available <= 56 && from < end) {
            word |= uint64_t{*from++} << (56 - available);
            available += 8;
        }
    }
    void drop(int bits) {
        word <<= bits;
        available -= bits;
    }
};

// What is too long for a look, and the end of the string. False: damaged.
bool decode_one(Bits& bits, char*& to) {
    int length = 0;
    const uint16_t symbol = TABLES.first(static_cast<uint32_t>(bits.word >> 32), length);
    if (length > bits.available || symbol == EOS) return false;
    *to++ = static_cast<char>(symbol);
    bits.drop(length);
    return true;
}

}  // namespace

size_t huffman_size(const uint8_t* from, size_t size) {
    size_t bits = 0;
    for (size_t i = 0; i < size; ++i) bits += CODE_BITS[from[i]];
    return (bits + 7) / 8;
}

void huffman_encode(const uint8_t* from, size_t size, std::string& to) {
    uint64_t word = 0;
    int pending = 0;  // bits in the word that are not appended yet
    for (size_t i = 0; i < size; ++i) {
        word = word << CODE_BITS[from[i]] | TABLES.codes[from[i]];
        for (pending += CODE_BITS[from[i]]; pending >= 8; pending -= 8) to.push_back(static_cast<char>(word >> (pending - 8)));
    }
    if (pending > 0) to.push_back(static_cast<char>(word << (8 - pending) | 0xFF >> pending));
}

bool huffman_decode(const uint8_t* from, size_t size, std::string& to) {
    const size_t before = to.size();
    to.resize(before + size * 8 / 5 + 1);
    char* out = to.data() + before;
    Bits bits{from, from + size};
    while (bits.end - bits.from >= 8) {
        bits.word |= big_endian(bits.from) >> bits.available;
        const int bytes = (63 - bits.available) >> 3;
        bits.from += bytes;
        bits.available += bytes * 8;
        for (int i = 0; i < STEPS_OF_A_FILL; ++i) {
            const Step step = TABLES.steps[bits.word >> (64 - LOOK_BITS)];
            if (step.count == 0) {
                bits.fill();
                if (!decode_one(bits, out)) return false;
                break;
            }
            // Two are written and one or two count: there is room for one byte more than can be decoded.
            out[0] = static_cast<char>(step.symbols[0]);
            out[1] = static_cast<char>(step.symbols[1]);
            out += step.count;
            bits.drop(step.bits);
        }
    }
    for (bits.fill(); bits.available >= 8 || bits.from < bits.end; bits.fill()) {
        const Step step = TABLES.steps[bits.word >> (64 - LOOK_BITS)];
        if (step.count > 0 && step.first_bits <= bits.available) {
            *out++ = static_cast<char>(step.symbols[0]);
            bits.drop(step.first_bits);
        } else if (!decode_one(bits, out)) {
            return false;
        }
    }
    // Fewer than eight bits are left: a code, or padding by ones.
    while (bits.available > 0) {
        if (bits.word >> (64 - bits.available) == (uint64_t{1} << bits.available) - 1) break;
        if (!decode_one(bits, out)) return false;
    }
    to.resize(static_cast<size_t>(out - to.data()));
    return true;
}

}  // namespace paperwasp
