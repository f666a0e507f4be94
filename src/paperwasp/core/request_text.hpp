// The text that a user has typed, cut out of a request: see request_text.cpp.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace paperwasp {

// The text of a whole request of HTTP/1.1, head and body, and in `rest` what is left of the request: the same bytes for all requests that
// differ in nothing but their text. A body's length is not in it. None: the request has no plain text, or more has come than this request,
// or less.
std::optional<std::string> cut_request(std::string_view request, std::string& rest);

}  // namespace paperwasp
