// The JSON of the hits of a page: see page.cpp. A form never changes once it is made: any thread.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "clock.hpp"
#include "documents/row_files.hpp"

namespace paperwasp {

constexpr size_t GID_BYTES = 12;
constexpr int64_t HIT_STEPS = 1000;    // what a hit costs, about, in nanoseconds
constexpr int64_t ROW_BYTE_STEPS = 2;  // and for each byte of its document

// What is the same of all hits of a page.
struct PageForm {
    std::vector<std::string> keys;   // of the members that are shown, as JSON, with the colon
    bool as_stored = false;          // whether all members are shown, in the order of the document
    uint64_t required = 0;           // a bit for each key whose member cannot be left out
    uint64_t shows_empty = 0;        // a bit for each key whose member is shown where its value is empty, too
    std::vector<std::string> unset;  // for each key the value that is not shown, as it stands for none; empty: there is none
    std::vector<std::string> signs;  // what is in all objects that may have such values: `:` and the value
    std::string source;              // ,"source":"…"
    std::string type;                // "sddocname":"…"; empty: it is not shown
    std::string id_prefix;           // what comes before the gid in the id of a hit, escaped; empty: the document's id
};

// Appends the beginning of a hit, up to its fields. id: escaped.
void append_head(std::string_view id, std::string_view relevance, const PageForm& form, std::string& to);

// The same of a hit whose id is made of its gid.
void append_head(const uint8_t* gid, std::string_view relevance, const PageForm& form, std::string& to);

// Appends the fields of a hit, and its end. append_members: appends them behind `start`, with commas between them; false: it cannot.
template <typename AppendMembers>
bool append_fields(const PageForm& form, std::string& to, AppendMembers append_members) {
    const size_t before = to.size();
    to += ",\"fields\":{";
    const size_t start = to.size();
    to += form.type;
    if (!append_members(start)) return false;
    if (to.size() == start) to.resize(before);
    to += to.size() == before ? "}" : "}}";
    return true;
}

inline void append_member(std::string_view member, size_t start, std::string& to) {
    if (to.size() > start) to += ',';
    to += member;
}

// Renders hits from their rows, one after the other. Needs no lock of the interpreter.
class Page {
  public:
    // `changed`: by lid, 1 where attributes were changed in place; rows below `first_lid` are of an earlier layout.
    Page(const RowFiles& rows, const PageForm& form, const uint8_t* changed, size_t changed_size, uint32_t first_lid)
        : rows_(rows), form_(form), changed_(changed), changed_size_(changed_size), first_lid_(first_lid) {}

    // Appends the JSON of a hit. False, and nothing is appended: it cannot be made of its row. `gid`: read where the form has a prefix of
    // ids. Throws OutOfTime.
    bool append_hit(uint32_t lid, std::string_view relevance, const uint8_t* gid, std::string& to, Clock& clock);

  private:
    bool append_members(size_t start, std::string& to);

    const RowFiles& rows_;
    const PageForm& form_;
    const uint8_t* const changed_;
    const size_t changed_size_;
    const uint32_t first_lid_;
    Row row_;
    std::string json_, id_;
    std::vector<std::string_view> found_;
};

}  // namespace paperwasp
