// The head of a request: what http2_request.hpp declares.
#include "http/http2_request.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <array>
#include <initializer_list>
#include <utility>

namespace paperwasp {
namespace {

// What a field is, by its name: FieldNotes::kind.
enum Kind : uint8_t {
    UNREAD,
    METHOD,
    SCHEME,
    AUTHORITY,
    PATH,
    REGULAR,
    HOST,
    CONTENT_LENGTH,
    CONTENT_ENCODING,
    COOKIE,
    TE,
    OF_CONNECTION,  // HTTP/1.1 headers that HTTP/2 does not have
    UNKNOWN_PSEUDO,
    NO_NAME,  // not a token in lower case
};

// What a value is: FieldNotes::state.
enum State : uint8_t { UNSEEN, SOUND, BROKEN };

constexpr std::pair<std::string_view, Kind> SPECIAL[] = {
    {":method", METHOD},
    {":scheme", SCHEME},
    {":authority", AUTHORITY},
    {":path", PATH},
    {"host", HOST},
    {"cookie", COOKIE},
    {"content-length", CONTENT_LENGTH},
    {"content-encoding", CONTENT_ENCODING},
    {"te", TE},
    {"connection", OF_CONNECTION},
    {"keep-alive", OF_CONNECTION},
    {"proxy-connection", OF_CONNECTION},
    {"transfer-encoding", OF_CONNECTION},
    {"upgrade", OF_CONNECTION},
};

// Bytes by what may stand where.
class ByteSet {
  public:
    constexpr explicit ByteSet(std::string_view others) : has_{} {
        for (int c = '0'; c <= '9'; ++c) has_[c] = true;
        for (int c = 'a'; c <= 'z'; ++c) has_[c] = has_[c - 32] = true;
        for (const char c : others) has_[static_cast<uint8_t>(c)] = true;
    }
    bool has(char c) const { return has_[static_cast<uint8_t>(c)]; }
    bool has_all(std::string_view text) const {
        return std::all_of(text.begin(), text.end(), [this](char c) { return has(c); });
    }

  private:
    bool has_[256];
};

constexpr ByteSet TOKEN("!#$%&'*+-.^_`|~");           // RFC 9110, section 5.6.2
constexpr ByteSet SCHEME_BYTES("+-.");                // RFC 3986, section 3.1
constexpr ByteSet HOST_BYTES("_.~!$&'()*+,;=%-:[]");  // RFC 3986, section 3.2.2: no user before it

bool is_name(std::string_view name) {
    return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) { return TOKEN.has(c) && !(c >= 'A' && c <= 'Z'); });
}

// RFC 9113, section 8.2.1.
bool is_value(std::string_view value) {
    if (value.empty()) return true;
    const auto is_blank = [](char c) { return c == ' ' || c == '\t'; };
    if (is_blank(value.front()) || is_blank(value.back())) return false;
    return std::all_of(value.begin(), value.end(), [](char c) { return c != '\0' && c != '\r' && c != '\n'; });
}

// The path and query may have all that is not a space or a control character; what is not ASCII is escaped here.
bool is_target(std::string_view value) {
    return std::all_of(value.begin(), value.end(), [](char c) { return static_cast<uint8_t>(c) > 0x20 && c != 0x7F; });
}

Kind kind_of(std::string_view name) {
    for (const auto& [special, kind] : SPECIAL)
        if (special == name) return kind;
    if (name.empty() || name.front() == ':') return UNKNOWN_PSEUDO;
    return is_name(name) ? REGULAR : NO_NAME;
}

bool is_sound(Kind kind, std::string_view value) {
    switch (kind) {
        case METHOD:
            return !value.empty() && TOKEN.has_all(value);
        case SCHEME:
            return !value.empty() && SCHEME_BYTES.has_all(value);
        case AUTHORITY:
        case HOST:
            return HOST_BYTES.has_all(value);
        case PATH:
            return !value.empty() && is_target(value) && (value.front() == '/' || value == "*");
        case CONTENT_LENGTH: {
            constexpr size_t DIGITS = 18;  // of what fits a signed word of 64 bits
            return !value.empty() && value.size() <= DIGITS &&
                   std::all_of(value.begin(), value.end(), [](char c) { return c >= '0' && c <= '9'; });
        }
        case TE:
            return value == "trailers";
        case REGULAR:
        case CONTENT_ENCODING:
        case COOKIE:
            return is_value(value);
        default:
            return false;
    }
}

nb::object stolen(PyObject* object) {
    if (object == nullptr) nb::raise_python_error();
    return nb::steal(object);
}

nb::object latin_text(std::string_view text) {
    return stolen(PyUnicode_DecodeLatin1(text.data(), static_cast<Py_ssize_t>(text.size()), nullptr));
}

