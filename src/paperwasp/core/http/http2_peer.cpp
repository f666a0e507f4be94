// Http2Peer: from bytes to frames, and what the protocol alone does with them.
#include "http/http2_peer.hpp"

#include <algorithm>
#include <string_view>

namespace paperwasp {
namespace {

constexpr size_t KEPT_BYTES = 4096;             // of the room for frames that come in parts, of a connection that rests
constexpr uint32_t SETTINGS_OF_A_CONTROL = 16;  // each further 16 settings of a frame cost as much as a frame

void release_room(std::string& bytes) {
    bytes.clear();
    if (bytes.capacity() > KEPT_BYTES) bytes = std::string();
}

}  // namespace

Http2Peer::Http2Peer(const Http2PeerLimits& limits)
    : peer_limits_(limits), receive_window_(limits.connection_window), controls_left_(limits.max_control_frames) {}

// A unit that is whole is taken where it is; what has only begun is carried to the next call.
void Http2Peer::take_bytes(const uint8_t* data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    while (!carried_.empty() && !has_failed_) {
        const auto* carried = reinterpret_cast<const uint8_t*>(carried_.data());
        const size_t unit = unit_bytes(carried, carried_.size());
        if (has_failed_) return;
        if (carried_.size() == unit) {
            used_.swap(carried_);
            carried_.clear();
            take_unit(reinterpret_cast<const uint8_t*>(used_.data()));
            break;
        }
        if (at == end) return;
        const size_t more = std::min(unit - carried_.size(), static_cast<size_t>(end - at));
        carried_.append(reinterpret_cast<const char*>(at), more);
        at += more;
    }
    while (!has_failed_) {
        const size_t left = static_cast<size_t>(end - at);
        const size_t unit = unit_bytes(at, left);
        if (has_failed_) return;
        if (unit > left) {
            carried_.assign(reinterpret_cast<const char*>(at), left);
            return;
        }
        take_unit(at);
        at += unit;
    }
}

void Http2Peer::release_rooms() {
    release_room(used_);
    if (carried_.empty()) release_room(carried_);
}

// How large the unit is that begins here, or how much of it must be there to say so.
size_t Http2Peer::unit_bytes(const uint8_t* data, size_t size) {
    if (size < FRAME_HEAD_BYTES) return FRAME_HEAD_BYTES;
    const uint32_t length = read_24(data);
    if (length > peer_limits_.max_frame_bytes) fail(Http2Error::FRAME_SIZE_ERROR, "a frame is larger than SETTINGS_MAX_FRAME_SIZE");
    return FRAME_HEAD_BYTES + length;
}

void Http2Peer::take_unit(const uint8_t* data) { take_frame(Frame(data)); }

void Http2Peer::take_frame(Frame frame) {
    const auto type = static_cast<FrameType>(frame.type);
    if (!has_settings_ && (type != FrameType::SETTINGS || frame.has(flag::ACK)))
        return fail(Http2Error::PROTOCOL_ERROR, "the first frame is not SETTINGS");
    if (block_stream_ != 0 && (type != FrameType::CONTINUATION || frame.stream != block_stream_))
        return fail(Http2Error::PROTOCOL_ERROR, "a frame stands between HEADERS and CONTINUATION");
    switch (type) {
        case FrameType::DATA:
            return take_data(frame);
        case FrameType::HEADERS:
            return take_headers(frame);
        case FrameType::PRIORITY:
            return take_priority(frame);
        case FrameType::RST_STREAM:
            return take_reset(frame);
        case FrameType::SETTINGS:
            return take_settings(frame);
        case FrameType::PUSH_PROMISE:
            return fail(Http2Error::PROTOCOL_ERROR, "PUSH_PROMISE, which is switched off, or is of a client");
        case FrameType::PING:
            return take_ping(frame);
        case FrameType::GOAWAY:
            return take_go_away(frame);
        case FrameType::WINDOW_UPDATE:
            return take_window_update(frame);
        case FrameType::CONTINUATION:
            return take_continuation(frame);
    }
    spend_control();
}

void Http2Peer::take_headers(Frame& frame) {
    const char* refusal = refusal_of_headers(frame.stream);
    if (refusal != nullptr) return fail(Http2Error::PROTOCOL_ERROR, refusal);
    if (!frame.drop_padding()) return fail(Http2Error::PROTOCOL_ERROR, "more padding than frame");
    block_flags_ = frame.flags;
    if (frame.has(flag::PRIORITY)) {
        if (frame.length < PRIORITY_BYTES) return fail(Http2Error::FRAME_SIZE_ERROR, "HEADERS too short for their priority");
        const bool is_own = (read_32(frame.payload) & STREAM_BITS) == frame.stream;
        if (is_own) return fail(Http2Error::PROTOCOL_ERROR, "a stream depends on itself");
        frame.payload += PRIORITY_BYTES;
        frame.length -= PRIORITY_BYTES;
    }
    block_stream_ = frame.stream;
    continuations_ = 0;
    if (frame.has(flag::END_HEADERS)) return take_block(frame.payload, frame.length);
    block_.assign(reinterpret_cast<const char*>(frame.payload), frame.length);
}

void Http2Peer::take_continuation(const Frame& frame) {
    if (block_stream_ == 0) return fail(Http2Error::PROTOCOL_ERROR, "CONTINUATION without HEADERS");
    if (++continuations_ > peer_limits_.max_continuations || block_.size() + frame.length > peer_limits_.max_header_bytes)
        return fail(Http2Error::ENHANCE_YOUR_CALM, "headers that do not end");
    block_.append(reinterpret_cast<const char*>(frame.payload), frame.length);
    if (!frame.has(flag::END_HEADERS)) return;
    take_block(reinterpret_cast<const uint8_t*>(block_.data()), block_.size());
    release_room(block_);
}

void Http2Peer::take_settings(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "SETTINGS with a stream");
    spend_control();
    if (frame.has(flag::ACK)) {
        if (frame.length != 0) return fail(Http2Error::FRAME_SIZE_ERROR, "SETTINGS of a broken length");
        return settings_acknowledged();
    }
    if (frame.length % SETTING_BYTES != 0) return fail(Http2Error::FRAME_SIZE_ERROR, "SETTINGS of a broken length");
    for (size_t i = SETTINGS_OF_A_CONTROL; i < frame.length / SETTING_BYTES; i += SETTINGS_OF_A_CONTROL) spend_control();
    Http2Error error{};
    const char* problem = apply_settings(frame.payload, frame.length, error);
    if (problem != nullptr) return fail(error, problem);
    if (has_failed_) return;
    has_settings_ = true;
    append_head(0, FrameType::SETTINGS, flag::ACK, 0, output_);
    wrote(FRAME_HEAD_BYTES);
}

