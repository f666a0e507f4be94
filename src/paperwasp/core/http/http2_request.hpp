// The head of a request, read from the fields of a block of headers as RFC 9113, section 8, wants them.
//
// What Python gets is made on the way, field by field: a dict of strings in which names are lower case and names that
// repeat are joined. The strings of fields that came by number are made once and kept with the entry of the table.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core.hpp"
#include "http/hpack.hpp"

namespace paperwasp {

constexpr int64_t NO_LENGTH = -1;

class RequestHead {
  public:
    RequestHead();

    // A block begins. At most so many bytes of fields are taken, counted as HPACK counts them.
    void begin(size_t most_bytes);

    // Takes a field.
    void add(HpackEntry& field);

    // All fields are there. Nothing, or what makes the request malformed.
    const char* finish();

    // The same of trailers, which are looked at and dropped.
    const char* finish_trailers() const;

    bool is_too_large() const { return bytes_ > most_bytes_; }
    bool is_connect() const { return is_connect_; }
    int64_t content_length() const { return content_length_; }

    // For Python, after `finish`, once each. `headers` has neither how long nor how coded a body is: these two differ among
    // requests that are alike.
    nb::object method, scheme, authority, path, query, headers;
    nb::object length, coding;  // null where there are none

    // All headers.
    nb::object whole_headers();

  private:
    void set_once(nb::object& place, HpackEntry& field);
    void set_path(HpackEntry& field);
    void set_length(HpackEntry& field);
    void set_coding(HpackEntry& field);
    void set_header(HpackEntry& field);
    void join_repeated();
    void complain(const char* problem) {
        if (problem_ == nullptr) problem_ = problem;
    }

    nb::object repeated_;  // name → list of values, of names that came more than once
    nb::object host_;
    const char* problem_ = nullptr;
    int64_t content_length_ = NO_LENGTH;
    size_t bytes_ = 0;
    size_t most_bytes_ = 0;
    bool is_connect_ = false;
    bool has_regular_ = false;
    bool has_pseudo_ = false;
};

// The bytes of an answer's head, good for every connection: a status (none where it is 0) and fields. Throws ValueError
// for names and values that HTTP forbids.
nb::bytes http2_header_block(uint32_t status, const nb::list& headers);

}  // namespace paperwasp
