// Http2Connection: what the protocol itself answers: settings, windows, pings, resets and errors.
#include "http2.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace paperwasp {
namespace {

constexpr uint32_t MOST_STREAMS = 1 << 20;
constexpr uint32_t SETTINGS_OF_A_CONTROL = 16;  // each further 16 settings of a frame cost as much as a frame

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

Http2Connection::Http2Connection(const Http2Limits& limits)
    : Http2Peer({limits.max_frame_bytes, limits.max_header_bytes, limits.max_control_frames, limits.max_continuations,
                 limits.connection_window, limits.connection_window / 2}),
      limits_(limits),
      streams_(limits.max_streams),
      resets_left_(limits.max_resets) {
    if (limits.max_streams == 0 || limits.max_streams > MOST_STREAMS) throw nb::value_error("max_streams is from 1 to 2^20");
    if (limits.stream_window > LARGEST_WINDOW) throw nb::value_error("stream_window is less than 2^31");
    if (limits.connection_window < FIRST_WINDOW || limits.connection_window > LARGEST_WINDOW)
        throw nb::value_error("connection_window is from 65,535 to 2^31 - 1");
    if (limits.max_frame_bytes < SMALLEST_MAX_FRAME || limits.max_frame_bytes > LARGEST_MAX_FRAME)
        throw nb::value_error("max_frame_bytes is from 2^14 to 2^24 - 1");
    write_settings();
}

void Http2Connection::write_settings() {
    const std::pair<Setting, uint32_t> settings[] = {
        {Setting::MAX_CONCURRENT_STREAMS, limits_.max_streams},
        {Setting::INITIAL_WINDOW_SIZE, limits_.stream_window},
        {Setting::MAX_FRAME_SIZE, limits_.max_frame_bytes},
        {Setting::MAX_HEADER_LIST_SIZE, limits_.max_header_bytes},
    };
    append_head(std::size(settings) * SETTING_BYTES, FrameType::SETTINGS, 0, 0, output_);
    for (const auto& [setting, value] : settings) {
        const auto number = static_cast<uint16_t>(setting);
        output_.push_back(static_cast<char>(number >> 8));
        output_.push_back(static_cast<char>(number));
        append_32(value, output_);
    }
    const auto more = static_cast<uint32_t>(limits_.connection_window - FIRST_WINDOW);
    if (more > 0) write_frame(FrameType::WINDOW_UPDATE, 0, more);
}

// The connection was one of HTTP/1.1, whose request is stream 1, and ends with it.
bool Http2Connection::upgrade(const nb::bytes& settings) {
    if (last_stream_ != 0 || has_settings_) throw nb::value_error("an upgrade comes before all else");
    Http2Error error{};
    const std::string_view payload = view(settings);
    const char* problem = payload.size() % SETTING_BYTES == 0
                              ? apply_settings(reinterpret_cast<const uint8_t*>(payload.data()), payload.size(), error)
                              : "HTTP2-Settings of a broken length";
    if (problem != nullptr) {
        fail(error, problem);
        return false;
    }
    last_stream_ = 1;
    Stream& stream = streams_.open(1);
    stream.state = StreamState::HALF_CLOSED_REMOTE;
    stream.send_window = first_send_window_;
    stream.is_delivered = true;
    return true;
}

void Http2Connection::take_priority(const Frame& frame) {
    if (frame.stream == 0) return fail(Http2Error::PROTOCOL_ERROR, "PRIORITY without a stream");
    spend_control();
    if (frame.length != PRIORITY_BYTES) return fail(Http2Error::FRAME_SIZE_ERROR, "PRIORITY of a broken length");
    const bool is_own = (read_32(frame.payload) & STREAM_BITS) == frame.stream;
    if (is_own) fail(Http2Error::PROTOCOL_ERROR, "a stream depends on itself");
}

void Http2Connection::take_reset(const Frame& frame) {
    if (frame.length != 4) return fail(Http2Error::FRAME_SIZE_ERROR, "RST_STREAM of a broken length");
    if (frame.stream == 0) return fail(Http2Error::PROTOCOL_ERROR, "RST_STREAM without a stream");
    Stream* stream = nullptr;
    if (!is_allowed(StreamFrame::RST_STREAM, frame, stream)) return;
    if (stream->state != StreamState::HALF_CLOSED_LOCAL) spend_reset();
    note_reset(*stream, read_32(frame.payload));
    close_stream(*stream, StreamState::RESET_BY_PEER);
}

void Http2Connection::take_settings(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "SETTINGS with a stream");
    spend_control();
    if (frame.has(flag::ACK)) {
        if (frame.length != 0) return fail(Http2Error::FRAME_SIZE_ERROR, "SETTINGS of a broken length");
        return acknowledge_window();
    }
    if (frame.length % SETTING_BYTES != 0) return fail(Http2Error::FRAME_SIZE_ERROR, "SETTINGS of a broken length");
    for (size_t i = SETTINGS_OF_A_CONTROL; i < frame.length / SETTING_BYTES; i += SETTINGS_OF_A_CONTROL) spend_control();
    Http2Error error{};
    const char* problem = apply_settings(frame.payload, frame.length, error);
    if (problem != nullptr) return fail(error, problem);
    if (has_failed_) return;
    has_settings_ = true;
    append_head(0, FrameType::SETTINGS, flag::ACK, 0, output_);
    spend_unread(FRAME_HEAD_BYTES);
}

