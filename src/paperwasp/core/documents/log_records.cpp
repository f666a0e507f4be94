// The bytes of records that the operation log appends together: docs/internals/formats/operation-log.md. coordination/log_format.py reads
// them, and says what each number of a header is.
//
//     magic 4 bytes · CRC-32 u32 · payload size u32 · partition u16 · kind u16 · sequence u64 · time u64 · distance from the first u32 ·
//     payload
//
// where the CRC, that of zlib, is of all that follows it. Numbers are in the machine's order, which is the format's.
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <cstring>
#include <limits>
#include <string_view>
#include <tuple>
#include <vector>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t MAGIC_BYTES = 4, CRC_BYTES = 4, HEADER_BYTES = MAGIC_BYTES + CRC_BYTES + 28;

// CRC-32 of eight bytes at a time: of[k][b] is what byte b adds that has k bytes behind it.
struct CrcTables {
    uint32_t of[8][256];
    constexpr CrcTables() : of() {
        for (uint32_t b = 0; b < 256; ++b) {
            uint32_t crc = b;
            for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? 0xEDB88320u : 0);
            of[0][b] = crc;
        }
        for (int k = 1; k < 8; ++k)
            for (uint32_t b = 0; b < 256; ++b) of[k][b] = of[k - 1][b] >> 8 ^ of[0][of[k - 1][b] & 255];
    }
};
constexpr CrcTables CRC;

uint32_t crc32(const char* at, size_t size) {
    uint32_t crc = ~0u;
    for (; size >= 8; size -= 8, at += 8) {
        uint32_t low, high;
        std::memcpy(&low, at, 4);
        std::memcpy(&high, at + 4, 4);
        low ^= crc;
        crc = CRC.of[7][low & 255] ^ CRC.of[6][low >> 8 & 255] ^ CRC.of[5][low >> 16 & 255] ^ CRC.of[4][low >> 24] ^ CRC.of[3][high & 255] ^
              CRC.of[2][high >> 8 & 255] ^ CRC.of[1][high >> 16 & 255] ^ CRC.of[0][high >> 24];
    }
    for (; size > 0; --size, ++at) crc = crc >> 8 ^ CRC.of[0][(crc ^ static_cast<uint8_t>(*at)) & 255];
    return ~crc;
}

struct Record {
    uint16_t partition, kind;
    std::string_view payload;
};

template <typename T>
void write(char*& at, T value) {
    std::memcpy(at, &value, sizeof value);
    at += sizeof value;
}

Record record_of(nb::handle given) {
    const auto [partition, payload, kind] = nb::cast<std::tuple<uint16_t, nb::bytes, uint16_t>>(given);
    return {partition, kind, {payload.c_str(), payload.size()}};
}

// (bytes, the CRC of each) of records (partition, payload, kind). `sequences`: of the last record of each partition before them.
nb::tuple log_records(const nb::bytes& magic, const nb::list& records, std::vector<uint64_t> sequences, uint64_t time_us) {
    if (magic.size() != MAGIC_BYTES) throw nb::value_error("a magic of four bytes");
    std::vector<Record> found;
    size_t size = 0;
    for (nb::handle each : records) {
        found.push_back(record_of(each));
        if (found.back().partition >= sequences.size()) throw nb::value_error("no such partition");
        size += HEADER_BYTES + found.back().payload.size();
    }
    if (size > std::numeric_limits<uint32_t>::max()) throw nb::value_error("records that are too long");
    PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
    if (made == nullptr) throw nb::python_error();
    const nb::object data = nb::steal(made);
    char* const start = PyBytes_AS_STRING(made);
    std::vector<uint32_t> crcs;
    {
        const GilRelease unlocked(is_much(size));
        char* at = start;
        for (const Record& record : found) {
            char* const header = at;
            std::memcpy(at, magic.c_str(), MAGIC_BYTES);
            at += MAGIC_BYTES + CRC_BYTES;
            write(at, static_cast<uint32_t>(record.payload.size()));
            write(at, record.partition);
            write(at, record.kind);
            write(at, ++sequences[record.partition]);
            write(at, time_us);
            write(at, static_cast<uint32_t>(header - start));
            std::memcpy(at, record.payload.data(), record.payload.size());
            at += record.payload.size();
            const char* const rest = header + MAGIC_BYTES + CRC_BYTES;
            crcs.push_back(crc32(rest, static_cast<size_t>(at - rest)));
            std::memcpy(header + MAGIC_BYTES, &crcs.back(), CRC_BYTES);
        }
    }
    return nb::make_tuple(data, crcs);
}

}  // namespace

void bind_log_records(nb::module_& m) {
    m.def("log_records", &log_records, nb::arg("magic"), nb::arg("records"), nb::arg("sequences"), nb::arg("time_us"));
}

}  // namespace paperwasp
