// Http2Connection: what the protocol itself answers: settings, windows, pings, resets and errors.
#include "http/http2.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace paperwasp {
namespace {

constexpr uint32_t MOST_STREAMS = 1 << 20;

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

Http2Connection::Http2Connection(const Http2Limits& limits, std::string batch_start)
    : Http2Peer({limits.max_frame_bytes, limits.max_header_bytes, limits.max_control_frames, limits.max_continuations,
                 limits.connection_window, limits.connection_window / 2}),
      limits_(limits),
      streams_(limits.max_streams),
      batch_(std::move(batch_start)),
      resets_left_(limits.max_resets) {
    if (limits.max_streams == 0 || limits.max_streams > MOST_STREAMS) throw nb::value_error("max_streams is from 1 to 2^20");
    if (limits.stream_window > LARGEST_WINDOW) throw nb::value_error("stream_window is less than 2^31");
    if (limits.connection_window < FIRST_WINDOW || limits.connection_window > LARGEST_WINDOW)
        throw nb::value_error("connection_window is from 65,535 to 2^31 - 1");
    if (limits.max_frame_bytes < SMALLEST_MAX_FRAME || limits.max_frame_bytes > LARGEST_MAX_FRAME)
        throw nb::value_error("max_frame_bytes is from 2^14 to 2^24 - 1");
    write_settings({
        {Setting::MAX_CONCURRENT_STREAMS, limits_.max_streams},
        {Setting::INITIAL_WINDOW_SIZE, limits_.stream_window},
        {Setting::MAX_FRAME_SIZE, limits_.max_frame_bytes},
        {Setting::MAX_HEADER_LIST_SIZE, limits_.max_header_bytes},
    });
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
    if (!is_allowed(StreamFrame::RST_STREAM, frame.stream, stream)) return;
    if (stream->state != StreamState::HALF_CLOSED_LOCAL) spend_reset();
    note_reset(*stream, read_32(frame.payload));
    close_stream(*stream, StreamState::RESET_BY_PEER);
}

// What concerns a server that pushes nothing and uses no table of headers.
const char* Http2Connection::apply_setting(Setting setting, uint32_t value) {
    return setting == Setting::ENABLE_PUSH && value > 1 ? "SETTINGS_ENABLE_PUSH is neither 0 nor 1" : nullptr;
}

bool Http2Connection::change_send_windows(int64_t change) {
    bool is_allowed = true;
    streams_.each([&](Stream& stream) {
        stream.send_window += change;
        if (stream.send_window > LARGEST_WINDOW) is_allowed = false;
        queue(stream);
    });
    return is_allowed;
}

// From here on streams have the window that our settings say, those that are open too.
void Http2Connection::settings_acknowledged() {
    if (is_acknowledged_) return;
    is_acknowledged_ = true;
    streams_.each([&](Stream& stream) { stream.receive_window += static_cast<int64_t>(limits_.stream_window) - FIRST_WINDOW; });
}

void Http2Connection::take_go_away(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "GOAWAY with a stream");
    if (frame.length < 8) return fail(Http2Error::FRAME_SIZE_ERROR, "GOAWAY of a broken length");
    spend_control();
    is_peer_leaving_ = true;
}

void Http2Connection::take_stream_window(uint32_t stream_id, int64_t more) {
    Stream* stream = nullptr;
    if (!is_allowed(StreamFrame::WINDOW_UPDATE, stream_id, stream)) return;
    spend_control();
    if (more == 0) return fail_stream(stream_id, Http2Error::PROTOCOL_ERROR);
    stream->send_window += more;
    if (stream->send_window > LARGEST_WINDOW) return fail_stream(stream_id, Http2Error::FLOW_CONTROL_ERROR);
    queue(*stream);
}

// The stream itself where it is open, or null.
StreamState Http2Connection::state_of(uint32_t stream_id, Stream*& stream) {
    stream = nullptr;
    if (stream_id > last_stream_ || stream_id % 2 == 0) return StreamState::IDLE;
    stream = streams_.find(stream_id);
    return stream != nullptr ? stream->state : streams_.closed(stream_id);
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

void Http2Connection::spend_unread(size_t bytes) {
    if (!is_receiving_) return;
    unread_bytes_ += bytes;
    if (unread_bytes_ > limits_.max_unread_bytes) fail(Http2Error::ENHANCE_YOUR_CALM, "what is answered is not read");
}

void Http2Connection::reward(uint32_t resets, uint32_t controls) {
    resets_left_ = std::min(limits_.max_resets, resets_left_ + resets);
    reward_controls(controls);
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

}  // namespace paperwasp
