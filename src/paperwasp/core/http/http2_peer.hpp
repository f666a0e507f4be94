// Http2Peer: what both ends of an HTTP/2 connection do alike, a base of Http2Connection and of Http2Client: frames out
// of bytes, blocks of headers out of frames, SETTINGS and PING and what is answered to them, the windows of the
// connection, and its end by an error.
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <utility>

#include "core.hpp"
#include "http/http2_protocol.hpp"

namespace paperwasp {

// What gives its bytes: bytes, bytearray, memoryview. Throws what Python raises for other objects.
class BytesView {
  public:
    explicit BytesView(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) nb::raise_python_error();
    }
    ~BytesView() { PyBuffer_Release(&view_); }
    BytesView(const BytesView&) = delete;
    BytesView& operator=(const BytesView&) = delete;
    const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }

  private:
    Py_buffer view_;
};

struct Http2PeerLimits {
    uint32_t max_frame_bytes;
    uint32_t max_header_bytes;
    uint32_t max_control_frames;
    uint32_t max_continuations;
    uint32_t connection_window;  // what the peer may send of all streams before it is read
    int64_t window_step;         // bytes that are given back to that window at once
};

class Http2Peer {
  public:
    Http2Peer(const Http2Peer&) = delete;
    Http2Peer& operator=(const Http2Peer&) = delete;

    const char* failure() const { return failure_; }

  protected:
    explicit Http2Peer(const Http2PeerLimits& limits);
    ~Http2Peer() = default;

    // What comes in. A unit is a frame, or what a peer begins with.
    void take_bytes(const uint8_t* data, size_t size);
    void release_rooms();  // of a connection that rests
    void take_frame(Frame frame);
    const char* apply_settings(const uint8_t* settings, size_t size, Http2Error& error);

    // What goes out.
    void write_settings(std::initializer_list<std::pair<Setting, uint32_t>> settings);
    void write_frame(FrameType type, uint32_t stream, uint32_t word);
    void give_back_to_connection(size_t bytes);
    void fail(Http2Error error, const char* message);
    void spend_control();
    void reward_controls(uint32_t frames);

    // What each end does its own way.
    virtual size_t unit_bytes(const uint8_t* data, size_t size);
    virtual void take_unit(const uint8_t* data);
    virtual void take_data(Frame& frame) = 0;
    virtual void take_block(const uint8_t* block, size_t size) = 0;
    virtual void take_priority(const Frame& frame) = 0;
    virtual void take_reset(const Frame& frame) = 0;
    virtual void take_go_away(const Frame& frame) = 0;
    virtual void take_stream_window(uint32_t stream_id, int64_t more) = 0;
    virtual const char* refusal_of_headers(uint32_t stream_id) const = 0;    // or null
    virtual const char* apply_setting(Setting setting, uint32_t value) = 0;  // null, or what is wrong
    virtual bool change_send_windows(int64_t change) = 0;                    // of all streams; false: one is too large then
    virtual void settings_acknowledged() {}
    virtual void wrote(size_t) {}  // bytes by the protocol alone
    virtual void failed() {}
    virtual uint32_t last_stream() const = 0;  // the highest that the peer has opened

    Http2PeerLimits peer_limits_;
    uint32_t block_stream_ = 0;  // of headers whose end has not come; 0: there are none
    uint8_t block_flags_ = 0;
    bool has_settings_ = false;
    int64_t receive_window_;  // of the connection: what the peer may still send
    std::string output_;
    uint32_t peer_frame_bytes_ = SMALLEST_MAX_FRAME;
    int64_t send_window_ = FIRST_WINDOW;
    int64_t first_send_window_ = FIRST_WINDOW;  // of a new stream
    bool has_failed_ = false;
    const char* failure_ = nullptr;
    Http2Error failure_code_ = Http2Error::NO_ERROR;

  private:
    void take_headers(Frame& frame);
    void take_continuation(const Frame& frame);
    void take_settings(const Frame& frame);
    void take_ping(const Frame& frame);
    void take_window_update(const Frame& frame);

    std::string carried_;  // the beginning of a frame whose end has not come
    std::string used_;     // a frame that came in parts and is taken, until the end of the call
    std::string block_;    // of headers whose end has not come
    uint32_t continuations_ = 0;
    int64_t owed_bytes_ = 0;  // read, but not given back to the window of the connection yet
    uint32_t controls_left_;
};

}  // namespace paperwasp
