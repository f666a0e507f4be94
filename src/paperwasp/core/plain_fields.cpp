// The fields of documents that are sent as JSON, read without a value of Python's for what is only on the way: the common case of
// document/converters.py, whose answers these are.
//
// It takes `{"fields":{…}}` where every member is a known field of a plain kind, once, with a value that is written as the kind is. All
// else, and all that is wrong, is for the general way, which also says what is wrong. Of texts, whole numbers, truth values and vectors of
// floats and doubles it gives the JSON that is stored as well, which is what orjson would write of the values.
//
// Immutable once built: any thread.
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <charconv>
#include <cstring>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "arrays.hpp"
#include "core.hpp"
#include "json_string.hpp"

namespace paperwasp {
namespace {

enum Kind : uint32_t {
    TEXT,
    WHOLE,  // from low to high
    TRUTH,
    DOUBLE,
    SINGLE,   // a double that a float can hold
    TEXTS,    // a list of texts
    CELLS,    // a list of `high` numbers
    FLOATS,   // the same, kept as floats, and stored in hex behind `start`
    DOUBLES,  // the same, kept as doubles
    KINDS,
};

struct Field {
    nb::object name;
    std::string key;
    Kind kind;
    int64_t low, high;
    std::string start;  // of the JSON of a vector, up to its first digit
};

constexpr uint64_t EACH_BYTE = 0x0101010101010101ull, HIGH_BITS = 0x8080808080808080ull;

// Each byte in two digits.
struct Hex {
    char of[256][2];
    constexpr Hex() : of() {
        constexpr std::string_view DIGITS = "0123456789ABCDEF";
        for (size_t byte = 0; byte < 256; ++byte) {
            of[byte][0] = DIGITS[byte >> 4];
            of[byte][1] = DIGITS[byte & 15];
        }
    }
};
constexpr Hex HEX;

// Whether one of eight bytes is 0, or more of them; bits above the first one that is may be set, too.
inline uint64_t zeros(uint64_t word) { return (word - EACH_BYTE) & ~word & HIGH_BITS; }

// What the texts of fields may not have (noncharacters and controls), or not many of (U+FFFD, of texts that were no text). Some legal
// characters are taken for such.
bool is_suspicious(std::string_view text) {
    for (size_t i = 0; i < text.size(); ++i) {
        const auto byte = static_cast<uint8_t>(text[i]);
        if (byte < 0x20 && byte != '\t' && byte != '\n' && byte != '\r') return true;
        if (byte < 0xBF || i + 1 == text.size()) continue;
        const auto next = static_cast<uint8_t>(text[i + 1]);
        if (byte == 0xEF && next == 0xB7) return true;
        if (byte == 0xBF && next >= 0xBD && next <= 0xBF) return true;  // U+FFFD ends so, too
    }
    return false;
}

class Reading {
  public:
    Reading(std::string_view body, std::string& json) : at_(body.data()), end_(at_ + body.size()), json_(json) {}

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

    // The value of a field; an object that is not valid where it is none that is read here.
    nb::object value(const Field& field) {
        skip_space();
        switch (field.kind) {
            case TEXT:
                return text();
            case WHOLE:
                return whole(field.low, field.high);
            case TRUTH:
                return truth();
            case DOUBLE:
            case SINGLE:
                return number(field.kind == SINGLE);
            case TEXTS:
                return texts();
            case CELLS:
                return cells<double>(field, false);
            case FLOATS:
                return cells<float>(field, true);
            case DOUBLES:
                return cells<double>(field, true);
            default:
                return {};
        }
    }

    bool has_json = true;  // whether `json` is what is stored of the values so far

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

    nb::object text() {
        if (at_ == end_ || *at_ != '"') return {};
        const char* const start = ++at_;
        const bool is_ascii = scan_text();
        if (at_ == end_) return {};
        if (*at_ == '\\') return escaped_text(start);
        if (*at_ != '"') return {};
        const std::string_view inside(start, static_cast<size_t>(at_++ - start));
        if (!is_ascii && is_suspicious(inside)) return {};
        ((json_ += '"') += inside) += '"';
        return string_of(inside, is_ascii);
    }

