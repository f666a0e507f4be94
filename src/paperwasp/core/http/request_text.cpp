// The values of a request's own, cut out of it: what is left is the same bytes for all requests that differ in them alone, and so the key
// of what is known of them. Cut out are the text that a user has typed, if it is plain: printable ASCII, not empty; and the vector, the
// value of the only parameter `input.query(name)` that is an array. The text is the value of the only parameter `query`; where there is
// none, of the only one that `userInput(@name)` names, if that is written once. Two requests that leave the same rest have their values at
// the same places of it. The plain twin is in tests/oracles/request_text.py.
#include "http/request_text.hpp"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <nanobind/stl/string_view.h>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr std::string_view NAME = "query", INPUT = "input.query", USER_INPUT = "userInput";

// Where a value stands, as it is written.
struct Place {
    size_t at, size;
};

// Nothing: there is no such value, or it is left where it is.
struct Places {
    std::optional<Place> text, vector;
};

bool is_of_name(char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_' || c == '-' || c == '.';
}

// Takes off one of two ways to write a sign. False: there is neither.
bool take(std::string_view& text, std::string_view sign, std::string_view escaped) {
    for (const std::string_view way : {sign, escaped}) {
        if (text.substr(0, way.size()) != way) continue;
        text.remove_prefix(way.size());
        return true;
    }
    return false;
}

// The name in the only `userInput(@name)`, perhaps with signs as URLs have them; empty: there is none, or more. A text that has another
// of these is not cut out, so that the rest alone says the name.
std::string_view name_of_input(std::string_view request) {
    std::string_view found;
    for (size_t at = request.find(USER_INPUT); at != request.npos; at = request.find(USER_INPUT, at + 1)) {
        std::string_view rest = request.substr(at + USER_INPUT.size());
        if (!take(rest, "(", "%28") || !take(rest, "@", "%40")) continue;
        size_t size = 0;
        while (size < rest.size() && is_of_name(rest[size])) ++size;
        const std::string_view name = rest.substr(0, size);
        rest.remove_prefix(size);
        if (name.empty() || !take(rest, ")", "%29")) continue;
        if (!found.empty()) return {};
        found = name;
    }
    return found;
}

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
    std::optional<Place> named;
    const std::string_view input = name_of_input(query);
    for (size_t at = 0; at < query.size();) {
        const size_t end = std::min(query.find('&', at), query.size());
        const std::string_view part = query.substr(at, end - at), name = part.substr(0, part.find('='));
        const std::string_view value = part.substr(std::min(part.size(), name.size() + 1));
        const Place place{at + name.size() + 1, value.size()};
        if (name == NAME || (!input.empty() && name == input)) {
            if (value.empty() || !put(name == NAME ? found.text : named, place)) return std::nullopt;
        } else if (is_input(name) && (value.substr(0, 1) == "[" || value.substr(0, 3) == "%5B")) {
            if (!put(found.vector, place)) return std::nullopt;
        }
        at = end + 1;
    }
    if (!found.text) found.text = named;
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

// Whether nothing in the array may have a bracket that does not end it. Each sign is looked for by itself, which is faster.
bool is_flat(std::string_view array) {
    return array.find('[') == array.npos && array.find('{') == array.npos && array.find('"') == array.npos;
}

