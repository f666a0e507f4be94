// The fields of documents that are sent as JSON, read without a value of Python's for what is only on the way: the common case of
// document/converters.py, whose answers these are.
//
// It takes `{"fields":{…}}` where every member is a known field of a plain kind, once, with a value that is written as the kind is. All
// else, and all that is wrong, is for the general way, which also says what is wrong. Of all but vectors of other cells than floats and
// doubles it gives the JSON that is stored as well, which is what orjson would write of the values.
//
// Immutable once built: any thread.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "core.hpp"
#include "documents/global_id.hpp"
#include "documents/hex_digits.hpp"
#include "documents/json_number.hpp"
#include "documents/json_string.hpp"
#include "documents/plain_change.hpp"
#include "utf8.hpp"

namespace paperwasp {
namespace {

constexpr size_t MANY_FIELDS = 16;  // the number of fields whose values are reserved room for at first

constexpr uint64_t EACH_BYTE = 0x0101010101010101ull, HIGH_BITS = 0x8080808080808080ull;

// Whether one of eight bytes is 0, or more of them; bits above the first one that is may be set, too.
inline uint64_t zeros(uint64_t word) { return (word - EACH_BYTE) & ~word & HIGH_BITS; }

// Whether bytes are a text that fields may have: UTF-8 without noncharacters and controls, and without U+FFFD, of which there may not be
// many (it stands for what was no text). Some legal characters are taken for such.
bool is_text(std::string_view bytes) {
    const char* at = bytes.data();
    const char* const end = at + bytes.size();
    while (at < end) {
        const auto byte = static_cast<uint8_t>(*at);
        if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') return false;
        const uint32_t character = read_character(at, end);
        if (character == NO_CHARACTER) return false;
        const bool is_odd = (character & 0x3F) >= 0x3D && (character >> 6 & 0x3F) == 0x3F;  // U+FFFD ends so, too
        if (is_odd || character >> 6 == 0x3F7) return false;
    }
    return true;
}

class Reading {
  public:
    Reading(std::string_view body, PlainValues& to) : at_(body.data()), end_(at_ + body.size()), to_(to), json_(to.json) {}

    // Whether the next thing is this character, which is passed over then.
    bool takes(char wanted) {
        skip_space();
        if (at_ == end_ || *at_ != wanted) return false;
        ++at_;
        return true;
    }

    bool is_at_end() {
        skip_space();
        return at_ == end_;
    }

    // The inside of a string without escapes.
    bool name(std::string_view& found) {
        if (!takes('"')) return false;
        const char* start = at_;
        while (at_ < end_ && *at_ != '"') {
            if (*at_ == '\\' || static_cast<uint8_t>(*at_) < 0x20) return false;
            ++at_;
        }
        if (at_ == end_) return false;
        found = {start, static_cast<size_t>(at_ - start)};
        ++at_;
        return true;
    }

    // Reads the value of a field; whether there is one that is read here.
    bool value(PlainValue& value) {
        skip_space();
        const PlainField& field = *value.field;
        switch (field.kind) {
            case PlainKind::TEXT:
                return text(value.text);
            case PlainKind::WHOLE:
                return whole(field, value.whole);
            case PlainKind::TRUTH:
                return truth(value.truth);
            case PlainKind::DOUBLE:
            case PlainKind::SINGLE:
                return number(field, value.number);
            case PlainKind::TEXTS:
                return texts(value);
            case PlainKind::CELLS:
                return cells<double>(value, false);
            case PlainKind::FLOATS:
                return cells<float>(value, true);
            case PlainKind::DOUBLES:
                return cells<double>(value, true);
            default:
                return false;
        }
    }

  private:
    void skip_space() {
        while (at_ < end_ && (*at_ == ' ' || *at_ == '\n' || *at_ == '\t' || *at_ == '\r')) ++at_;
    }

    // Moves to the first byte that is a quote, a backslash or a control character; whether all bytes before it are of ASCII.
    bool scan_text() {
        uint64_t high = 0;
        for (; end_ - at_ >= 8; at_ += 8) {
            uint64_t word;
            std::memcpy(&word, at_, 8);
            const uint64_t controls = (word - EACH_BYTE * 0x20) & ~word & HIGH_BITS;
            if (zeros(word ^ EACH_BYTE * '"') | zeros(word ^ EACH_BYTE * '\\') | controls) break;
            high |= word;
        }
        for (; at_ < end_; ++at_) {
            const auto byte = static_cast<uint8_t>(*at_);
            if (byte == '"' || byte == '\\' || byte < 0x20) break;
            high |= byte;
        }
        return (high & HIGH_BITS) == 0;
    }