// Null, or what is wrong. The windows change once, by the last of several values.
const char* Http2Peer::apply_settings(const uint8_t* settings, size_t size, Http2Error& error) {
    int64_t window = first_send_window_;
    for (size_t at = 0; at < size; at += SETTING_BYTES) {
        const auto setting = static_cast<Setting>(read_16(settings + at));
        const uint32_t value = read_32(settings + at + 2);
        error = setting == Setting::INITIAL_WINDOW_SIZE ? Http2Error::FLOW_CONTROL_ERROR : Http2Error::PROTOCOL_ERROR;
        if (setting == Setting::INITIAL_WINDOW_SIZE) {
            if (value > LARGEST_WINDOW) return "SETTINGS_INITIAL_WINDOW_SIZE is too large";
            window = value;
        } else if (setting == Setting::MAX_FRAME_SIZE) {
            if (value < SMALLEST_MAX_FRAME || value > LARGEST_MAX_FRAME) return "SETTINGS_MAX_FRAME_SIZE is out of its range";
            peer_frame_bytes_ = value;
        } else if (const char* problem = apply_setting(setting, value)) {
            return problem;
        }
    }
    error = Http2Error::FLOW_CONTROL_ERROR;
    const int64_t change = window - first_send_window_;
    first_send_window_ = window;
    return change == 0 || change_send_windows(change) ? nullptr : "SETTINGS make the window of a stream too large";
}