// Takes what concerns a server that pushes nothing and uses no table of headers. The windows change once, by the last
// of several values.
const char* Http2Connection::apply_settings(const uint8_t* settings, size_t size, Http2Error& error) {
    int64_t window = first_send_window_;
    error = Http2Error::PROTOCOL_ERROR;
    for (size_t at = 0; at < size; at += SETTING_BYTES) {
        const uint32_t value = read_32(settings + at + 2);
        switch (static_cast<Setting>(read_16(settings + at))) {
            case Setting::ENABLE_PUSH:
                if (value > 1) return "SETTINGS_ENABLE_PUSH is neither 0 nor 1";
                break;
            case Setting::INITIAL_WINDOW_SIZE:
                error = Http2Error::FLOW_CONTROL_ERROR;
                if (value > LARGEST_WINDOW) return "SETTINGS_INITIAL_WINDOW_SIZE is too large";
                error = Http2Error::PROTOCOL_ERROR;
                window = value;
                break;
            case Setting::MAX_FRAME_SIZE:
                if (value < SMALLEST_MAX_FRAME || value > LARGEST_MAX_FRAME) return "SETTINGS_MAX_FRAME_SIZE is out of its range";
                peer_frame_bytes_ = value;
                break;
            default:
                break;
        }
    }
    error = Http2Error::FLOW_CONTROL_ERROR;
    const int64_t change = window - first_send_window_;
    first_send_window_ = window;
    return change_send_windows(change) ? nullptr : "SETTINGS make the window of a stream too large";
}

bool Http2Connection::change_send_windows(int64_t change) {
    if (change == 0) return true;
    bool is_allowed = true;
    streams_.each([&](Stream& stream) {
        stream.send_window += change;
        if (stream.send_window > LARGEST_WINDOW) is_allowed = false;
        queue(stream);
    });
    return is_allowed;
}

// From here on streams have the window that our settings say, those that are open too.
void Http2Connection::acknowledge_window() {
    if (is_acknowledged_) return;
    is_acknowledged_ = true;
    streams_.each([&](Stream& stream) { stream.receive_window += static_cast<int64_t>(limits_.stream_window) - FIRST_WINDOW; });
}

void Http2Connection::take_ping(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "PING with a stream");
    if (frame.length != PING_BYTES) return fail(Http2Error::FRAME_SIZE_ERROR, "PING of a broken length");
    spend_control();
    if (frame.has(flag::ACK) || has_failed_) return;
    append_head(PING_BYTES, FrameType::PING, flag::ACK, 0, output_);
    output_.append(reinterpret_cast<const char*>(frame.payload), PING_BYTES);
    spend_unread(FRAME_HEAD_BYTES + PING_BYTES);
}

