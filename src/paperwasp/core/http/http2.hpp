// Http2Connection: the server's end of an HTTP/2 connection (RFC 9113) as a state machine without input and output,
// time and callbacks.
//
//     bytes of the peer → receive → events for Python, and bytes to send
//     respond, send_data, consume, reset, go_away → bytes to send
//     take_output → all bytes that may go now
//
// Files: http2_protocol.hpp has the words and the table of states, http2_peer.hpp what the client's end does as well,
// http2_streams.hpp the open streams, http2_request.hpp the heads of requests, http2_batch.hpp requests that are
// alike, http2_receive.cpp what comes in,
// http2.cpp what is answered to it by the protocol alone, http2_send.cpp what goes out, http2_module.cpp what Python
// sees.
//
// Nothing that a peer sends throws or grows without bound. What is broken makes RST_STREAM (an error of one stream), or
// GOAWAY and the event "over" (of the connection). What is allowed but can be abused has a budget (Http2Limits); who
// exceeds it gets ENHANCE_YOUR_CALM:
//
//     abuse                                                   its limit
//     many streams at once                                    max_streams: REFUSED_STREAM
//     streams opened and reset (CVE-2023-44487), errors of
//       streams, refused streams                              max_resets; each answer that is sent gives one back
//     headers that are large, or become so by decoding        max_header_bytes: beyond it they are decoded but not
//                                                             kept: 431
//     headers without an end                                  max_header_bytes, max_continuations
//     PING, SETTINGS, PRIORITY, WINDOW_UPDATE, empty DATA,
//       frames of unknown types or for closed streams         max_control_frames; answers and data that move give
//                                                             some back
//     output that the peer makes and does not read            max_unread_bytes; HTTP2_COPIED_BYTES more of small
//                                                             answers and as much of heads of answers
//     bodies that nobody reads                                stream_window, connection_window
//     answers that the peer gives no window for               the caller's: see unsent_bytes
//
// Threads: one at a time, with Python's objects in reach, which the caller sees to: it is that of the event loop.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "core.hpp"
#include "http/hpack.hpp"
#include "http/http2_batch.hpp"
#include "http/http2_peer.hpp"
#include "http/http2_request.hpp"
#include "http/http2_streams.hpp"

namespace paperwasp {

// A small answer is copied to the output while that has less than this. It waits in its stream otherwise, and counts as
// one that is open, so that a peer that reads nothing gets no more than max_streams of them.
constexpr size_t HTTP2_COPIED_BYTES = 1 << 18;

struct Http2Limits {
    uint32_t max_streams;
    uint32_t max_header_bytes;
    uint32_t stream_window;
    uint32_t connection_window;
    uint32_t max_frame_bytes;
    uint32_t max_resets;
    uint32_t max_control_frames;
    uint32_t max_continuations;
    uint32_t max_unread_bytes;
};

class Http2Connection final : public Http2Peer {
  public:
    // Throws ValueError for limits that the protocol does not allow. The settings are in the output from the beginning.
    // `batch_start`: how paths begin of requests that come in batches (http2_batch.hpp).
    explicit Http2Connection(const Http2Limits& limits, std::string batch_start = "");

    bool upgrade(const nb::bytes& settings);
    nb::list receive(nb::handle data);

    bool inform(uint32_t stream_id, const nb::bytes& block);
    bool respond(uint32_t stream_id, const nb::bytes& block, const nb::bytes& body, bool ends);
    bool send_data(uint32_t stream_id, const nb::bytes& data, bool ends);
    nb::bytes take_output(size_t most_bytes);
    nb::list take_drained();
    size_t unsent_bytes(uint32_t stream_id) const;

    void consume(uint32_t stream_id, size_t size);
    void reset(uint32_t stream_id, uint32_t code);
    void go_away(uint32_t code);
    void refill_budgets();

    uint32_t open_streams() const { return streams_.count(); }
    bool is_over() const { return has_failed_ || ((is_leaving_ || is_peer_leaving_) && streams_.count() == 0); }

  private:
    enum class EventKind : uint8_t { NONE, REQUEST, DATA, RESET };