// A part of a path or a query. Some clients send UTF-8, though only ASCII may stand there.
nb::object target_text(std::string_view text) {
    if (std::all_of(text.begin(), text.end(), [](char c) { return static_cast<uint8_t>(c) < 0x80; })) return latin_text(text);
    std::string escaped;
    for (const char c : text) {
        constexpr char HEX[] = "0123456789ABCDEF";
        const auto byte = static_cast<uint8_t>(c);
        if (byte < 0x80) {
            escaped.push_back(c);
        } else {
            escaped.append({'%', HEX[byte >> 4], HEX[byte & 15]});
        }
    }
    return latin_text(escaped);
}

// Strings that every connection has use of. Never freed: they must not outlive the interpreter.
struct Words {
    nb::object host = interned("host");
    nb::object cookie = interned("cookie");
    nb::object comma = interned(", ");
    nb::object semicolon = interned("; ");
    nb::object length = interned("content-length");
    nb::object coding = interned("content-encoding");
    nb::object empty = interned("");

    static nb::object interned(const char* text) { return stolen(PyUnicode_InternFromString(text)); }
};

const Words& words() {
    static const Words* const all = new Words();
    return *all;
}

// The name as Python has it: one object for the names of the static table.
void read_name(HpackEntry& field) {
    FieldNotes& notes = field.notes;
    notes.kind = kind_of(field.name);
    const uint32_t number = hpack_static_name(field.name);
    if (number == 0) {
        notes.name = latin_text(field.name);
        return;
    }
    FieldNotes& shared = hpack_static(number).notes;
    if (!shared.name.is_valid()) shared.name = Words::interned(field.name.c_str());
    notes.name = shared.name;
}

bool check_value(HpackEntry& field) {
    FieldNotes& notes = field.notes;
    if (notes.state == UNSEEN) notes.state = is_sound(static_cast<Kind>(notes.kind), field.value) ? SOUND : BROKEN;
    return notes.state == SOUND;
}

nb::object& value_text(HpackEntry& field) {
    if (!field.notes.value.is_valid()) field.notes.value = latin_text(field.value);
    return field.notes.value;
}

// The path of a target is noted as its value, its query as the rest.
void read_target(std::string_view target, FieldNotes& notes) {
    if (notes.value.is_valid()) return;
    target = target.substr(0, target.find('#'));
    const size_t mark = target.find('?');
    notes.value = target_text(target.substr(0, mark));
    notes.rest = mark == target.npos ? words().empty : target_text(target.substr(mark + 1));
}

// All that is noted of the fields of the static table, once, before any thread sees one: nothing of them changes from then on.
void read_static_fields() {
    for (uint32_t number = 1; number <= HPACK_STATIC_ENTRIES; ++number) {
        HpackEntry& field = hpack_static(number);
        read_name(field);
        check_value(field);
        if (field.notes.kind == PATH) {
            read_target(field.value, field.notes);
        } else {
            value_text(field);
        }
    }
}

bool same_host(nb::handle a, nb::handle b) {
    return PyUnicode_Compare(a.ptr(), b.ptr()) == 0 || nb::borrow(a).attr("lower")().equal(nb::borrow(b).attr("lower")());
}

}  // namespace

RequestHead::RequestHead() {
    static const bool are_fields_read = (read_static_fields(), true);
    static_cast<void>(are_fields_read);
}

void RequestHead::begin(size_t most_bytes) {
    *this = RequestHead();
    most_bytes_ = most_bytes;
}

void RequestHead::add(HpackEntry& field) {
    bytes_ += field.size_bytes();
    if (is_too_large() || problem_ != nullptr) return;
    if (field.notes.kind == UNREAD) read_name(field);
    const auto kind = static_cast<Kind>(field.notes.kind);
    if (kind >= REGULAR) {
        has_regular_ = true;
    } else {
        has_pseudo_ = true;
        if (has_regular_) return complain("a pseudo-header field comes after regular ones");
    }
    if (!check_value(field)) return complain("a header field is malformed, or not of HTTP/2");
    switch (kind) {
        case METHOD:
            is_connect_ = field.value == "CONNECT";
            return set_once(method, field);
        case SCHEME:
            return set_once(scheme, field);
        case AUTHORITY:
            return set_once(authority, field);
        case PATH:
            return set_path(field);
        case HOST:
            return set_once(host_, field);
        case CONTENT_LENGTH:
            return set_length(field);
        case CONTENT_ENCODING:
            return set_coding(field);
        default:
            return set_header(field);
    }
}

void RequestHead::set_once(nb::object& place, HpackEntry& field) {
    if (place.is_valid()) return complain("a header field comes twice");
    place = value_text(field);
}