void Http2Connection::take_go_away(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "GOAWAY with a stream");
    if (frame.length < 8) return fail(Http2Error::FRAME_SIZE_ERROR, "GOAWAY of a broken length");
    spend_control();
    is_peer_leaving_ = true;
}

void Http2Connection::take_window_update(const Frame& frame) {
    if (frame.length != 4) return fail(Http2Error::FRAME_SIZE_ERROR, "WINDOW_UPDATE of a broken length");
    const uint32_t more = read_32(frame.payload) & STREAM_BITS;
    if (frame.stream == 0) {
        spend_control();
        if (more == 0) return fail(Http2Error::PROTOCOL_ERROR, "WINDOW_UPDATE by nothing");
        send_window_ += more;
        if (send_window_ > LARGEST_WINDOW) fail(Http2Error::FLOW_CONTROL_ERROR, "the window of the connection is too large");
        return;
    }
    Stream* stream = nullptr;
    if (!is_allowed(StreamFrame::WINDOW_UPDATE, frame, stream)) return;
    spend_control();
    if (more == 0) return fail_stream(frame.stream, Http2Error::PROTOCOL_ERROR);
    stream->send_window += more;
    if (stream->send_window > LARGEST_WINDOW) return fail_stream(frame.stream, Http2Error::FLOW_CONTROL_ERROR);
    queue(*stream);
}

// The stream itself where it is open, or null.
StreamState Http2Connection::state_of(uint32_t stream_id, Stream*& stream) {
    stream = nullptr;
    if (stream_id > last_stream_ || stream_id % 2 == 0) return StreamState::IDLE;
    stream = streams_.find(stream_id);
    return stream != nullptr ? stream->state : streams_.closed(stream_id);
}

// An error of the connection: GOAWAY, and nothing more comes in or goes out.
void Http2Connection::fail(Http2Error error, const char* message) {
    if (has_failed_) return;
    has_failed_ = true;
    failure_ = message;
    failure_code_ = error;
    const std::string_view text(message);
    append_head(8 + text.size(), FrameType::GOAWAY, 0, 0, output_);
    append_32(last_stream_, output_);
    append_32(static_cast<uint32_t>(error), output_);
    output_.append(text);
}

// Of a connection that has failed, when nothing works on a stream any more.
void Http2Connection::drop_streams() {
    std::vector<Stream*> open;
    streams_.each([&](Stream& stream) { open.push_back(&stream); });
    for (Stream* stream : open) close_stream(*stream, StreamState::RESET_BY_US);
}

// An error of a stream, open or not: RST_STREAM.
void Http2Connection::fail_stream(uint32_t stream_id, Http2Error error) {
    Stream* stream = streams_.find(stream_id);
    if (stream != nullptr) note_reset(*stream, static_cast<uint32_t>(error));
    cut(stream_id, stream, static_cast<uint32_t>(error));
    spend_reset();
}

// Ends a stream by RST_STREAM.
void Http2Connection::cut(uint32_t stream_id, Stream* stream, uint32_t code) {
    write_frame(FrameType::RST_STREAM, stream_id, code);
    if (stream != nullptr) {
        close_stream(*stream, StreamState::RESET_BY_US);
    } else {
        streams_.remember(stream_id, StreamState::RESET_BY_US);
    }
}

// Python learns that a stream is gone if it knows it. A request that came in this call of `receive` is not delivered at
// all.
void Http2Connection::note_reset(Stream& stream, uint32_t code) {
    if (!stream.is_delivered) return;
    const bool is_of_now = stream.received_in == received_;
    Event& event = events_[event_of(stream, EventKind::RESET)];
    if (is_of_now && event.kind == EventKind::REQUEST) {
        event.kind = EventKind::NONE;
        event.head.begin(0);
        return;
    }
    event.kind = EventKind::RESET;
    event.code = code;
}