    // A piece of a body, where it came.
    struct Piece {
        const uint8_t* bytes;
        size_t size;
        size_t next;
    };

    struct Event {
        EventKind kind;
        uint32_t stream;
        RequestHead head;
        size_t first_piece, last_piece;
        size_t body_bytes;
        uint32_t code;
        bool has_ended;
    };

    // http2_receive.cpp
    size_t unit_bytes(const uint8_t* data, size_t size) override;
    void take_unit(const uint8_t* data) override;
    void take_data(Frame& frame) override;
    void take_body(Stream& stream, const Frame& frame, size_t padding_bytes);
    const char* refusal_of_headers(uint32_t stream_id) const override;
    void take_block(const uint8_t* block, size_t size) override;
    bool read_block(const uint8_t* block, size_t size);
    void open_stream(bool has_ended);
    void take_trailers(Stream& stream, bool has_ended);
    bool is_allowed(StreamFrame kind, uint32_t stream_id, Stream*& stream);
    void end_request(Stream& stream);
    size_t event_of(Stream& stream, EventKind kind);
    void add_piece(Event& event, const uint8_t* bytes, size_t size);
    nb::list make_events();
    nb::object make_event(Event& event);
    nb::bytes make_body(const Event& event);

    // http2.cpp
    void take_priority(const Frame& frame) override;
    void take_reset(const Frame& frame) override;
    void take_go_away(const Frame& frame) override;
    void take_stream_window(uint32_t stream_id, int64_t more) override;
    const char* apply_setting(Setting setting, uint32_t value) override;
    bool change_send_windows(int64_t change) override;
    void settings_acknowledged() override;
    void wrote(size_t bytes) override { spend_unread(bytes); }
    uint32_t last_stream() const override { return last_stream_; }
    StreamState state_of(uint32_t stream_id, Stream*& stream);
    void fail_stream(uint32_t stream_id, Http2Error error);
    void cut(uint32_t stream_id, Stream* stream, uint32_t code);
    void note_reset(Stream& stream, uint32_t code);
    void answer_status(Stream& stream, uint32_t status, bool has_ended);
    void close_stream(Stream& stream, StreamState how);
    void drop_streams();
    void spend_reset();
    void spend_unread(size_t bytes);
    void reward(uint32_t resets, uint32_t controls);
    void give_back(Stream& stream, size_t bytes);

    // http2_send.cpp
    Stream* stream_to_answer(uint32_t stream_id);
    void write_block(uint32_t stream_id, std::string_view block, std::string_view more, bool ends);
    void send_or_wait(Stream& stream, const nb::bytes& data, bool ends);
    void queue(Stream& stream);
    size_t plan_turn(Stream& stream, size_t most_bytes);
    void end_answer(Stream& stream);
    void write_plan(uint8_t* to);

    Http2Limits limits_;
    StreamTable streams_;
    HpackDecoder decoder_;
    RequestHead head_;
    Http2Batch batch_;

    // What comes in.
    std::vector<Event> events_;  // of this call of `receive`
    size_t event_count_ = 0;
    std::vector<Piece> pieces_;
    uint64_t received_ = 0;     // calls of `receive`
    uint32_t last_stream_ = 0;  // the highest that the peer has opened
    bool has_preface_ = false;
    bool is_acknowledged_ = false;  // the peer knows our settings

    // What goes out.
    std::string ahead_;           // what goes before the data, while data is taken
    std::deque<uint32_t> turns_;  // the streams that have data and a window, in the order in which they send
    std::vector<uint32_t> drained_;
    struct Part {
        const char* bytes;
        size_t size;
    };
    struct Turn {
        uint32_t stream;
        uint32_t size;
        bool ends;
        size_t parts;
    };
    std::vector<Turn> plan_;
    std::vector<Part> parts_;
    std::vector<nb::bytes> sent_;  // whose last bytes are in the plan
    size_t unsent_bytes_ = 0;
    bool has_sent_headers_ = false;
    bool is_leaving_ = false;
    bool is_peer_leaving_ = false;

    // What is left of the budgets.
    uint32_t resets_left_;
    size_t unread_bytes_ = 0;
    bool is_receiving_ = false;
};

}  // namespace paperwasp