void RequestHead::set_path(HpackEntry& field) {
    if (path.is_valid()) return complain("a header field comes twice");
    read_target(field.value, field.notes);
    path = field.notes.value;
    query = field.notes.rest;
}

void RequestHead::set_length(HpackEntry& field) {
    int64_t length = 0;
    for (const char digit : field.value) length = length * 10 + (digit - '0');
    if (content_length_ == NO_LENGTH) {
        content_length_ = length;
        this->length = value_text(field);
    } else if (content_length_ != length) {
        complain("two content-lengths differ");
    }
}

void RequestHead::set_coding(HpackEntry& field) {
    if (!coding.is_valid()) {
        coding = value_text(field);
    } else {
        coding = coding + words().comma + value_text(field);
    }
}

void RequestHead::set_header(HpackEntry& field) {
    if (!headers.is_valid()) headers = stolen(PyDict_New());
    const Py_ssize_t before = PyDict_GET_SIZE(headers.ptr());
    nb::object& value = value_text(field);
    PyObject* first = PyDict_SetDefault(headers.ptr(), field.notes.name.ptr(), value.ptr());
    if (first == nullptr) nb::raise_python_error();
    if (PyDict_GET_SIZE(headers.ptr()) != before) return;
    if (!repeated_.is_valid()) repeated_ = stolen(PyDict_New());
    PyObject* values = PyDict_GetItemWithError(repeated_.ptr(), field.notes.name.ptr());
    if (values == nullptr) {
        nb::list both;
        both.append(nb::borrow(first));
        both.append(value);
        if (PyDict_SetItem(repeated_.ptr(), field.notes.name.ptr(), both.ptr()) < 0) nb::raise_python_error();
    } else if (PyList_Append(values, value.ptr()) < 0) {
        nb::raise_python_error();
    }
}

void RequestHead::join_repeated() {
    PyObject *name = nullptr, *values = nullptr;
    Py_ssize_t at = 0;
    while (PyDict_Next(repeated_.ptr(), &at, &name, &values)) {
        const bool is_cookie = PyUnicode_Compare(name, words().cookie.ptr()) == 0;
        const nb::object joined = stolen(PyUnicode_Join(is_cookie ? words().semicolon.ptr() : words().comma.ptr(), values));
        if (PyDict_SetItem(headers.ptr(), name, joined.ptr()) < 0) nb::raise_python_error();
    }
}

const char* RequestHead::finish() {
    if (problem_ != nullptr) return problem_;
    if (!method.is_valid()) return "no :method";
    if (is_connect_) {
        if (!authority.is_valid() || scheme.is_valid() || path.is_valid()) return "a malformed CONNECT";
        return nullptr;
    }
    if (!scheme.is_valid()) return "no :scheme";
    if (!path.is_valid()) return "no :path";
    if (PyUnicode_READ_CHAR(path.ptr(), 0) == '*' && !nb::str("OPTIONS").equal(method)) return "a malformed :path";
    if (!authority.is_valid()) {
        authority = host_.is_valid() ? host_ : words().empty;
    } else if (host_.is_valid() && !same_host(host_, authority)) {
        return "host is not the :authority";
    }
    if (!headers.is_valid()) headers = stolen(PyDict_New());
    if (repeated_.is_valid()) join_repeated();
    if (PyDict_SetItem(headers.ptr(), words().host.ptr(), authority.ptr()) < 0) nb::raise_python_error();
    return nullptr;
}

nb::object RequestHead::whole_headers() {
    if (length.is_valid() && PyDict_SetItem(headers.ptr(), words().length.ptr(), length.ptr()) < 0) nb::raise_python_error();
    if (coding.is_valid() && PyDict_SetItem(headers.ptr(), words().coding.ptr(), coding.ptr()) < 0) nb::raise_python_error();
    return headers;
}

const char* RequestHead::finish_trailers() const { return has_pseudo_ ? "pseudo-header fields in trailers" : problem_; }

nb::bytes http2_header_block(uint32_t status, const nb::list& headers) {
    std::string block;
    if (status != 0) {
        if (status < 100 || status > 999) throw nb::value_error("a status has three digits");
        hpack_field(":status", std::to_string(status), block);
    }
    for (nb::handle each : headers) {
        const auto field = nb::cast<std::pair<nb::bytes, nb::bytes>>(each);
        const std::string_view name(field.first.c_str(), field.first.size());
        const std::string_view value(field.second.c_str(), field.second.size());
        const Kind kind = kind_of(name);
        if (kind < REGULAR || kind > COOKIE || !is_value(value)) throw nb::value_error("a name or value that HTTP/2 does not have");
        hpack_field(name, value, block);
    }
    return nb::bytes(block.data(), block.size());
}

}  // namespace paperwasp
