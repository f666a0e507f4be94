// The text that a user has typed, cut out of a request: what is left is the same bytes for all requests that differ in it alone, and so the
// key of what is known of them. A text is cut out where it is the value of the only parameter `query`, and plain: printable ASCII, not
// empty. Two requests that leave the same rest have their texts at the same place of it. The plain twin is in request_text.py.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nanobind/stl/string_view.h>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr std::string_view NAME = "query";

// Where the value stands, as it is written.
struct Place {
    size_t at, size;
};

bool is_plain(char c) { return c >= 0x20 && c <= 0x7E; }

int digit_of(char c) {
    if (c >= '0' && c <= '9') return c - '0';
    if (c >= 'a' && c <= 'f') return c - 'a' + 10;
    return c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
}

// A value of a query string without its escapes. None: an escape is broken, or it is not plain.
std::optional<std::string> decoded(std::string_view value) {
    std::string text;
    text.reserve(value.size());
    for (size_t at = 0; at < value.size(); ++at) {
        char c = value[at];
        if (c == '+') {
            c = ' ';
        } else if (c == '%') {
            const int high = at + 2 < value.size() ? digit_of(value[at + 1]) : -1, low = high < 0 ? -1 : digit_of(value[at + 2]);
            if (low < 0) return std::nullopt;
            c = static_cast<char>(high << 4 | low);
            at += 2;
        }
        if (!is_plain(c)) return std::nullopt;
        text += c;
    }
    return text;
}

std::optional<Place> place_in_query_string(std::string_view query) {
    std::optional<Place> found;
    for (size_t at = 0; at < query.size();) {
        const size_t end = std::min(query.find('&', at), query.size());
        const std::string_view part = query.substr(at, end - at);
        if (part.substr(0, NAME.size()) == NAME && (part.size() == NAME.size() || part[NAME.size()] == '=')) {
            if (found || part.size() == NAME.size()) return std::nullopt;
            found = {at + NAME.size() + 1, part.size() - NAME.size() - 1};
        }
        at = end + 1;
    }
    return found;
}

// Behind a string of JSON, of which `from` is the first character. None: it has no end.
std::optional<size_t> after_string(std::string_view json, size_t from, bool& has_escapes) {
    has_escapes = false;
    for (size_t at = from; at < json.size(); ++at) {
        if (json[at] == '"') return at + 1;
        if (json[at] == '\\') {
            has_escapes = true;
            ++at;
        }
    }
    return std::nullopt;
}

// What may stand in JSON outside of strings. Forms of it that only a lenient reader takes have more.
bool is_structure(char c) {
    constexpr std::string_view SIGNS = "{}[],:+-. \t\r\n";
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || SIGNS.find(c) != std::string_view::npos;
}

// Of the object's own members, the only `query`, if that is a string without escapes. What is broken in the rest is for others to see.
std::optional<Place> place_in_json(std::string_view json) {
    std::optional<Place> found;
    int64_t depth = 0;
    bool is_value = false, is_wanted = false;  // whether a member's name has come, and it is `query`
    for (size_t at = 0; at < json.size();) {
        const char c = json[at++];
        if (c == '"') {
            bool has_escapes = false;
            const size_t start = at;
            const std::optional<size_t> end = after_string(json, start, has_escapes);
            if (!end) return std::nullopt;
            at = *end;
            if (depth != 1) continue;
            const Place place{start, *end - 1 - start};
            if (is_wanted) {
                if (found || has_escapes) return std::nullopt;
                found = place;
                is_wanted = false;
            } else if (!is_value) {
                if (has_escapes) return std::nullopt;  // it may be another way to write the same name
                is_value = true;
                is_wanted = json.substr(place.at, place.size) == NAME;
            }
            continue;
        }
        if (!is_structure(c)) return std::nullopt;
        if (is_wanted && c != ':' && c != ' ' && c != '\t' && c != '\r' && c != '\n') return std::nullopt;  // no string
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (c == ',' && depth == 1) is_value = false;
    }
    return found;
}

nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

nb::object cut_query_string(std::string_view query) {
    const std::optional<Place> place = place_in_query_string(query);
    if (!place || place->size == 0) return nb::none();
    const std::optional<std::string> text = decoded(query.substr(place->at, place->size));
    if (!text) return nb::none();
    std::string rest(query);
    rest.erase(place->at, place->size);
    return nb::make_tuple(text_of(rest), text_of(*text));
}

nb::object cut_json(const nb::bytes& body) {
    const std::string_view json(body.c_str(), body.size());
    const std::optional<Place> place = place_in_json(json);
    if (!place || place->size == 0) return nb::none();
    const std::string_view text = json.substr(place->at, place->size);
    for (const char c : text)
        if (!is_plain(c)) return nb::none();
    std::string rest(json);
    rest.erase(place->at, place->size);
    return nb::make_tuple(nb::bytes(rest.data(), rest.size()), text_of(text));
}

}  // namespace

void bind_request_text(nb::module_& m) {
    m.def("cut_query_string", &cut_query_string, nb::arg("query"),
          "(the rest, the text) of a query string with one plain text; else None.");
    m.def("cut_json", &cut_json, nb::arg("body"), "(the rest, the text) of a JSON object with one plain text; else None.");
}

}  // namespace paperwasp
