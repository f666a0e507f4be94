// Documents by row: for runs of consecutive lids, the document's id and the JSON of its fields, in mapped files. The
// format: docs/internals/formats/rows.md.
//
// A RowFiles is made once of several files and never changes; it keeps their memory alive. Nothing in a file is trusted:
// a row that is not what was written is not there.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"

namespace paperwasp {

struct RowFile {
    uint32_t base = 0;
    uint32_t count = 0;
    const uint8_t* table = nullptr;    // count + 1 starts of records, of four bytes each
    const uint8_t* records = nullptr;  // records_bytes
    uint64_t records_bytes = 0;

    // The record of the row with this number in the file; empty: there is none, or the table is damaged.
    std::string_view record(uint32_t number) const;
};

// A record's parts. `packed` is the JSON as an LZ4 block, or as it is where it has `plain_bytes`.
struct Row {
    std::string_view id;
    std::string_view packed;
    uint32_t plain_bytes = 0;
};

struct RowFiles {
    std::vector<RowFile> files;      // ascending, without overlap
    std::vector<nb::object> owners;  // keep the memory

    // The record of a lid; empty: none of the files has it.
    std::string_view record(uint32_t lid) const;
};

// Takes a record apart. False: its checksum, or what it says of itself, is wrong.
bool read_row(std::string_view record, Row& row);

// The JSON of a row, in `to`. False: it is damaged.
bool unpack_row(const Row& row, std::string& to);

}  // namespace paperwasp