    bool text(PlainText& found) {
        if (at_ == end_ || *at_ != '"') return false;
        const char* const start = ++at_;
        const bool is_ascii = scan_text();
        if (at_ == end_) return false;
        if (*at_ == '\\') return escaped_text(start, found);
        if (*at_ != '"') return false;
        const std::string_view inside(start, static_cast<size_t>(at_++ - start));
        if (!is_ascii && !is_text(inside)) return false;
        json_ += '"';
        found = {static_cast<uint32_t>(json_.size()), static_cast<uint32_t>(inside.size()), is_ascii, false};
        (json_ += inside) += '"';
        return true;
    }

    // A text from `start` on; we are at its first backslash.
    bool escaped_text(const char* start, PlainText& found) {
        std::string& to = to_.unescaped;
        const size_t begin = to.size();
        to.append(start, at_);
        while (at_ < end_ && *at_ == '\\') {
            if (!read_any_escape(to)) return false;
            start = at_;
            scan_text();
            to.append(start, at_);
        }
        const auto text = std::string_view(to).substr(begin);
        if (at_ == end_ || *at_ != '"' || !is_text(text)) return false;
        ++at_;
        json_ += '"';
        escape(text, json_);
        json_ += '"';
        const bool is_ascii = std::all_of(text.begin(), text.end(), [](char each) { return static_cast<uint8_t>(each) < 0x80; });
        found = {static_cast<uint32_t>(begin), static_cast<uint32_t>(text.size()), is_ascii, true};
        return true;
    }

    bool read_any_escape(std::string& to) {
        if (end_ - at_ < 2) return false;
        const char kind = at_[1];
        if (kind == 'u') {
            uint32_t character = 0, low = 0;
            if (!read_hex(character)) return false;
            if (character >= 0xD800 && character < 0xDC00) {
                if (!read_hex(low) || low < 0xDC00 || low > 0xDFFF) return false;
                character = 0x10000 + ((character - 0xD800) << 10) + (low - 0xDC00);
            } else if (character >= 0xDC00 && character < 0xE000) {
                return false;
            }
            append_utf8(character, to);
            return true;
        }
        at_ += 2;
        switch (kind) {
            case '"':
            case '\\':
            case '/':
                to += kind;
                return true;
            case 'n':
                to += '\n';
                return true;
            case 'r':
                to += '\r';
                return true;
            case 't':
                to += '\t';
                return true;
            default:
                return false;
        }
    }

    // Reads `\uXXXX`.
    bool read_hex(uint32_t& unit) {
        if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return false;
        const auto [behind, problem] = std::from_chars(at_ + 2, at_ + 6, unit, 16);
        if (problem != std::errc() || behind != at_ + 6) return false;
        at_ += 6;
        return true;
    }

    static void append_utf8(uint32_t character, std::string& to) {
        const auto add = [&](uint32_t byte) { to += static_cast<char>(byte); };
        const auto follow = [&](uint32_t shift) { add(0x80 | (character >> shift & 0x3F)); };
        if (character < 0x80) return add(character);
        if (character < 0x800) {
            add(0xC0 | character >> 6);
        } else if (character < 0x10000) {
            add(0xE0 | character >> 12);
            follow(6);
        } else {
            add(0xF0 | character >> 18);
            follow(12);
            follow(6);
        }
        follow(0);
    }

    // A number as JSON has it, from `at_` on; whether it has neither fraction nor exponent.
    bool scan_number(std::string_view& found, bool& is_whole) {
        const char* const start = at_;
        const auto digits = [this] {
            const char* const first = at_;
            while (at_ < end_ && *at_ >= '0' && *at_ <= '9') ++at_;
            return at_ - first;
        };
        if (at_ < end_ && *at_ == '-') ++at_;
        const char* const first = at_;
        const auto count = digits();
        if (count == 0 || (*first == '0' && count > 1)) return false;
        is_whole = true;
        if (at_ < end_ && *at_ == '.') {
            ++at_;
            is_whole = false;
            if (digits() == 0) return false;
        }
        if (at_ < end_ && (*at_ == 'e' || *at_ == 'E')) {
            ++at_;
            is_whole = false;
            if (at_ < end_ && (*at_ == '+' || *at_ == '-')) ++at_;
            if (digits() == 0) return false;
        }
        found = {start, static_cast<size_t>(at_ - start)};
        return found != "-0";
    }

    bool whole(const PlainField& field, int64_t& number) {
        std::string_view written;
        bool is_whole = false;
        if (!scan_number(written, is_whole) || !is_whole) return false;
        if (std::from_chars(written.data(), written.data() + written.size(), number).ec != std::errc()) return false;
        if (number < field.low || number > field.high) return false;
        json_ += written;
        return true;
    }

