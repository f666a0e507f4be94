// Whole requests that came one behind the other and are alike: one event of a connection instead of one for each.
//
// Alike are requests of one method, origin and query string, whose paths differ behind the last slash alone, and whose
// headers but in how long and how coded the body is. What they have in common is what the first of them has.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "core.hpp"
#include "http/http2_request.hpp"

namespace paperwasp {

class Http2Batch {
  public:
    // `start`: how paths begin of requests that come in batches; none do where it is empty.
    explicit Http2Batch(std::string start) : start_(std::move(start)) {}

    // Whether a request with this head may be of a batch, if it is whole and has a body.
    bool is_for(const RequestHead& head) const;

    // Adds a request, and what was begun before to `events` where the request is not like that.
    void add(uint32_t stream, RequestHead& head, nb::bytes body, nb::list& events);

    // Adds to `events` what was begun.
    void end(nb::list& events);

  private:
    bool has_like(const RequestHead& head, std::string_view path_start) const;

    std::string start_;
    RequestHead first_;
    std::string path_start_;  // of the path, up to the last slash, with it
    nb::list streams_, names_, bodies_, codings_;
    bool is_begun_ = false;
};

}  // namespace paperwasp
