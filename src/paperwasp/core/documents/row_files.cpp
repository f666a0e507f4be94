// Documents by row: see row_files.hpp. The plain twin is in tests/oracles/row_files.py.
#include "documents/row_files.hpp"

#include <algorithm>
#include <cstring>
#include <memory>

#include "arrays.hpp"
#include "documents/lz4.hpp"
#include "documents/plain_change.hpp"
#include "xxh3.hpp"

namespace paperwasp {
namespace {

constexpr char MAGIC[8] = {'p', 'w', 'r', 'o', 'w', 's', 0, 1};
constexpr size_t HEADER_BYTES = 32, BASE_AT = 8, COUNT_AT = 12, RECORDS_BYTES_AT = 16;
constexpr size_t RECORD_HEADER_BYTES = 10, PLAIN_BYTES_AT = 4, ID_BYTES_AT = 8;
constexpr size_t MOST_ID_BYTES = 65535, MOST_JSON_BYTES = 0x7FFFFFFF, MOST_RECORDS_BYTES = 0xFFFFFFFF;
constexpr uint32_t LAST_LID = 0xFFFFFFF0;

// Little-endian, whatever the machine is, and wherever it stands.
template <typename T>
T number_at(const uint8_t* at) {
    T number = 0;
    for (size_t i = 0; i < sizeof(T); ++i) number |= static_cast<T>(static_cast<T>(at[i]) << (8 * i));
    return number;
}

template <typename T>
void write_number(T number, char* to) {
    for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<char>(number >> (8 * i) & 0xFF);
}

const uint8_t* bytes_of(std::string_view text) { return reinterpret_cast<const uint8_t*>(text.data()); }

uint32_t checksum_of(std::string_view rest) { return static_cast<uint32_t>(xxh3_of(bytes_of(rest), rest.size())); }

RowFile open_file(const In<uint8_t>& bytes) {
    const uint8_t* start = bytes.data();
    const size_t size = bytes.size();
    if (size < HEADER_BYTES || std::memcmp(start, MAGIC, sizeof MAGIC) != 0) throw nb::value_error("not a file of rows");
    RowFile file;
    file.base = number_at<uint32_t>(start + BASE_AT);
    file.count = number_at<uint32_t>(start + COUNT_AT);
    file.records_bytes = number_at<uint64_t>(start + RECORDS_BYTES_AT);
    const uint64_t table_bytes = (uint64_t{file.count} + 1) * sizeof(uint32_t);
    const uint64_t left = size - HEADER_BYTES;
    if (table_bytes > left || file.records_bytes != left - table_bytes) throw nb::value_error("a file of rows of another size");
    if (file.count == 0 || file.base > LAST_LID - std::min(file.count, LAST_LID)) throw nb::value_error("no rows, or too many");
    file.table = start + HEADER_BYTES;
    file.records = file.table + table_bytes;
    return file;
}

std::unique_ptr<RowFiles> make_row_files(const nb::list& buffers) {
    auto rows = std::make_unique<RowFiles>();
    uint64_t limit = 0;
    for (nb::handle buffer : buffers) {
        const RowFile file = open_file(as_given<uint8_t>(buffer));
        if (file.base < limit) throw nb::value_error("files of rows must ascend and not overlap");
        limit = uint64_t{file.base} + file.count;
        rows->files.push_back(file);
        rows->owners.push_back(nb::borrow(buffer));
    }
    return rows;
}

void append_record(std::string_view id, std::string_view json, std::string& to) {
    const size_t start = to.size();
    to.append(RECORD_HEADER_BYTES, '\0');
    to.append(id);
    const size_t packed = to.size();
    lz4_compress(bytes_of(json), json.size(), to);
    if (to.size() - packed >= json.size()) {
        to.resize(packed);
        to.append(json);
    }
    write_number(static_cast<uint32_t>(json.size()), &to[start + PLAIN_BYTES_AT]);
    write_number(static_cast<uint16_t>(id.size()), &to[start + ID_BYTES_AT]);
    write_number(checksum_of(std::string_view(to).substr(start + PLAIN_BYTES_AT)), &to[start]);
}

// Both texts of each document; those of a row without one are empty. What cannot be kept is left out.
using Documents = std::vector<std::pair<std::string_view, std::string_view>>;

Documents documents_of(const nb::sequence& documents) {
    Documents found;
    for (nb::handle each : documents) {
        found.emplace_back();
        if (each.is_none()) continue;
        if (const PlainChange* const put = plain_change_of(each); put != nullptr) {
            found.back() = {put->id, put->values.json};
            if (put->id.size() > MOST_ID_BYTES || put->values.json.size() > MOST_JSON_BYTES) found.back() = {};
            continue;
        }
        const auto pair = nb::cast<nb::tuple>(each);
        if (pair.size() != 2) throw nb::value_error("a document is its id and its JSON");
        const auto id = nb::cast<nb::bytes>(pair[0]), json = nb::cast<nb::bytes>(pair[1]);
        if (id.size() > MOST_ID_BYTES || json.size() > MOST_JSON_BYTES) continue;
        found.back() = {std::string_view(id.c_str(), id.size()), std::string_view(json.c_str(), json.size())};
    }
    return found;
}

using Lengths = std::vector<uint32_t>;

// (bytes of each record, the records)
nb::tuple pack_rows(const nb::sequence& documents) {
    const Documents found = documents_of(documents);
    auto lengths = std::make_unique<Lengths>();
    std::string records;
    {
        const Unlocked unlocked;
        for (const auto& [id, json] : found) {
            const size_t start = records.size();
            if (!json.empty()) append_record(id, json, records);
            if (records.size() > MOST_RECORDS_BYTES) throw std::length_error("more rows than a file can have");
            lengths->push_back(static_cast<uint32_t>(records.size() - start));
        }
    }
    return nb::make_tuple(own(std::move(lengths)), nb::bytes(records.data(), records.size()));
}

// Calls visit(record) for each row first..end, with an empty one where the bitmap does not have it.
template <typename Visit>
void for_each_live(const RowFiles& rows, uint32_t first, uint32_t end, const In<uint64_t>& live, Visit visit) {
    for (uint32_t lid = first; lid < end; ++lid) {
        const bool is_live = lid / 64 < live.size() && (live.data()[lid / 64] >> (lid % 64) & 1) != 0;
        visit(is_live ? rows.record(lid) : std::string_view());
    }
}

nb::object record_lengths(const RowFiles& rows, uint32_t first, uint32_t end, In<uint64_t> live) {
    auto lengths = std::make_unique<Lengths>();
    {
        const Unlocked unlocked;
        for_each_live(rows, first, end, live, [&](std::string_view record) { lengths->push_back(static_cast<uint32_t>(record.size())); });
    }
    return own(std::move(lengths));
}

nb::bytes live_records(const RowFiles& rows, uint32_t first, uint32_t end, In<uint64_t> live) {
    std::string records;
    {
        const Unlocked unlocked;
        for_each_live(rows, first, end, live, [&](std::string_view record) { records.append(record); });
    }
    return nb::bytes(records.data(), records.size());
}

bool is_whole(const RowFiles& rows) {
    const Unlocked unlocked;
    Row row;
    for (const RowFile& file : rows.files) {
        uint64_t end = 0;
        for (uint32_t number = 0; number < file.count; ++number) {
            const std::string_view record = file.record(number);
            if (!record.empty() && !read_row(record, row)) return false;
            end += record.size();
        }
        if (end != file.records_bytes) return false;
    }
    return true;
}

nb::object row_at(const RowFiles& rows, uint32_t lid) {
    Row row;
    std::string json;
    if (!read_row(rows.record(lid), row) || !unpack_row(row, json)) return nb::none();
    return nb::make_tuple(nb::bytes(row.id.data(), row.id.size()), nb::bytes(json.data(), json.size()));
}

}  // namespace

std::string_view RowFile::record(uint32_t number) const {
    const uint64_t start = number_at<uint32_t>(table + size_t{number} * sizeof(uint32_t));
    const uint64_t end = number_at<uint32_t>(table + (size_t{number} + 1) * sizeof(uint32_t));
    if (start > end || end > records_bytes) return {};
    return {reinterpret_cast<const char*>(records + start), static_cast<size_t>(end - start)};
}

std::string_view RowFiles::record(uint32_t lid) const {
    const auto after =
        std::upper_bound(files.begin(), files.end(), lid, [](uint32_t wanted, const RowFile& file) { return wanted < file.base; });
    if (after == files.begin()) return {};
    const RowFile& file = *(after - 1);
    return lid - file.base < file.count ? file.record(lid - file.base) : std::string_view();
}

bool read_row(std::string_view record, Row& row) {
    if (record.size() < RECORD_HEADER_BYTES) return false;
    const uint8_t* at = bytes_of(record);
    const size_t id_bytes = number_at<uint16_t>(at + ID_BYTES_AT);
    if (record.size() - RECORD_HEADER_BYTES < id_bytes) return false;
    if (number_at<uint32_t>(at) != checksum_of(record.substr(PLAIN_BYTES_AT))) return false;
    row.plain_bytes = number_at<uint32_t>(at + PLAIN_BYTES_AT);
    row.id = record.substr(RECORD_HEADER_BYTES, id_bytes);
    row.packed = record.substr(RECORD_HEADER_BYTES + id_bytes);
    return row.packed.size() <= row.plain_bytes && row.plain_bytes <= row.packed.size() * LZ4_MOST_BYTES_OF_ONE;
}

bool unpack_row(const Row& row, std::string& to) {
    if (row.packed.size() == row.plain_bytes) {
        to.assign(row.packed);
        return true;
    }
    to.resize(row.plain_bytes);
    return lz4_decompress(bytes_of(row.packed), row.packed.size(), reinterpret_cast<uint8_t*>(&to[0]), to.size());
}

void bind_row_files(nb::module_& m) {
    nb::class_<RowFiles>(m, "RowFiles")
        .def(
            "__init__", [](RowFiles* self, const nb::list& files) { new (self) RowFiles(std::move(*make_row_files(files))); },
            nb::arg("files"))
        .def("get", &row_at, nb::arg("lid"), "(id, JSON) of a row; None where it is not there, or damaged.")
        .def("lengths", &record_lengths, nb::arg("first"), nb::arg("end"), nb::arg("live"),
             "The bytes of the record of each row first..end; 0 where it is not there, or not in the bitmap.")
        .def("records", &live_records, nb::arg("first"), nb::arg("end"), nb::arg("live"), "Those records.")
        .def("is_whole", &is_whole, "Whether all records are as they were written.");
    m.def("pack_rows", &pack_rows, nb::arg("documents"),
          "(bytes of each record, the records) of documents: each (id, JSON) or a plain put, or None for a row without one. Twin:"
          " tests.oracles.row_files");
}

}  // namespace paperwasp