    bool truth(bool& found) {
        for (const bool truth : {true, false}) {
            const std::string_view word = truth ? "true" : "false";
            if (std::string_view(at_, static_cast<size_t>(end_ - at_)).substr(0, word.size()) != word) continue;
            at_ += word.size();
            json_ += word;
            found = truth;
            return true;
        }
        return false;
    }

    bool scan_double(double& number) {
        std::string_view written;
        bool is_whole = false;
        return scan_number(written, is_whole) && std::from_chars(written.data(), written.data() + written.size(), number).ec == std::errc();
    }

    bool number(const PlainField& field, double& number) {
        if (!scan_double(number)) return false;
        if (field.kind == PlainKind::DOUBLE) {
            append_number(number, json_);
            return true;
        }
        if (number > std::numeric_limits<float>::max() || number < std::numeric_limits<float>::lowest()) return false;
        const auto single = static_cast<float>(number);
        number = static_cast<double>(single);
        append_number(single, json_);
        return true;
    }

    bool texts(PlainValue& value) {
        if (!takes('[')) return false;
        value.many = {static_cast<uint32_t>(to_.texts.size()), 0};
        json_ += '[';
        if (!takes(']')) {
            do {
                skip_space();
                if (value.many.count++ > 0) json_ += ',';
                if (!text(to_.texts.emplace_back())) return false;
            } while (takes(','));
            if (!takes(']')) return false;
        }
        json_ += ']';
        return true;
    }

    // `[…]`, or `{"values":[…]}`. `is_stored`: whether what is stored of it is written, too.
    template <typename T>
    bool cells(PlainValue& value, bool is_stored) {
        const auto count = static_cast<size_t>(value.field->high);
        const bool is_named = takes('{');
        std::string_view form;
        if (is_named && (!name(form) || form != "values" || !takes(':'))) return false;
        if (!takes('[')) return false;
        auto numbers = std::make_unique<std::vector<T>>(count);
        for (size_t i = 0; i < count; ++i) {
            if (i > 0 && !takes(',')) return false;
            skip_space();
            double number = 0;
            if (!scan_double(number)) return false;
            if (number > std::numeric_limits<T>::max() || number < std::numeric_limits<T>::lowest()) return false;
            (*numbers)[i] = static_cast<T>(number);
        }
        if (!takes(']') || (is_named && !takes('}'))) return false;
        if (is_stored) {
            json_ += value.field->start;
            add_hex(*numbers);
            json_ += "\"}";
        } else {
            to_.has_json = false;
        }
        value.cells = static_cast<uint32_t>(to_.cells.size());
        to_.cells.push_back(own(std::move(numbers)));
        return true;
    }

    // The bytes of numbers, the highest of each first.
    template <typename T>
    void add_hex(const std::vector<T>& numbers) {
        const size_t begin = json_.size();
        json_.resize(begin + 2 * sizeof(T) * numbers.size());
        char* to = json_.data() + begin;
        for (const T number : numbers) {
            uint8_t bytes[sizeof(T)];
            std::memcpy(bytes, &number, sizeof(T));
            for (size_t i = sizeof(T); i-- > 0; to += 2) std::memcpy(to, HEX.of[bytes[i]], 2);
        }
    }

    const char* at_;
    const char* end_;
    PlainValues& to_;
    std::string& json_;
};

class PlainFields {
  public:
    // (name, kind, low, high, start) of each field of a `document.types.DocumentType`.
    PlainFields(nb::object document_type, const std::vector<std::tuple<nb::str, uint32_t, int64_t, int64_t, std::string>>& fields) {
        auto type = std::make_shared<PlainType>();
        type->name = document_type.attr("name");
        type->read_as = std::move(document_type);
        for (const auto& [name, kind, low, high, start] : fields) {
            if (kind >= static_cast<uint32_t>(PlainKind::END)) throw nb::value_error("no such kind of field");
            type->places.emplace(name.c_str(), type->fields.size());
            PyObject* key = name.inc_ref().ptr();
            PyUnicode_InternInPlace(&key);
            type->fields.push_back({nb::steal(key), name.c_str(), static_cast<PlainKind>(kind), low, high, start});
        }
        type_ = std::move(type);
    }

    // (values by name, the JSON that is stored of them or nothing) of a put; None where it goes the general way.
    nb::object put(const nb::bytes& body) const { return read(body, false); }

    // The same of an update that assigns whole fields.
    nb::object assigned(const nb::bytes& body) const { return read(body, true); }

    // A put or an update as `PlainChange`, where its id is `start` and `name`, of ASCII both, and the location of its global id the name;
    // where it has vectors, as `put` and `assigned` have it.
    nb::object change(const std::string& start, const std::string& name, const nb::bytes& body, bool is_update) const {
        PlainChange change{type_, {}, start + name, {}, is_update};
        if (!read_all(body, change.values, is_update)) return nb::none();
        if (!change.values.cells.empty()) return values_and_json(change.values);
        change.gid = global_id_of(name, change.id);
        return nb::cast(std::move(change));
    }

