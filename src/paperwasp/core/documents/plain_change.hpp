// A put or an update of plain fields, as the core keeps it on its way from a request to the log and to rows: its JSON, and where in it the
// values are. Objects of Python's are made only of what somebody asks for.
//
// Threads: immutable once it is read, but for the time, which the writer sets.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core.hpp"

namespace paperwasp {

enum class PlainKind : uint32_t {
    TEXT,
    WHOLE,  // from low to high
    TRUTH,
    DOUBLE,
    SINGLE,   // a double that a float can hold
    TEXTS,    // a list of texts
    CELLS,    // a list of `high` numbers
    FLOATS,   // the same, kept as floats, and stored in hex behind `start`
    DOUBLES,  // the same, kept as doubles
    END,
};

struct PlainField {
    nb::object name;
    std::string key;
    PlainKind kind;
    int64_t low, high;
    std::string start;  // of the JSON of a vector, up to its first digit
};

// The plain fields of one document type. Immutable.
struct PlainType {
    nb::object name, read_as;  // of Python's `document.types.DocumentType`
    std::vector<PlainField> fields;
    std::unordered_map<std::string, uint32_t> places;

    // A field by its name, and by where it likely is: documents mostly have them in one order.
    const PlainField* find(std::string_view key, size_t likely) const;
};

// Bytes of `json`, or of `unescaped` where the JSON has escapes.
struct PlainText {
    uint32_t begin, size;
    bool is_ascii, is_escaped;
};

struct PlainValue {
    const PlainField* field;
    union {
        PlainText text;
        int64_t whole;
        bool truth;
        double number;
        struct {
            uint32_t begin, count;
        } many;          // texts, of `texts`
        uint32_t cells;  // a place in `cells`
    };
};

// The values of a body, and their JSON as it is stored or logged.
struct PlainValues {
    std::string json, unescaped;
    std::vector<PlainValue> values;
    std::vector<PlainText> texts;
    std::vector<nb::object> cells;
    bool has_json = true;  // whether `json` is what is stored of the values

    std::string_view view(const PlainText& text) const {
        return std::string_view(text.is_escaped ? unescaped : json).substr(text.begin, text.size);
    }
    nb::object object(const PlainValue& value) const;
    nb::dict dict() const;
};

struct PlainChange {
    std::shared_ptr<const PlainType> type;
    PlainValues values;
    std::string id;
    std::array<char, 12> gid;
    bool is_update;
    uint64_t timestamp_us = 0;
};

// The change that an object is; null where it is another.
const PlainChange* plain_change_of(nb::handle object);

// The texts that plain puts have in a field, empty where one has none, as long as the puts are there. Nothing where one has something else
// than a text of ASCII. Throws ValueError for what is no plain change.
std::optional<std::vector<std::string_view>> ascii_texts_of(const nb::list& puts, std::string_view name);

}  // namespace paperwasp
