// Http2Client: the client's end of an HTTP/2 connection (RFC 9113) as a state machine without input and output, time and
// callbacks, for a client that sends many requests with small answers.
//
//     heads, requests → bytes to send                     add_head, request, reset
//     bytes of the server → events for Python             receive
//     take_output → all bytes that may go now
//
// Files: http2_protocol.hpp has the words, http2_peer.hpp what the server's end (http2.hpp) does as well,
// http2_client_receive.cpp what comes in, http2_client.cpp what goes out, http2_client_module.cpp what Python sees.
//
// Nothing that a server sends throws or grows without bound. What is broken on one stream makes RST_STREAM, what is
// broken of the connection GOAWAY and the event "over". The limits:
//
//     abuse                                              its limit
//     an answer that is large                            max_body_bytes: the stream is reset
//     many answers that are begun and not ended          max_buffered_bytes of all: ENHANCE_YOUR_CALM
//     headers that are large, or have no end             max_header_bytes, max_continuations
//     frames that ask for nothing, interim answers       max_control_frames; each whole answer gives some back
//     output that the server makes and does not read     what it makes is bounded by max_control_frames
//     settings that take the room for requests away      the caller's: see `room`
//
// Threads: one at a time, with Python's objects in reach, which the caller sees to.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core.hpp"
#include "http/hpack.hpp"
#include "http/http2_peer.hpp"

namespace paperwasp {

struct Http2ClientLimits {
    uint32_t max_body_bytes;
    uint32_t max_buffered_bytes;
    uint32_t max_header_bytes;
    uint32_t max_control_frames;
    uint32_t max_continuations;
};

class Http2Client final : public Http2Peer {
  public:
    // Throws ValueError for limits that the protocol does not allow. Preface and settings are in the output from the
    // beginning.
    explicit Http2Client(const Http2ClientLimits& limits);

    // Fields that many requests have in common, pseudo-header fields first, without :path and content-length. Gives the
    // number of the head. Throws ValueError for fields that HTTP/2 does not have.
    uint32_t add_head(const nb::list& fields);

    // Sends a request; gives its stream, or 0 where there is no room.
    uint32_t request(uint32_t head, const nb::bytes& path, const nb::bytes& body);
    uint32_t room() const;
    void reset(uint32_t stream_id, uint32_t code);

    nb::list receive(nb::handle data);
    nb::bytes take_output(size_t most_bytes);

    size_t open_streams() const { return streams_.size(); }
    size_t unsent_bytes() const { return unsent_bytes_; }
    bool is_leaving() const { return is_leaving_ || has_failed_; }

  private:
    struct Field {
        std::string name, value;
        int64_t entry = -1;  // its number among those that were added to the table of this connection; -1: it is not
    };

    struct Head {
        std::vector<Field> fields;
        size_t pseudo_count = 0;
    };

    // What of an answer has come.
    struct Answer {
        uint32_t status = 0;
        int64_t length_left = -1;  // of the announced length; -1: none was announced
        std::string body;
    };

    struct Request {
        nb::bytes body;
        size_t sent = 0;
        int64_t send_window = 0;
        int64_t receive_window = 0;
        bool is_in_turn = false;  // it stands in the queue of streams that send
        Answer answer;

        size_t unsent() const { return body.size() - sent; }
    };

    using Streams = std::unordered_map<uint32_t, Request>;

    // http2_client_receive.cpp
    size_t unit_bytes(const uint8_t* data, size_t size) override;
    void take_data(Frame& frame) override;
    void take_body(Streams::iterator found, const Frame& frame);
    const char* refusal_of_headers(uint32_t stream_id) const override;
    void take_block(const uint8_t* block, size_t size) override;
    const char* read_block(const uint8_t* block, size_t size, Answer& answer, bool& is_damaged);
    void take_answer_head(Streams::iterator found, const Answer& head, const char* problem, bool has_ended);
    void take_priority(const Frame&) override { spend_control(); }
    void take_reset(const Frame& frame) override;
    const char* apply_setting(Setting setting, uint32_t value) override;
    bool change_send_windows(int64_t change) override;
    void take_go_away(const Frame& frame) override;
    void take_stream_window(uint32_t stream_id, int64_t more) override;
    void end_answer(Streams::iterator found);
    void failed() override;
    uint32_t last_stream() const override { return 0; }
    bool is_idle(uint32_t stream_id) const { return stream_id % 2 == 0 || stream_id >= next_stream_; }

    // http2_client.cpp
    void write_block(uint32_t stream_id, bool ends);
    void encode_field(Field& field);
    void send_body(uint32_t stream_id, Request& request);
    void queue(uint32_t stream_id, Request& request);
    void fail_stream(Streams::iterator found, Http2Error error);
    void drop(Streams::iterator found);

    Http2ClientLimits limits_;
    Streams streams_;
    HpackDecoder decoder_;
    nb::list events_;  // of this call of `receive`

    size_t buffered_bytes_ = 0;  // of answers that have not ended

    // What goes out.
    std::vector<Head> heads_;
    std::string block_out_;
    std::deque<uint32_t> turns_;  // streams that have data and a window, in the order in which they send
    uint32_t next_stream_ = 1;
    uint32_t last_taken_ = STREAM_BITS;         // the highest stream that the server will work on
    uint32_t peer_max_streams_ = 100;           // until its settings say otherwise
    uint32_t table_limit_ = HPACK_TABLE_BYTES;  // of our table at the server
    size_t table_bytes_ = 0;
    int64_t entries_ = 0;             // that we have added to it; none is ever pushed out
    bool has_table_changed_ = false;  // the next block must say so
    size_t unsent_bytes_ = 0;
    bool is_leaving_ = false;
};

}  // namespace paperwasp
