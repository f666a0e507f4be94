// The values of a request's own, cut out of it: what is left is the same bytes for all requests that differ in them alone, and so the key
// of what is known of them. Cut out are the text that a user has typed, the value of the only parameter `query`, if it is plain: printable
// ASCII, not empty; and the vector, the value of the only parameter `input.query(name)` that is an array. Two requests that leave the same
// rest have their values at the same places of it. The plain twin is in request_text.py.
#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include <nanobind/stl/string_view.h>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr std::string_view NAME = "query", INPUT = "input.query";

// Where a value stands, as it is written.
struct Place {
    size_t at, size;
};

// Nothing: there is no such value, or it is left where it is.
struct Places {
    std::optional<Place> text, vector;
};

// Whether it is the name of a parameter of vectors, perhaps with parentheses as URLs have them.
bool is_input(std::string_view name) {
    if (name.substr(0, INPUT.size()) != INPUT) return false;
    name.remove_prefix(INPUT.size());
    return name.substr(0, 1) == "(" || name.substr(0, 3) == "%28";
}

// Puts a value where there is none yet. False: there are two.
bool put(std::optional<Place>& to, Place place) {
    if (to) return false;
    to = place;
    return true;
}

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

// Nothing: what there is may mean something else.
std::optional<Places> places_in_query_string(std::string_view query) {
    Places found;
    for (size_t at = 0; at < query.size();) {
        const size_t end = std::min(query.find('&', at), query.size());
        const std::string_view part = query.substr(at, end - at), name = part.substr(0, part.find('='));
        const std::string_view value = part.substr(std::min(part.size(), name.size() + 1));
        const Place place{at + name.size() + 1, value.size()};
        if (name == NAME) {
            if (value.empty() || !put(found.text, place)) return std::nullopt;
        } else if (is_input(name) && (value.substr(0, 1) == "[" || value.substr(0, 3) == "%5B")) {
            if (!put(found.vector, place)) return std::nullopt;
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

// Of the object's own members the values that are cut out: a text or a vector that is a string without escapes, or a vector that is an
// array of numbers. Nothing: what there is may mean something else. What is broken in the rest is for others to see.
std::optional<Places> places_in_json(std::string_view json) {
    Places found;
    int64_t depth = 0;
    bool is_value = false;  // whether a member's name has come
    std::string_view name;
    for (size_t at = 0; at < json.size();) {
        const char c = json[at++];
        const bool is_own = depth == 1 && is_value;
        if (c == '"') {
            bool has_escapes = false;
            const size_t start = at;
            const std::optional<size_t> end = after_string(json, start, has_escapes);
            if (!end) return std::nullopt;
            at = *end;
            if (depth != 1) continue;
            const Place place{start, *end - 1 - start};
            if (!is_value) {
                if (has_escapes) return std::nullopt;  // it may be another way to write the same name
                is_value = true;
                name = json.substr(place.at, place.size);
            } else if (name == NAME) {
                if (has_escapes || place.size == 0 || !put(found.text, place)) return std::nullopt;
                name = {};
            } else if (is_input(name) && json.substr(place.at, 1) == "[") {
                if (has_escapes || !put(found.vector, place)) return std::nullopt;
                name = {};
            }
            continue;
        }
        if (!is_structure(c)) return std::nullopt;
        if (is_own && name == NAME && c != ':' && c != ' ' && c != '\t' && c != '\r' && c != '\n') return std::nullopt;  // no string
        if (is_own && c == '[' && is_input(name)) {
            const size_t end = json.find(']', at);
            const Place place{at - 1, end - at + 2};
            if (end == json.npos || json.substr(at, end - at).find_first_of("[{\"") != json.npos) return std::nullopt;
            if (!put(found.vector, place)) return std::nullopt;
            name = {};
            at = end + 1;
            continue;
        }
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (c == ',' && depth == 1) is_value = false;
    }
    return found;
}

// A request without its values.
std::string without(std::string_view request, const Places& places) {
    std::string rest(request);
    const auto erase = [&](const std::optional<Place>& place) {
        if (place) rest.erase(place->at, place->size);
    };
    const bool text_first = places.text && places.vector && places.text->at < places.vector->at;
    erase(text_first ? places.vector : places.text);
    erase(text_first ? places.text : places.vector);
    return rest;
}

nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

std::string_view part_of(std::string_view request, const std::optional<Place>& place) {
    return place ? request.substr(place->at, place->size) : std::string_view();
}

nb::object cut_query_string(std::string_view query) {
    const std::optional<Places> places = places_in_query_string(query);
    if (!places || (!places->text && !places->vector)) return nb::none();
    const std::optional<std::string> text = decoded(part_of(query, places->text)), vector = decoded(part_of(query, places->vector));
    if (!text || !vector) return nb::none();
    return nb::make_tuple(text_of(without(query, *places)), text_of(*text), bytes_of(*vector));
}

nb::object cut_json(const nb::bytes& body) {
    const std::string_view json(body.c_str(), body.size());
    const std::optional<Places> places = places_in_json(json);
    if (!places || (!places->text && !places->vector)) return nb::none();
    const std::string_view text = part_of(json, places->text);
    if (!std::all_of(text.begin(), text.end(), is_plain)) return nb::none();
    return nb::make_tuple(bytes_of(without(json, *places)), text_of(text), bytes_of(part_of(json, places->vector)));
}

}  // namespace

void bind_request_text(nb::module_& m) {
    m.def("cut_query_string", &cut_query_string, nb::arg("query"),
          "(the rest, the text, the vector) of a query string, one of which may be empty; None: there is neither, or what there is may mean"
          " something else.");
    m.def("cut_json", &cut_json, nb::arg("body"), "The same of a JSON object.");
}

}  // namespace paperwasp