// Answers by itself what no handler sees.
void Http2Connection::answer_status(Stream& stream, uint32_t status, bool has_ended) {
    std::string block;
    hpack_field(":status", std::to_string(status), block);
    write_block(stream.id, block, {}, true);
    spend_unread(FRAME_HEAD_BYTES + block.size());
    spend_reset();
    if (has_ended) return close_stream(stream, StreamState::ENDED);
    cut(stream.id, &stream, static_cast<uint32_t>(Http2Error::NO_ERROR));
}

void Http2Connection::close_stream(Stream& stream, StreamState how) {
    give_back_to_connection(static_cast<size_t>(stream.held_bytes));
    unsent_bytes_ -= stream.unsent_bytes;
    if (stream.is_in_turn) turns_.erase(std::find(turns_.begin(), turns_.end(), stream.id));
    streams_.close(stream, how);
}

void Http2Connection::spend_reset() {
    if (resets_left_ == 0) return fail(Http2Error::ENHANCE_YOUR_CALM, "too many streams are reset, refused or broken");
    --resets_left_;
}

void Http2Connection::spend_control() {
    if (controls_left_ == 0) return fail(Http2Error::ENHANCE_YOUR_CALM, "too many frames that ask for nothing");
    --controls_left_;
}

void Http2Connection::spend_unread(size_t bytes) {
    if (!is_receiving_) return;
    unread_bytes_ += bytes;
    if (unread_bytes_ > limits_.max_unread_bytes) fail(Http2Error::ENHANCE_YOUR_CALM, "what is answered is not read");
}

void Http2Connection::reward(uint32_t resets, uint32_t controls) {
    resets_left_ = std::min(limits_.max_resets, resets_left_ + resets);
    controls_left_ = std::min(limits_.max_control_frames, controls_left_ + controls);
}

void Http2Connection::refill_budgets() {
    resets_left_ = limits_.max_resets;
    reward_controls(limits_.max_control_frames);
}

void Http2Connection::consume(uint32_t stream_id, size_t size) {
    Stream* stream = streams_.find(stream_id);
    if (stream != nullptr) give_back(*stream, std::min(size, static_cast<size_t>(stream->held_bytes)));
}

// Windows go up by what is consumed, in steps of half a window.
void Http2Connection::give_back(Stream& stream, size_t bytes) {
    stream.held_bytes -= static_cast<int64_t>(bytes);
    give_back_to_connection(bytes);
    if (stream.has_request_ended()) return;
    stream.owed_bytes += static_cast<int64_t>(bytes);
    if (stream.owed_bytes == 0 || stream.owed_bytes < limits_.stream_window / 2) return;
    write_frame(FrameType::WINDOW_UPDATE, stream.id, static_cast<uint32_t>(stream.owed_bytes));
    stream.receive_window += stream.owed_bytes;
    stream.owed_bytes = 0;
}

void Http2Connection::give_back_to_connection(size_t bytes) {
    owed_bytes_ += static_cast<int64_t>(bytes);
    if (owed_bytes_ < limits_.connection_window / 2 || has_failed_) return;
    write_frame(FrameType::WINDOW_UPDATE, 0, static_cast<uint32_t>(owed_bytes_));
    receive_window_ += owed_bytes_;
    owed_bytes_ = 0;
}

void Http2Connection::reset(uint32_t stream_id, uint32_t code) {
    Stream* stream = streams_.find(stream_id);
    if (stream == nullptr) return;
    if (code == static_cast<uint32_t>(Http2Error::NO_ERROR) && stream->is_answer_whole && stream->unsent_bytes > 0) {
        stream->resets_after = true;
    } else {
        cut(stream_id, stream, code);
    }
}

void Http2Connection::go_away(uint32_t code) {
    if (is_leaving_ || has_failed_) return;
    is_leaving_ = true;
    append_head(8, FrameType::GOAWAY, 0, 0, output_);
    append_32(last_stream_, output_);
    append_32(code, output_);
}

// A frame whose payload is one number.
void Http2Connection::write_frame(FrameType type, uint32_t stream, uint32_t word) {
    if (has_failed_) return;
    append_head(4, type, 0, stream, output_);
    append_32(word, output_);
    spend_unread(FRAME_HEAD_BYTES + 4);
}

}  // namespace paperwasp
