// HPACK: what hpack.hpp declares.
#include "http/hpack.hpp"

#include <unordered_map>
#include <utility>

#include "http/huffman.hpp"

namespace paperwasp {
namespace {

// RFC 7541, appendix A.
// clang-format off
constexpr std::pair<const char*, const char*> STATIC[HPACK_STATIC_ENTRIES] = {
    {":authority", ""}, {":method", "GET"}, {":method", "POST"}, {":path", "/"}, {":path", "/index.html"},
    {":scheme", "http"}, {":scheme", "https"}, {":status", "200"}, {":status", "204"}, {":status", "206"},
    {":status", "304"}, {":status", "400"}, {":status", "404"}, {":status", "500"}, {"accept-charset", ""},
    {"accept-encoding", "gzip, deflate"}, {"accept-language", ""}, {"accept-ranges", ""}, {"accept", ""},
    {"access-control-allow-origin", ""}, {"age", ""}, {"allow", ""}, {"authorization", ""}, {"cache-control", ""},
    {"content-disposition", ""}, {"content-encoding", ""}, {"content-language", ""}, {"content-length", ""},
    {"content-location", ""}, {"content-range", ""}, {"content-type", ""}, {"cookie", ""}, {"date", ""}, {"etag", ""},
    {"expect", ""}, {"expires", ""}, {"from", ""}, {"host", ""}, {"if-match", ""}, {"if-modified-since", ""},
    {"if-none-match", ""}, {"if-range", ""}, {"if-unmodified-since", ""}, {"last-modified", ""}, {"link", ""},
    {"location", ""}, {"max-forwards", ""}, {"proxy-authenticate", ""}, {"proxy-authorization", ""}, {"range", ""},
    {"referer", ""}, {"refresh", ""}, {"retry-after", ""}, {"server", ""}, {"set-cookie", ""},
    {"strict-transport-security", ""}, {"transfer-encoding", ""}, {"user-agent", ""}, {"vary", ""}, {"via", ""},
    {"www-authenticate", ""}};
// clang-format on

// How a field begins: a pattern in the highest bits of its first byte, and a number in the others.
constexpr uint8_t INDEXED = 0x80;        // 1xxxxxxx
constexpr uint8_t ADDED_LITERAL = 0x40;  // 01xxxxxx
constexpr uint8_t TABLE_SIZE = 0x20;     // 001xxxxx
constexpr uint8_t HUFFMAN = 0x80;        // of a string
constexpr int INDEXED_BITS = 7, ADDED_LITERAL_BITS = 6, TABLE_SIZE_BITS = 5, LITERAL_BITS = 4, TEXT_BITS = 7;

constexpr size_t KEPT_BYTES = 256;     // of the room of an entry that is gone, for the next one in its slot
constexpr int MOST_NUMBER_SHIFT = 28;  // a number of more bytes than that has no business here

// The entries and numbers of names. Never freed: their Python objects must not outlive the interpreter.
struct StaticTable {
    HpackEntry entries[HPACK_STATIC_ENTRIES];
    std::unordered_map<std::string_view, uint32_t> numbers;

