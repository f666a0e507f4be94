// The first line of most requests of HTTP/1.1, read in one step. What else may be asked for, and what is wrong with a line that is no such
// one, http/http1.py says: it is the plain twin.
#include <array>
#include <cstdint>
#include <string_view>

#include "core.hpp"

namespace paperwasp {
namespace {

enum Kind : uint8_t { NONE, TARGET, TOKEN };  // a character of a token is one of a target, too

constexpr std::array<uint8_t, 256> kinds() {
    std::array<uint8_t, 256> found{};
    for (int c = '!'; c <= '~'; ++c) found[static_cast<size_t>(c)] = TARGET;
    found['#'] = NONE;
    for (int c = '0'; c <= '9'; ++c) found[static_cast<size_t>(c)] = TOKEN;
    for (int c = 'A'; c <= 'Z'; ++c) found[static_cast<size_t>(c)] = TOKEN;
    for (int c = 'a'; c <= 'z'; ++c) found[static_cast<size_t>(c)] = TOKEN;
    return found;
}

constexpr std::array<uint8_t, 256> KINDS = kinds();
constexpr std::string_view VERSION = " HTTP/1.1\r\n";

uint8_t kind_of(char c) { return KINDS[static_cast<uint8_t>(c)]; }

nb::object read_request_line(const nb::bytes& data, size_t at) {
    if (at > data.size()) throw nb::value_error("the line begins behind the end");
    const std::string_view sent(data.c_str() + at, data.size() - at);
    size_t space = 0;
    while (space < sent.size() && kind_of(sent[space]) == TOKEN) ++space;
    if (space == 0 || sent.size() < space + 2 || sent[space] != ' ' || sent[space + 1] != '/') return nb::none();
    const size_t start = space + 1;
    size_t end = start, question = 0;
    while (end < sent.size() && kind_of(sent[end]) != NONE) {
        if (sent[end] == '?' && question == 0) question = end;
        ++end;
    }
    if (sent.substr(end, VERSION.size()) != VERSION) return nb::none();
    const size_t path_end = question == 0 ? end : question, query = question == 0 ? end : question + 1;
    return nb::make_tuple(nb::str(sent.data(), space), nb::str(sent.data() + start, path_end - start),
                          nb::str(sent.data() + query, end - query), at + end + VERSION.size());
}

}  // namespace

void bind_http1_line(nb::module_& m) {
    m.def("read_request_line", &read_request_line, nb::arg("data"), nb::arg("at"),
          "(method, raw path, query, where the next line begins) of the line of a request for a path; None: it is another one.");
}

}  // namespace paperwasp
