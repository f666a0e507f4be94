// The values of a request's own, cut out of it: see request_text.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paperwasp {

// The values that a request has of its own. Empty: it has none.
struct OwnValues {
    std::string text;    // that a user has typed
    std::string vector;  // a JSON array
};

// The own values of a whole request of HTTP/1.1, head and body, and in `rest` what is left of the request: the same bytes for all requests
// that differ in nothing but these. A body's length is not in it. None: the request has no such values, or its text is not plain, or more
// has come than this request, or less.
std::optional<OwnValues> cut_request(std::string_view request, std::string& rest);

}  // namespace paperwasp