    // `change` of each, up to one that is none, whose name is not plain, or which is too large.
    nb::list changes(const std::string& start, const nb::list& names, const nb::list& bodies, bool is_update, size_t most_id_bytes,
                     size_t most_body_bytes) const {
        nb::list found;
        for (size_t i = 0; i < std::min(names.size(), bodies.size()); ++i) {
            const auto name = nb::cast<std::string>(names[i]);
            const auto body = nb::cast<nb::bytes>(bodies[i]);
            if (!is_plain_name(name) || start.size() + name.size() > most_id_bytes || body.size() > most_body_bytes) break;
            nb::object made = change(start, name, body, is_update);
            if (made.is_none() || PyTuple_Check(made.ptr())) break;
            found.append(made);
        }
        return found;
    }

  private:
    // Whether the last part of a path is a document's name as it stands.
    static bool is_plain_name(std::string_view name) {
        const auto is_plain = [](char c) { return c >= ' ' && c <= '~' && c != '%' && c != '+'; };
        return !name.empty() && std::all_of(name.begin(), name.end(), is_plain);
    }

    nb::object read(const nb::bytes& body, bool is_update) const {
        PlainValues values;
        return read_all(body, values, is_update) ? values_and_json(values) : nb::none();
    }

    static nb::object values_and_json(const PlainValues& values) {
        const std::string& json = values.json;
        return nb::make_tuple(values.dict(), values.has_json ? nb::bytes(json.data(), json.size()) : nb::bytes("", 0));
    }

    bool read_all(const nb::bytes& body, PlainValues& to, bool is_update) const {
        std::string& json = to.json;
        json.reserve(body.size());
        to.values.reserve(type_->fields.size() < MANY_FIELDS ? type_->fields.size() : MANY_FIELDS);
        Reading reading({body.c_str(), body.size()}, to);
        std::string_view name;
        if (!reading.takes('{') || !reading.name(name) || name != "fields" || !reading.takes(':') || !reading.takes('{')) return false;
        json += '{';
        if (!reading.takes('}')) {
            do {
                if (!reading.name(name)) return false;
                const PlainField* field = type_->find(name, to.values.size());
                if (field == nullptr || !reading.takes(':')) return false;
                if (json.size() > 1) json += ',';
                ((json += '"') += name) += "\":";
                if (!read_value(reading, to.values.emplace_back(PlainValue{field, {}}), json, is_update)) return false;
            } while (reading.takes(','));
            if (!reading.takes('}')) return false;
        }
        json += '}';
        return reading.takes('}') && reading.is_at_end() && !has_one_twice(to.values);
    }

    static bool read_value(Reading& reading, PlainValue& value, std::string& json, bool is_update) {
        std::string_view operation;
        if (is_update) {
            if (!reading.takes('{') || !reading.name(operation) || operation != "assign" || !reading.takes(':')) return false;
            json += "{\"assign\":";
        }
        if (!reading.value(value)) return false;
        if (!is_update) return true;
        json += '}';
        return reading.takes('}');
    }

    static bool has_one_twice(const std::vector<PlainValue>& values) {
        const auto is_before = [](const PlainValue& one, const PlainValue& other) { return one.field < other.field; };
        const auto is_same = [](const PlainField* one, const PlainField* other) { return one == other; };
        if (std::adjacent_find(values.begin(), values.end(), std::not_fn(is_before)) == values.end()) return false;
        std::vector<const PlainField*> fields;
        for (const PlainValue& value : values) fields.push_back(value.field);
        std::sort(fields.begin(), fields.end());
        return std::adjacent_find(fields.begin(), fields.end(), is_same) != fields.end();
    }

    std::shared_ptr<const PlainType> type_;
};

}  // namespace

void bind_plain_fields(nb::module_& m) {
    nb::class_<PlainFields>(m, "PlainFields", "Reads documents whose fields are of plain kinds: see plain_fields.cpp.")
        .def(nb::init<nb::object, const std::vector<std::tuple<nb::str, uint32_t, int64_t, int64_t, std::string>>&>(),
             nb::arg("document_type"), nb::arg("fields"))
        .def("put", &PlainFields::put, nb::arg("body"))
        .def("assigned", &PlainFields::assigned, nb::arg("body"))
        .def("change", &PlainFields::change, nb::arg("start"), nb::arg("name"), nb::arg("body"), nb::arg("is_update"))
        .def("changes", &PlainFields::changes, nb::arg("start"), nb::arg("names"), nb::arg("bodies"), nb::arg("is_update"),
             nb::arg("most_id_bytes"), nb::arg("most_body_bytes"));
}

}  // namespace paperwasp