    // A text from `start` on; we are at its first backslash.
    nb::object escaped_text(const char* start) {
        std::string text(start, static_cast<size_t>(at_ - start));
        while (at_ < end_ && *at_ == '\\') {
            if (!read_any_escape(text)) return {};
            start = at_;
            scan_text();
            text.append(start, static_cast<size_t>(at_ - start));
        }
        if (at_ == end_ || *at_ != '"' || is_suspicious(text)) return {};
        ++at_;
        json_ += '"';
        escape(text, json_);
        json_ += '"';
        return string_of(text, false);
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

    static nb::object string_of(std::string_view text, bool is_ascii) {
        const auto size = static_cast<Py_ssize_t>(text.size());
        PyObject* made = nullptr;
        if (is_ascii && size > 0) {
            made = PyUnicode_New(size, 127);
            if (made != nullptr) std::memcpy(PyUnicode_1BYTE_DATA(made), text.data(), text.size());
        } else {
            made = PyUnicode_DecodeUTF8(text.data(), size, nullptr);
        }
        return or_nothing(made);
    }

    // What could be made; what is no UTF-8 could not.
    static nb::object or_nothing(PyObject* made) {
        if (made == nullptr) PyErr_Clear();
        return nb::steal(made);
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

    nb::object whole(int64_t low, int64_t high) {
        std::string_view written;
        bool is_whole = false;
        int64_t number = 0;
        if (!scan_number(written, is_whole) || !is_whole) return {};
        if (std::from_chars(written.data(), written.data() + written.size(), number).ec != std::errc()) return {};
        if (number < low || number > high) return {};
        json_ += written;
        return or_nothing(PyLong_FromLongLong(number));
    }

    nb::object truth() {
        for (const bool truth : {true, false}) {
            const std::string_view word = truth ? "true" : "false";
            if (std::string_view(at_, static_cast<size_t>(end_ - at_)).substr(0, word.size()) != word) continue;
            at_ += word.size();
            json_ += word;
            return nb::bool_(truth);
        }
        return {};
    }

    bool scan_double(double& number) {
        std::string_view written;
        bool is_whole = false;
        return scan_number(written, is_whole) && std::from_chars(written.data(), written.data() + written.size(), number).ec == std::errc();
    }

    nb::object number(bool is_single) {
        double number = 0;
        if (!scan_double(number)) return {};
        if (is_single) {
            if (number > std::numeric_limits<float>::max() || number < std::numeric_limits<float>::lowest()) return {};
            number = static_cast<double>(static_cast<float>(number));
        }
        has_json = false;
        return or_nothing(PyFloat_FromDouble(number));
    }

    nb::object texts() {
        if (!takes('[')) return {};
        nb::list found;
        json_ += '[';
        if (!takes(']')) {
            do {
                skip_space();
                if (nb::len(found) > 0) json_ += ',';
                const nb::object each = text();
                if (!each.is_valid()) return {};
                found.append(each);
            } while (takes(','));
            if (!takes(']')) return {};
        }
        json_ += ']';
        return found;
    }

    // `[…]`, or `{"values":[…]}`. `is_stored`: whether what is stored of it is written, too.
    template <typename T>
    nb::object cells(const Field& field, bool is_stored) {
        const auto count = static_cast<size_t>(field.high);
        const bool is_named = takes('{');
        std::string_view form;
        if (is_named && (!name(form) || form != "values" || !takes(':'))) return {};
        if (!takes('[')) return {};
        auto numbers = std::make_unique<std::vector<T>>(count);
        for (size_t i = 0; i < count; ++i) {
            if (i > 0 && !takes(',')) return {};
            skip_space();
            double number = 0;
            if (!scan_double(number)) return {};
            if (number > std::numeric_limits<T>::max() || number < std::numeric_limits<T>::lowest()) return {};
            (*numbers)[i] = static_cast<T>(number);
        }
        if (!takes(']') || (is_named && !takes('}'))) return {};
        if (is_stored) {
            json_ += field.start;
            add_hex(*numbers);
            json_ += "\"}";
        } else {
            has_json = false;
        }
        return own(std::move(numbers));
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
    std::string& json_;
};

class PlainFields {
  public:
    // (name, kind, low, high, start) of each field.
    explicit PlainFields(const std::vector<std::tuple<nb::str, uint32_t, int64_t, int64_t, std::string>>& fields) {
        for (const auto& [name, kind, low, high, start] : fields) {
            if (kind >= KINDS) throw nb::value_error("no such kind of field");
            places_.emplace(name.c_str(), fields_.size());
            PyObject* key = name.inc_ref().ptr();
            PyUnicode_InternInPlace(&key);
            fields_.push_back({nb::steal(key), name.c_str(), static_cast<Kind>(kind), low, high, start});
        }
    }

    // (values by name, the JSON that is stored of them or nothing) of a put; None where it goes the general way.
    nb::object put(const nb::bytes& body) const { return read(body, false); }

    // The same of an update that assigns whole fields.
    nb::object assigned(const nb::bytes& body) const { return read(body, true); }

  private:
    nb::object read(const nb::bytes& body, bool is_update) const {
        std::string json;
        json.reserve(body.size());
        nb::dict values;
        Reading reading({body.c_str(), body.size()}, json);
        if (!read_all(reading, json, values, is_update)) return nb::none();
        return nb::make_tuple(values, reading.has_json ? nb::bytes(json.data(), json.size()) : nb::bytes("", 0));
    }

    bool read_all(Reading& reading, std::string& json, nb::dict& values, bool is_update) const {
        std::string_view name;
        if (!reading.takes('{') || !reading.name(name) || name != "fields" || !reading.takes(':') || !reading.takes('{')) return false;
        json += '{';
        size_t count = 0;
        if (!reading.takes('}')) {
            do {
                if (!reading.name(name)) return false;
                const Field* field = field_of(name, count++);
                if (field == nullptr || !reading.takes(':')) return false;
                if (json.size() > 1) json += ',';
                ((json += '"') += name) += "\":";
                if (!read_value(reading, json, *field, values, is_update)) return false;
            } while (reading.takes(','));
            if (!reading.takes('}')) return false;
        }
        json += '}';
        return nb::len(values) == count && reading.takes('}') && reading.is_at_end();  // fewer: one came twice
    }

    static bool read_value(Reading& reading, std::string& json, const Field& field, nb::dict& values, bool is_update) {
        std::string_view operation;
        if (is_update) {
            if (!reading.takes('{') || !reading.name(operation) || operation != "assign" || !reading.takes(':')) return false;
            json += "{\"assign\":";
        }
        const nb::object value = reading.value(field);
        if (!value.is_valid()) return false;
        if (is_update) {
            if (!reading.takes('}')) return false;
            json += '}';
        }
        values[field.name] = value;
        return true;
    }

    // A field by its name; documents mostly have them in one order.
    const Field* field_of(std::string_view name, size_t likely) const {
        if (likely < fields_.size() && fields_[likely].key == name) return &fields_[likely];
        const auto found = places_.find(std::string(name));
        return found == places_.end() ? nullptr : &fields_[found->second];
    }

    std::vector<Field> fields_;
    std::unordered_map<std::string, size_t> places_;
};

}  // namespace

void bind_plain_fields(nb::module_& m) {
    nb::class_<PlainFields>(m, "PlainFields", "Reads documents whose fields are of plain kinds: see plain_fields.cpp.")
        .def(nb::init<const std::vector<std::tuple<nb::str, uint32_t, int64_t, int64_t, std::string>>&>(), nb::arg("fields"))
        .def("put", &PlainFields::put, nb::arg("body"))
        .def("assigned", &PlainFields::assigned, nb::arg("body"));
}

}  // namespace paperwasp