// Of the object's own members the values that are cut out: a text or a vector that is a string without escapes, or a vector that is an
// array of numbers. Nothing: what there is may mean something else. What is broken in the rest is for others to see.
std::optional<Places> places_in_json(std::string_view json) {
    Places found;
    std::optional<Place> named;
    const std::string_view input = name_of_input(json);
    const auto is_text = [&](std::string_view name) { return name == NAME || (!input.empty() && name == input); };
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
            } else if (is_text(name)) {
                if (has_escapes || place.size == 0 || !put(name == NAME ? found.text : named, place)) return std::nullopt;
                name = {};
            } else if (is_input(name) && json.substr(place.at, 1) == "[") {
                if (has_escapes || !put(found.vector, place)) return std::nullopt;
                name = {};
            }
            continue;
        }
        if (!is_structure(c)) return std::nullopt;
        if (is_own && is_text(name) && c != ':' && c != ' ' && c != '\t' && c != '\r' && c != '\n') return std::nullopt;  // no string
        if (is_own && c == '[' && is_input(name)) {
            const size_t end = json.find(']', at);
            const Place place{at - 1, end - at + 2};
            if (end == json.npos || !is_flat(json.substr(at, end - at))) return std::nullopt;
            if (!put(found.vector, place)) return std::nullopt;
            name = {};
            at = end + 1;
            continue;
        }
        if (c == '{' || c == '[') ++depth;
        if (c == '}' || c == ']') --depth;
        if (c == ',' && depth == 1) is_value = false;
    }
    if (!found.text) found.text = named;
    return found;
}

// A request without its values, some of which may be elsewhere in it than `places` say: `from` bytes further on.
std::string without(std::string_view request, const Places& places, size_t from = 0, std::optional<Place> length = std::nullopt) {
    std::vector<Place> cut;
    if (length) cut.push_back(*length);
    for (const auto& place : {places.text, places.vector})
        if (place) cut.push_back({from + place->at, place->size});
    std::sort(cut.begin(), cut.end(), [](const Place& a, const Place& b) { return a.at < b.at; });
    std::string rest;
    size_t start = 0;
    for (const Place& place : cut) {
        rest.append(request, start, place.at - start);
        start = place.at + place.size;
    }
    return rest.append(request, start);
}

std::string_view part_of(std::string_view request, const std::optional<Place>& place) {
    return place ? request.substr(place->at, place->size) : std::string_view();
}

bool has_values(const std::optional<Places>& places) { return places && (places->text || places->vector); }

bool are_plain(std::string_view text) { return std::all_of(text.begin(), text.end(), is_plain); }

// What may stand in the line of a request; http1_line.cpp has the same.
bool is_of_target(char c) { return c > ' ' && c <= '~' && c != '#'; }

constexpr std::string_view LINE_END = "\r\n", HEAD_END = "\r\n\r\n", GET = "GET /", POST = "POST /";
constexpr std::string_view LENGTH = "\ncontent-length:";
constexpr size_t MOST_DIGITS = 9;
constexpr std::string_view REFERENCE = "ref:";  // a query profile takes the text for the name of another parameter

bool is_same_letter(char lower, char c) { return lower == (c >= 'A' && c <= 'Z' ? static_cast<char>(c | 0x20) : c); }

// The digits of the only Content-Length. None: there is none, or it is written in an uncommon way.
std::optional<Place> place_of_length(std::string_view head) {
    std::optional<Place> found;
    for (auto from = head.begin();;) {
        const auto at =
            std::search(from, head.end(), LENGTH.begin(), LENGTH.end(), [](char c, char lower) { return is_same_letter(lower, c); });
        if (at == head.end()) return found;
        if (found) return std::nullopt;
        size_t begin = static_cast<size_t>(at - head.begin()) + LENGTH.size(), end = 0;
        if (begin < head.size() && head[begin] == ' ') ++begin;
        for (end = begin; end < head.size() && head[end] >= '0' && head[end] <= '9';) ++end;
        if (end == begin || end - begin > MOST_DIGITS || head.substr(end, LINE_END.size()) != LINE_END) return std::nullopt;
        found = {begin, end - begin};
        from = at + 1;
    }
}

size_t number_of(std::string_view digits) {
    size_t number = 0;
    for (const char c : digits) number = 10 * number + static_cast<size_t>(c - '0');
    return number;
}

// The values of a query string. Nothing: an escape is broken, or one is not plain.
std::optional<OwnValues> decoded_values(std::string_view query, const Places& places) {
    std::optional<std::string> text = decoded(part_of(query, places.text)), vector = decoded(part_of(query, places.vector));
    if (!text || !vector) return std::nullopt;
    return OwnValues{std::move(*text), std::move(*vector)};
}