    StaticTable() {
        for (uint32_t i = 0; i < HPACK_STATIC_ENTRIES; ++i) {
            entries[i].name = STATIC[i].first;
            entries[i].value = STATIC[i].second;
            numbers.emplace(entries[i].name, i + 1);
        }
    }
};

StaticTable& static_table() {
    static StaticTable* const table = new StaticTable();
    return *table;
}

void append_number(uint64_t number, uint8_t pattern, int prefix_bits, std::string& to) {
    const uint64_t most = (1u << prefix_bits) - 1;
    if (number < most) {
        to.push_back(static_cast<char>(pattern | number));
        return;
    }
    to.push_back(static_cast<char>(pattern | most));
    for (number -= most; number >= 0x80; number >>= 7) to.push_back(static_cast<char>(number | 0x80));
    to.push_back(static_cast<char>(number));
}

void append_text(std::string_view text, std::string& to) {
    const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
    const size_t size = huffman_size(bytes, text.size());
    if (size < text.size()) {
        append_number(size, HUFFMAN, TEXT_BITS, to);
        huffman_encode(bytes, text.size(), to);
    } else {
        append_number(text.size(), 0, TEXT_BITS, to);
        to.append(text);
    }
}

// By its number in the static table, or literally: as `pattern` and its bits say. Whether it is literal.
bool append_field(std::string_view name, std::string_view value, uint8_t pattern, int prefix_bits, std::string& to) {
    const uint32_t named = hpack_static_name(name);
    for (uint32_t number = named; number != 0 && number <= HPACK_STATIC_ENTRIES && hpack_static(number).name == name; ++number) {
        if (hpack_static(number).value != value || value.empty()) continue;
        append_number(number, INDEXED, INDEXED_BITS, to);
        return false;
    }
    append_number(named, pattern, prefix_bits, to);
    if (named == 0) append_text(name, to);
    append_text(value, to);
    return true;
}

}  // namespace

HpackEntry& hpack_static(uint32_t number) { return static_table().entries[number - 1]; }

uint32_t hpack_static_name(std::string_view name) {
    const auto& numbers = static_table().numbers;
    const auto found = numbers.find(name);
    return found == numbers.end() ? 0 : found->second;
}

void HpackTable::limit(uint32_t limit_bytes) {
    limit_bytes_ = limit_bytes;
    while (size_bytes_ > limit_bytes_) drop_oldest();
}

HpackEntry& HpackTable::add(HpackEntry& entry) {
    const size_t size = entry.size_bytes();
    while (count_ > 0 && size_bytes_ + size > limit_bytes_) drop_oldest();
    if (size > limit_bytes_) return entry;
    if (count_ == entries_.size()) grow();
    newest_ = (newest_ + 1) & static_cast<uint32_t>(entries_.size() - 1);
    ++count_;
    size_bytes_ += size;
    std::swap(entries_[newest_], entry);
    return entries_[newest_];
}

void HpackTable::drop_oldest() {
    HpackEntry& oldest = at(--count_);
    size_bytes_ -= oldest.size_bytes();
    oldest.notes = FieldNotes();
    if (oldest.name.capacity() > KEPT_BYTES) oldest.name = std::string();
    if (oldest.value.capacity() > KEPT_BYTES) oldest.value = std::string();
}

void HpackTable::grow() {
    constexpr size_t FIRST_ENTRIES = 16;
    std::vector<HpackEntry> larger(entries_.empty() ? FIRST_ENTRIES : entries_.size() * 2);
    for (uint32_t number = 0; number < count_; ++number) std::swap(larger[count_ - 1 - number], at(number));
    entries_.swap(larger);
    newest_ = (count_ - 1) & static_cast<uint32_t>(entries_.size() - 1);
}

void HpackDecoder::begin(const uint8_t* block, size_t size) {
    at_ = block;
    end_ = block + size;
    may_resize_ = true;
    if (literal_.value.capacity() > HPACK_TABLE_BYTES) literal_.value = std::string();
}

HpackDecoder::Step HpackDecoder::next() {
    while (at_ < end_) {
        const uint8_t first = *at_;
        uint64_t number = 0;
        if (first & INDEXED) {
            may_resize_ = false;
            if (!read_number(INDEXED_BITS, number)) return Step::DAMAGED;
            field_ = entry(number);
            return field_ == nullptr ? Step::DAMAGED : Step::FIELD;
        }
        if (first & ADDED_LITERAL) return read_literal(ADDED_LITERAL_BITS, true);
        if (!(first & TABLE_SIZE)) return read_literal(LITERAL_BITS, false);
        if (!may_resize_ || !read_number(TABLE_SIZE_BITS, number) || number > HPACK_TABLE_BYTES) return Step::DAMAGED;
        table_.limit(static_cast<uint32_t>(number));
    }
    return Step::END;
}

HpackEntry* HpackDecoder::entry(uint64_t number) {
    if (number == 0) return nullptr;
    if (number <= HPACK_STATIC_ENTRIES) return &hpack_static(static_cast<uint32_t>(number));
    number -= HPACK_STATIC_ENTRIES + 1;
    return number < table_.count() ? &table_.at(static_cast<uint32_t>(number)) : nullptr;
}

HpackDecoder::Step HpackDecoder::read_literal(int prefix_bits, bool is_added) {
    may_resize_ = false;
    uint64_t number = 0;
    if (!read_number(prefix_bits, number)) return Step::DAMAGED;
    literal_.notes = FieldNotes();
    if (number == 0) {
        literal_.name.clear();
        if (!read_text(literal_.name)) return Step::DAMAGED;
    } else {
        const HpackEntry* named = entry(number);
        if (named == nullptr) return Step::DAMAGED;
        literal_.name = named->name;
        literal_.notes.kind = named->notes.kind;
        literal_.notes.name = named->notes.name;
    }
    literal_.value.clear();
    if (!read_text(literal_.value)) return Step::DAMAGED;
    field_ = is_added ? &table_.add(literal_) : &literal_;
    return Step::FIELD;
}

bool HpackDecoder::read_number(int prefix_bits, uint64_t& number) {
    if (at_ == end_) return false;
    const uint64_t most = (1u << prefix_bits) - 1;
    number = *at_++ & most;
    if (number < most) return true;
    for (int shift = 0; shift <= MOST_NUMBER_SHIFT; shift += 7) {
        if (at_ == end_) return false;
        const uint8_t byte = *at_++;
        number += static_cast<uint64_t>(byte & 0x7F) << shift;
        if (!(byte & 0x80)) return true;
    }
    return false;
}

bool HpackDecoder::read_text(std::string& to) {
    if (at_ == end_) return false;
    const bool is_coded = *at_ & HUFFMAN;
    uint64_t size = 0;
    if (!read_number(TEXT_BITS, size) || size > static_cast<uint64_t>(end_ - at_)) return false;
    const uint8_t* text = at_;
    at_ += size;
    if (is_coded) return huffman_decode(text, size, to);
    to.append(reinterpret_cast<const char*>(text), size);
    return true;
}

void hpack_number(uint64_t number, uint8_t pattern, int prefix_bits, std::string& to) { append_number(number, pattern, prefix_bits, to); }

void hpack_field(std::string_view name, std::string_view value, std::string& to) { append_field(name, value, 0, LITERAL_BITS, to); }

bool hpack_added_field(std::string_view name, std::string_view value, std::string& to) {
    return append_field(name, value, ADDED_LITERAL, ADDED_LITERAL_BITS, to);
}

}  // namespace paperwasp
