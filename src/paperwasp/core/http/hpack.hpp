// HPACK, the compression of headers in HTTP/2: RFC 7541.
//
// A block of headers is a list of fields, each by its number in a table or spelled out. The first 61 entries of the
// table are the same for all; behind them stand those of the connection, the newest first, which blocks add as they go.
// So all blocks of a connection must be decoded, in their order, also those whose headers nobody wants.
//
//     HpackDecoder   blocks → fields, with the table of a connection
//     hpack_field    a field → bytes, without a table of the connection: such blocks are good for all connections
//     hpack_added_field   the same, and an entry of the table of the connection
//
// Entries keep what a reader has made of them (FieldNotes): a client sends the same headers again and again, by number.
// Threads: a decoder is used by one at a time, with Python's objects in reach. What is noted of the static table never changes once a
// connection has been made.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"

namespace paperwasp {

constexpr uint32_t HPACK_TABLE_BYTES = 4096;     // of the table of a connection: what SETTINGS_HEADER_TABLE_SIZE is if not set
constexpr uint32_t HPACK_FIELD_BYTES = 32;       // what a field counts beside its name and value, here and in header lists
constexpr uint8_t HPACK_TABLE_SIZE_ZERO = 0x20;  // as the first byte of a block: the encoder uses no table

// What the reader of headers has made of a name and a value. HPACK copies what is of the name along with it.
struct FieldNotes {
    uint8_t kind = 0;   // of the name; 0: not known yet
    uint8_t state = 0;  // of the value; 0: not known yet
    nb::object name;
    nb::object value;
    nb::object rest;  // what else is made of the value
};

struct HpackEntry {
    std::string name;
    std::string value;
    FieldNotes notes;

    size_t size_bytes() const { return name.size() + value.size() + HPACK_FIELD_BYTES; }
};

// The entry of the static table, from 1 to 61.
HpackEntry& hpack_static(uint32_t number);
constexpr uint32_t HPACK_STATIC_ENTRIES = 61;

// The number of the first static entry with this name; 0: there is none.
uint32_t hpack_static_name(std::string_view name);

// The entries that a connection has added: a queue whose newest entry has the number 0, and whose oldest go where there
// is no room.
class HpackTable {
  public:
    uint32_t count() const { return count_; }
    size_t size_bytes() const { return size_bytes_; }
    HpackEntry& at(uint32_t number) { return entries_[(newest_ - number) & (entries_.size() - 1)]; }

    void limit(uint32_t limit_bytes);

    // Takes the content of `entry`. Gives where it stands now; `entry` itself, untouched, where it is larger than the
    // table.
    HpackEntry& add(HpackEntry& entry);

  private:
    void drop_oldest();
    void grow();

    std::vector<HpackEntry> entries_;  // a ring; a power of two, or empty
    uint32_t newest_ = 0;
    uint32_t count_ = 0;
    size_t size_bytes_ = 0;
    size_t limit_bytes_ = HPACK_TABLE_BYTES;
};

class HpackDecoder {
  public:
    enum class Step { FIELD, END, DAMAGED };

    // Begins with a block, which must stay where it is until its end.
    void begin(const uint8_t* block, size_t size);

    // FIELD: `field()` is the next one, until the next call. DAMAGED: so is the connection.
    Step next();
    HpackEntry& field() { return *field_; }
    HpackTable& table() { return table_; }

  private:
    HpackEntry* entry(uint64_t number);
    bool read_number(int prefix_bits, uint64_t& number);
    bool read_text(std::string& to);
    Step read_literal(int prefix_bits, bool is_added);

    HpackTable table_;
    HpackEntry literal_;
    HpackEntry* field_ = nullptr;
    const uint8_t* at_ = nullptr;
    const uint8_t* end_ = nullptr;
    bool may_resize_ = false;  // before the first field
};

// Appends a field as such a block has it: by its number in the static table, or literally, Huffman coded where that is
// shorter.
void hpack_field(std::string_view name, std::string_view value, std::string& to);

// The same, but that a literal is to be added to the decoder's table, which the caller keeps count of. Whether it is one.
bool hpack_added_field(std::string_view name, std::string_view value, std::string& to);

// Appends a number whose first byte begins with a pattern and has `prefix_bits` bits of it: RFC 7541, section 5.1.
void hpack_number(uint64_t number, uint8_t pattern, int prefix_bits, std::string& to);

}  // namespace paperwasp