void Http2Peer::take_ping(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "PING with a stream");
    if (frame.length != PING_BYTES) return fail(Http2Error::FRAME_SIZE_ERROR, "PING of a broken length");
    spend_control();
    if (frame.has(flag::ACK) || has_failed_) return;
    append_head(PING_BYTES, FrameType::PING, flag::ACK, 0, output_);
    output_.append(reinterpret_cast<const char*>(frame.payload), PING_BYTES);
    wrote(FRAME_HEAD_BYTES + PING_BYTES);
}

void Http2Peer::take_window_update(const Frame& frame) {
    if (frame.length != 4) return fail(Http2Error::FRAME_SIZE_ERROR, "WINDOW_UPDATE of a broken length");
    const int64_t more = read_32(frame.payload) & STREAM_BITS;
    if (frame.stream != 0) return take_stream_window(frame.stream, more);
    spend_control();
    if (more == 0) return fail(Http2Error::PROTOCOL_ERROR, "WINDOW_UPDATE of nothing");
    send_window_ += more;
    if (send_window_ > LARGEST_WINDOW) fail(Http2Error::FLOW_CONTROL_ERROR, "the window of the connection is too large");
}

void Http2Peer::write_settings(std::initializer_list<std::pair<Setting, uint32_t>> settings) {
    append_head(settings.size() * SETTING_BYTES, FrameType::SETTINGS, 0, 0, output_);
    for (const auto& [setting, value] : settings) {
        const auto number = static_cast<uint16_t>(setting);
        output_.push_back(static_cast<char>(number >> 8));
        output_.push_back(static_cast<char>(number));
        append_32(value, output_);
    }
    const auto more = static_cast<uint32_t>(peer_limits_.connection_window - FIRST_WINDOW);
    if (more > 0) write_frame(FrameType::WINDOW_UPDATE, 0, more);
}

// A frame whose payload is one number.
void Http2Peer::write_frame(FrameType type, uint32_t stream, uint32_t word) {
    if (has_failed_) return;
    append_head(4, type, 0, stream, output_);
    append_32(word, output_);
    wrote(FRAME_HEAD_BYTES + 4);
}

void Http2Peer::give_back_to_connection(size_t bytes) {
    owed_bytes_ += static_cast<int64_t>(bytes);
    if (owed_bytes_ < peer_limits_.window_step || has_failed_) return;
    write_frame(FrameType::WINDOW_UPDATE, 0, static_cast<uint32_t>(owed_bytes_));
    receive_window_ += owed_bytes_;
    owed_bytes_ = 0;
}

// An error of the connection: GOAWAY, and nothing more comes in or goes out.
void Http2Peer::fail(Http2Error error, const char* message) {
    if (has_failed_) return;
    has_failed_ = true;
    failure_ = message;
    failure_code_ = error;
    const std::string_view text(message);
    append_head(8 + text.size(), FrameType::GOAWAY, 0, 0, output_);
    append_32(last_stream(), output_);
    append_32(static_cast<uint32_t>(error), output_);
    output_.append(text);
    failed();
}

void Http2Peer::spend_control() {
    if (controls_left_ == 0) return fail(Http2Error::ENHANCE_YOUR_CALM, "too many frames that ask for nothing");
    --controls_left_;
}

void Http2Peer::reward_controls(uint32_t frames) {
    controls_left_ = std::min<uint64_t>(peer_limits_.max_control_frames, uint64_t{controls_left_} + frames);
}

}  // namespace paperwasp