// Of a request without a body, whose values are in its query string.
std::optional<OwnValues> cut_get(std::string_view request, std::string& rest) {
    const size_t line_end = request.find(LINE_END), question = request.substr(0, line_end).find('?');
    if (question == std::string_view::npos) return std::nullopt;
    const size_t from = question + 1, end = std::min(request.find(' ', from), line_end);
    const std::string_view query = request.substr(from, end - from);
    const std::optional<Places> places = places_in_query_string(query);
    if (!has_values(places)) return std::nullopt;
    for (const auto& place : {places->text, places->vector}) {
        const std::string_view value = part_of(query, place);
        if (!std::all_of(value.begin(), value.end(), is_of_target)) return std::nullopt;
    }
    std::optional<OwnValues> values = decoded_values(query, *places);
    if (values) rest = without(request, *places, from);
    return values;
}

// Of a request whose values are in its body, of JSON.
std::optional<OwnValues> cut_post(std::string_view request, size_t head_size, std::string& rest) {
    const std::optional<Place> length = place_of_length(request.substr(0, head_size));
    const std::string_view body = request.substr(head_size);
    if (!length || number_of(request.substr(length->at, length->size)) != body.size()) return std::nullopt;
    const std::optional<Places> places = places_in_json(body);
    if (!has_values(places) || !are_plain(part_of(body, places->text))) return std::nullopt;
    rest = without(request, *places, head_size, length);
    return OwnValues{std::string(part_of(body, places->text)), std::string(part_of(body, places->vector))};
}

nb::str text_of(std::string_view text) { return nb::str(text.data(), text.size()); }

nb::bytes bytes_of(std::string_view text) { return nb::bytes(text.data(), text.size()); }

nb::object cut_query_string(std::string_view query) {
    const std::optional<Places> places = places_in_query_string(query);
    if (!has_values(places)) return nb::none();
    const std::optional<OwnValues> values = decoded_values(query, *places);
    if (!values) return nb::none();
    return nb::make_tuple(text_of(without(query, *places)), text_of(values->text), bytes_of(values->vector));
}

nb::object cut_json(const nb::bytes& body) {
    const std::string_view json(body.c_str(), body.size());
    const std::optional<Places> places = places_in_json(json);
    if (!has_values(places) || !are_plain(part_of(json, places->text))) return nb::none();
    return nb::make_tuple(bytes_of(without(json, *places)), text_of(part_of(json, places->text)), bytes_of(part_of(json, places->vector)));
}

nb::object cut_whole_request(const nb::bytes& request) {
    std::string rest;
    const std::optional<OwnValues> values = cut_request({request.c_str(), request.size()}, rest);
    if (!values) return nb::none();
    return nb::make_tuple(bytes_of(rest), text_of(values->text), bytes_of(values->vector));
}

}  // namespace

std::optional<OwnValues> cut_request(std::string_view request, std::string& rest) {
    const bool is_get = request.substr(0, GET.size()) == GET;
    if (!is_get && request.substr(0, POST.size()) != POST) return std::nullopt;
    const size_t end = request.find(HEAD_END);
    if (end == std::string_view::npos) return std::nullopt;
    const size_t head_size = end + HEAD_END.size();
    if (is_get && request.size() != head_size) return std::nullopt;
    std::optional<OwnValues> values = is_get ? cut_get(request, rest) : cut_post(request, head_size, rest);
    if (values && values->text.compare(0, REFERENCE.size(), REFERENCE) == 0) return std::nullopt;
    return values;
}

void bind_request_text(nb::module_& m) {
    m.def("cut_query_string", &cut_query_string, nb::arg("query"),
          "(the rest, the text, the vector) of a query string, one of which may be empty; None: there is neither, or what there is may mean"
          " something else.");
    m.def("cut_json", &cut_json, nb::arg("body"), "The same of a JSON object.");
    m.def("cut_whole_request", &cut_whole_request, nb::arg("request"),
          "The same of all bytes of a request of HTTP/1.1; None: it has neither, or is not whole, or more than one.");
}

}  // namespace paperwasp
