// Global ids of documents: parts of two MD5s of short strings, one call for both. OpenSSL takes longer to set up an MD5 than to compute it.
// The plain twin is in tests/oracles/global_id.py. Source of MD5: RFC 1321.
#include <array>
#include <cstring>
#include <string_view>

#include "core.hpp"
#include "documents/global_id.hpp"

namespace paperwasp {
namespace {

constexpr size_t BLOCK_BYTES = 64;
constexpr size_t LENGTH_BYTES = 8;

// The whole part of 2^32 * |sin(i + 1)|.
constexpr std::array<uint32_t, 64> SINES = {
    0xd76aa478, 0xe8c7b756, 0x242070db, 0xc1bdceee, 0xf57c0faf, 0x4787c62a, 0xa8304613, 0xfd469501, 0x698098d8, 0x8b44f7af, 0xffff5bb1,
    0x895cd7be, 0x6b901122, 0xfd987193, 0xa679438e, 0x49b40821, 0xf61e2562, 0xc040b340, 0x265e5a51, 0xe9b6c7aa, 0xd62f105d, 0x02441453,
    0xd8a1e681, 0xe7d3fbc8, 0x21e1cde6, 0xc33707d6, 0xf4d50d87, 0x455a14ed, 0xa9e3e905, 0xfcefa3f8, 0x676f02d9, 0x8d2a4c8a, 0xfffa3942,
    0x8771f681, 0x6d9d6122, 0xfde5380c, 0xa4beea44, 0x4bdecfa9, 0xf6bb4b60, 0xbebfbc70, 0x289b7ec6, 0xeaa127fa, 0xd4ef3085, 0x04881d05,
    0xd9d4d039, 0xe6db99e5, 0x1fa27cf8, 0xc4ac5665, 0xf4292244, 0x432aff97, 0xab9423a7, 0xfc93a039, 0x655b59c3, 0x8f0ccc92, 0xffeff47d,
    0x85845dd1, 0x6fa87e4f, 0xfe2ce6e0, 0xa3014314, 0x4e0811a1, 0xf7537e82, 0xbd3af235, 0x2ad7d2bb, 0xeb86d391,
};
constexpr std::array<std::array<uint32_t, 4>, 4> ROTATIONS = {{{7, 12, 17, 22}, {5, 9, 14, 20}, {4, 11, 16, 23}, {6, 10, 15, 21}}};

uint32_t rotated(uint32_t word, uint32_t bits) { return word << bits | word >> (32 - bits); }

// MD5 is of little-endian words, as those of the processors that this is built for.
class Md5 {
  public:
    explicit Md5(std::string_view text) {
        size_t done = 0;
        for (; text.size() - done >= BLOCK_BYTES; done += BLOCK_BYTES) add_block(text.data() + done);
        // The end: one bit, zeros, and the length in bits at the end of the last block.
        std::array<char, 2 * BLOCK_BYTES> end{};
        const size_t left = text.size() - done;
        if (left > 0) std::memcpy(end.data(), text.data() + done, left);
        end[left] = static_cast<char>(0x80);
        const size_t size = left + 1 + LENGTH_BYTES <= BLOCK_BYTES ? BLOCK_BYTES : 2 * BLOCK_BYTES;
        const uint64_t bits = static_cast<uint64_t>(text.size()) * 8;
        std::memcpy(end.data() + size - LENGTH_BYTES, &bits, LENGTH_BYTES);
        for (size_t at = 0; at < size; at += BLOCK_BYTES) add_block(end.data() + at);
    }

    // Bytes [4 * word, 4 * word + 4 * words) of the digest.
    void copy_words(size_t word, size_t words, char* to) const { std::memcpy(to, state_.data() + word, 4 * words); }

  private:
    void add_block(const char* block) {
        std::array<uint32_t, 16> words;
        std::memcpy(words.data(), block, BLOCK_BYTES);
        auto [a, b, c, d] = state_;
        for (uint32_t i = 0; i < 64; ++i) {
            uint32_t mixed = 0;
            uint32_t word = 0;
            switch (i / 16) {
                case 0:
                    mixed = (b & c) | (~b & d), word = i;
                    break;
                case 1:
                    mixed = (d & b) | (~d & c), word = 5 * i + 1;
                    break;
                case 2:
                    mixed = b ^ c ^ d, word = 3 * i + 5;
                    break;
                default:
                    mixed = c ^ (b | ~d), word = 7 * i;
                    break;
            }
            const uint32_t sum = a + mixed + SINES[i] + words[word % 16];
            a = d;
            d = c;
            c = b;
            b += rotated(sum, ROTATIONS[i / 16][i % 4]);
        }
        state_[0] += a;
        state_[1] += b;
        state_[2] += c;
        state_[3] += d;
    }

    std::array<uint32_t, 4> state_ = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476};
};

// The text as UTF-8, lone surrogates like other characters; `kept` owns it where Python does not.
std::string_view utf8(nb::str text, nb::object& kept) {
    Py_ssize_t size = 0;
    if (const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size)) return {bytes, static_cast<size_t>(size)};
    PyErr_Clear();
    kept = nb::steal(PyUnicode_AsEncodedString(text.ptr(), "utf-8", "surrogatepass"));
    if (!kept.is_valid()) nb::raise_python_error();
    return {PyBytes_AS_STRING(kept.ptr()), static_cast<size_t>(PyBytes_GET_SIZE(kept.ptr()))};
}

nb::bytes global_id(nb::str location, nb::str id) {
    nb::object kept_location;
    nb::object kept_id;
    const std::array<char, 12> gid = global_id_of(utf8(location, kept_location), utf8(id, kept_id));
    return nb::bytes(gid.data(), gid.size());
}

}  // namespace

std::array<char, 12> global_id_of(std::string_view location, std::string_view id) {
    std::array<char, 12> gid;
    Md5(location).copy_words(0, 1, gid.data());
    Md5(id).copy_words(1, 2, gid.data() + 4);
    return gid;
}

void bind_global_id(nb::module_& m) {
    m.def("global_id", &global_id, nb::arg("location"), nb::arg("id"),
          "The twelve bytes of a global id: bytes 0-3 of the MD5 of the location, then bytes 4-11 of that of the id.");
}

}  // namespace paperwasp
