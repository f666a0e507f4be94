// Http2Client: from bytes to frames, and from frames to answers.
#include <algorithm>
#include <charconv>
#include <utility>

#include "http2_client.hpp"

namespace paperwasp {
namespace {

constexpr size_t KEPT_BYTES = 4096;             // of the room for frames that come in parts, of a connection that rests
constexpr uint32_t CONTROLS_OF_AN_ANSWER = 8;   // are given back by one
constexpr uint32_t SETTINGS_OF_A_CONTROL = 16;  // each further 16 settings of a frame cost as much as a frame
constexpr int64_t OWED_BYTES = 1 << 20;         // are given back to the window of the connection at once

// What gives its bytes: bytes, bytearray, memoryview.
class View {
  public:
    explicit View(nb::handle object) {
        if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) nb::raise_python_error();
    }
    ~View() { PyBuffer_Release(&view_); }
    View(const View&) = delete;
    View& operator=(const View&) = delete;
    const uint8_t* data() const { return static_cast<const uint8_t*>(view_.buf); }
    size_t size() const { return static_cast<size_t>(view_.len); }

  private:
    Py_buffer view_;
};

void release_room(std::string& bytes) {
    bytes.clear();
    if (bytes.capacity() > KEPT_BYTES) bytes = std::string();
}

// Digits only, and all of them. -1: it is no such number.
int64_t number_of(const std::string& text) {
    int64_t number = -1;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end && number >= 0 ? number : -1;
}

}  // namespace

nb::list Http2Client::receive(nb::handle data) {
    const View view(data);
    if (!has_failed_) take_bytes(view.data(), view.size());
    release_room(used_);
    if (carried_.empty()) release_room(carried_);
    return std::exchange(events_, nb::list());
}

// A frame that is whole is taken where it is; what has only begun is carried to the next call.
void Http2Client::take_bytes(const uint8_t* data, size_t size) {
    const uint8_t *at = data, *end = data + size;
    while (!carried_.empty() && !has_failed_) {
        const auto* carried = reinterpret_cast<const uint8_t*>(carried_.data());
        const size_t unit = unit_bytes(carried, carried_.size());
        if (has_failed_) return;
        if (carried_.size() == unit) {
            used_.swap(carried_);
            carried_.clear();
            take_frame(Frame(reinterpret_cast<const uint8_t*>(used_.data())));
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
        take_frame(Frame(at));
        at += unit;
    }
}

// How large the frame is that begins here, or how much of it must be there to say so.
size_t Http2Client::unit_bytes(const uint8_t* data, size_t size) {
    // A server of HTTP/1.1 answers the preface with "HTTP/1.1 400 …".
    if (!has_settings_ && size >= 1 && data[0] == 'H') {
        fail(Http2Error::PROTOCOL_ERROR, "the server does not speak HTTP/2");
        return FRAME_HEAD_BYTES;
    }
    if (size < FRAME_HEAD_BYTES) return FRAME_HEAD_BYTES;
    const uint32_t length = read_24(data);
    if (length > SMALLEST_MAX_FRAME) fail(Http2Error::FRAME_SIZE_ERROR, "a frame is larger than SETTINGS_MAX_FRAME_SIZE");
    return FRAME_HEAD_BYTES + length;
}

void Http2Client::take_frame(Frame frame) {
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
        case FrameType::RST_STREAM:
            return take_reset(frame);
        case FrameType::SETTINGS:
            return take_settings(frame);
        case FrameType::PUSH_PROMISE:
            return fail(Http2Error::PROTOCOL_ERROR, "PUSH_PROMISE, which is switched off");
        case FrameType::PING:
            return take_ping(frame);
        case FrameType::GOAWAY:
            return take_go_away(frame);
        case FrameType::WINDOW_UPDATE:
            return take_window_update(frame);
        case FrameType::CONTINUATION:
            return take_continuation(frame);
        case FrameType::PRIORITY:
            break;
    }
    spend_control();
}

void Http2Client::take_data(Frame& frame) {
    if (frame.stream == 0) return fail(Http2Error::PROTOCOL_ERROR, "DATA without a stream");
    const uint32_t whole = frame.length;
    if (!frame.drop_padding()) return fail(Http2Error::PROTOCOL_ERROR, "more padding than frame");
    if (whole > receive_window_) return fail(Http2Error::FLOW_CONTROL_ERROR, "more DATA than the window of the connection");
    receive_window_ -= whole;
    if (is_idle(frame.stream)) return fail(Http2Error::PROTOCOL_ERROR, "DATA for a stream that is not open");
    give_back(whole);
    const auto found = streams_.find(frame.stream);
    if (found == streams_.end()) return spend_control();
    if (whole > found->second.receive_window) return fail_stream(found, Http2Error::FLOW_CONTROL_ERROR);
    found->second.receive_window -= whole;
    take_body(found, frame);
}

void Http2Client::take_body(Streams::iterator found, const Frame& frame) {
    Answer& answer = found->second.answer;
    const bool has_ended = frame.has(flag::END_STREAM);
    if (answer.status == 0) return fail_stream(found, Http2Error::PROTOCOL_ERROR);
    if (frame.length == 0 && !has_ended) spend_control();
    if (has_failed_) return;
    if (answer.length_left >= 0) {
        answer.length_left -= frame.length;
        if (answer.length_left < 0 || (has_ended && answer.length_left > 0)) return fail_stream(found, Http2Error::PROTOCOL_ERROR);
    }
    answer.body.append(reinterpret_cast<const char*>(frame.payload), frame.length);
    buffered_bytes_ += frame.length;
    if (has_ended) return end_answer(found);
    if (buffered_bytes_ > limits_.max_buffered_bytes) return fail(Http2Error::ENHANCE_YOUR_CALM, "too much of answers that do not end");
    // There is no window for the rest: an answer that is too large ends here instead of waiting for ever.
    if (found->second.receive_window == 0) fail_stream(found, Http2Error::ENHANCE_YOUR_CALM);
}

void Http2Client::take_headers(Frame& frame) {
    if (is_idle(frame.stream)) return fail(Http2Error::PROTOCOL_ERROR, "HEADERS for a stream that is not open");
    if (!frame.drop_padding()) return fail(Http2Error::PROTOCOL_ERROR, "more padding than frame");
    block_flags_ = frame.flags;
    if (frame.has(flag::PRIORITY)) {
        if (frame.length < PRIORITY_BYTES) return fail(Http2Error::FRAME_SIZE_ERROR, "HEADERS too short for their priority");
        frame.payload += PRIORITY_BYTES;
        frame.length -= PRIORITY_BYTES;
    }
    block_stream_ = frame.stream;
    continuations_ = 0;
    if (frame.has(flag::END_HEADERS)) return take_block(frame.payload, frame.length);
    block_.assign(reinterpret_cast<const char*>(frame.payload), frame.length);
}

void Http2Client::take_continuation(const Frame& frame) {
    if (block_stream_ == 0) return fail(Http2Error::PROTOCOL_ERROR, "CONTINUATION without HEADERS");
    if (++continuations_ > limits_.max_continuations || block_.size() + frame.length > limits_.max_header_bytes)
        return fail(Http2Error::ENHANCE_YOUR_CALM, "headers that do not end");
    block_.append(reinterpret_cast<const char*>(frame.payload), frame.length);
    if (!frame.has(flag::END_HEADERS)) return;
    take_block(reinterpret_cast<const uint8_t*>(block_.data()), block_.size());
    release_room(block_);
}

// A whole block of headers, which is decoded also where its stream is gone.
void Http2Client::take_block(const uint8_t* block, size_t size) {
    const auto found = streams_.find(block_stream_);
    block_stream_ = 0;
    Answer head;
    bool is_damaged = false;
    const char* problem = read_block(block, size, head, is_damaged);
    if (is_damaged) return fail(Http2Error::COMPRESSION_ERROR, "a block of headers is broken");
    if (found == streams_.end()) return spend_control();
    take_answer_head(found, head, problem, block_flags_ & flag::END_STREAM);
}

// What is wrong with the fields, or null. Only the status and the length are kept.
const char* Http2Client::read_block(const uint8_t* block, size_t size, Answer& answer, bool& is_damaged) {
    const char* problem = nullptr;
    bool has_regular = false;
    size_t bytes = 0;
    decoder_.begin(block, size);
    while (true) {
        const HpackDecoder::Step step = decoder_.next();
        if (step == HpackDecoder::Step::END) return problem;
        if (step == HpackDecoder::Step::DAMAGED) {
            is_damaged = true;
            return problem;
        }
        const HpackEntry& field = decoder_.field();
        bytes += field.size_bytes();
        if (bytes > limits_.max_header_bytes) problem = "headers that are too large";
        if (!field.name.empty() && field.name[0] == ':') {
            if (field.name != ":status" || has_regular || answer.status != 0 || field.value.size() != 3) problem = "a malformed :status";
            const int64_t status = number_of(field.value);
            if (status < 100) problem = "a malformed :status";
            answer.status = static_cast<uint32_t>(std::max<int64_t>(status, 0));
            continue;
        }
        has_regular = true;
        if (field.name != "content-length") continue;
        answer.length_left = number_of(field.value);
        if (answer.length_left < 0) problem = "a malformed content-length";
    }
}

// The head of an answer, an interim one, or trailers.
void Http2Client::take_answer_head(Streams::iterator found, const Answer& head, const char* problem, bool has_ended) {
    Answer& answer = found->second.answer;
    const bool is_trailer = answer.status != 0;
    if (problem != nullptr || (is_trailer ? head.status != 0 || !has_ended : head.status == 0))
        return fail_stream(found, Http2Error::PROTOCOL_ERROR);
    if (!is_trailer && head.status < 200) {
        if (has_ended) return fail_stream(found, Http2Error::PROTOCOL_ERROR);
        return spend_control();
    }
    if (!is_trailer) {
        answer.status = head.status;
        answer.length_left = head.length_left;
    }
    if (!has_ended) return;
    if (answer.length_left > 0) return fail_stream(found, Http2Error::PROTOCOL_ERROR);
    end_answer(found);
}

// An answer is whole. A server may give one before it has read the request, whose rest is then not wanted.
void Http2Client::end_answer(Streams::iterator found) {
    const uint32_t id = found->first;
    const Answer& answer = found->second.answer;
    events_.append(nb::make_tuple("response", id, answer.status, nb::bytes(answer.body.data(), answer.body.size())));
    if (found->second.unsent() > 0) write_frame(FrameType::RST_STREAM, id, static_cast<uint32_t>(Http2Error::CANCEL));
    drop(found);
    controls_left_ = std::min(limits_.max_control_frames, controls_left_ + CONTROLS_OF_AN_ANSWER);
}

void Http2Client::take_reset(const Frame& frame) {
    if (frame.length != 4) return fail(Http2Error::FRAME_SIZE_ERROR, "RST_STREAM of a broken length");
    if (is_idle(frame.stream)) return fail(Http2Error::PROTOCOL_ERROR, "RST_STREAM for a stream that is not open");
    const auto found = streams_.find(frame.stream);
    spend_control();
    if (found == streams_.end() || has_failed_) return;
    const uint32_t code = read_32(frame.payload);
    events_.append(nb::make_tuple("reset", frame.stream, code, code == static_cast<uint32_t>(Http2Error::REFUSED_STREAM)));
    drop(found);
}

void Http2Client::take_settings(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "SETTINGS with a stream");
    spend_control();
    if (frame.has(flag::ACK)) {
        if (frame.length != 0) fail(Http2Error::FRAME_SIZE_ERROR, "SETTINGS of a broken length");
        return;
    }
    if (frame.length % SETTING_BYTES != 0) return fail(Http2Error::FRAME_SIZE_ERROR, "SETTINGS of a broken length");
    for (size_t i = SETTINGS_OF_A_CONTROL; i < frame.length / SETTING_BYTES; i += SETTINGS_OF_A_CONTROL) spend_control();
    Http2Error error{};
    const char* problem = apply_settings(frame.payload, frame.length, error);
    if (problem != nullptr) return fail(error, problem);
    if (has_failed_) return;
    has_settings_ = true;
    append_head(0, FrameType::SETTINGS, flag::ACK, 0, output_);
}

// Null, or what is wrong. The windows change once, by the last of several values.
const char* Http2Client::apply_settings(const uint8_t* settings, size_t size, Http2Error& error) {
    int64_t window = first_send_window_;
    error = Http2Error::PROTOCOL_ERROR;
    for (size_t at = 0; at < size; at += SETTING_BYTES) {
        const uint32_t value = read_32(settings + at + 2);
        switch (static_cast<Setting>(read_16(settings + at))) {
            case Setting::HEADER_TABLE_SIZE: {
                const uint32_t limit = std::min(value, HPACK_TABLE_BYTES);
                if (limit == table_limit_) break;
                table_limit_ = limit;
                has_table_changed_ = true;
                table_bytes_ = 0;
                entries_ = 0;
                for (Head& head : heads_)
                    for (Field& field : head.fields) field.entry = -1;
                break;
            }
            case Setting::ENABLE_PUSH:
                if (value != 0) return "SETTINGS_ENABLE_PUSH of a server is 0";
                break;
            case Setting::MAX_CONCURRENT_STREAMS:
                peer_max_streams_ = value;
                break;
            case Setting::INITIAL_WINDOW_SIZE:
                error = Http2Error::FLOW_CONTROL_ERROR;
                if (value > LARGEST_WINDOW) return "SETTINGS_INITIAL_WINDOW_SIZE is too large";
                error = Http2Error::PROTOCOL_ERROR;
                window = value;
                break;
            case Setting::MAX_FRAME_SIZE:
                if (value < SMALLEST_MAX_FRAME || value > LARGEST_MAX_FRAME) return "SETTINGS_MAX_FRAME_SIZE is out of bounds";
                peer_frame_bytes_ = value;
                break;
            case Setting::MAX_HEADER_LIST_SIZE:
                break;
        }
    }
    const int64_t change = window - first_send_window_;
    first_send_window_ = window;
    error = Http2Error::FLOW_CONTROL_ERROR;
    if (change == 0) return nullptr;
    for (auto& [id, request] : streams_) {
        request.send_window += change;
        if (request.send_window > LARGEST_WINDOW) return "settings make a window too large";
        queue(id, request);
    }
    return nullptr;
}

void Http2Client::take_ping(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "PING with a stream");
    if (frame.length != PING_BYTES) return fail(Http2Error::FRAME_SIZE_ERROR, "PING of a broken length");
    spend_control();
    if (frame.has(flag::ACK) || has_failed_) return;
    append_head(PING_BYTES, FrameType::PING, flag::ACK, 0, output_);
    output_.append(reinterpret_cast<const char*>(frame.payload), PING_BYTES);
}

// The server takes no more requests, and will not work on those above the number that it names.
void Http2Client::take_go_away(const Frame& frame) {
    if (frame.stream != 0) return fail(Http2Error::PROTOCOL_ERROR, "GOAWAY with a stream");
    if (frame.length < 8) return fail(Http2Error::FRAME_SIZE_ERROR, "GOAWAY of a broken length");
    spend_control();
    if (has_failed_) return;
    is_leaving_ = true;
    last_taken_ = std::min(last_taken_, read_32(frame.payload) & STREAM_BITS);
    const uint32_t code = read_32(frame.payload + 4);
    std::vector<uint32_t> refused;
    for (const auto& [id, request] : streams_)
        if (id > last_taken_) refused.push_back(id);
    std::sort(refused.begin(), refused.end());
    for (const uint32_t id : refused) {
        events_.append(nb::make_tuple("reset", id, code, true));
        drop(streams_.find(id));
    }
}

void Http2Client::take_window_update(const Frame& frame) {
    if (frame.length != 4) return fail(Http2Error::FRAME_SIZE_ERROR, "WINDOW_UPDATE of a broken length");
    const int64_t more = read_32(frame.payload) & STREAM_BITS;
    spend_control();
    if (has_failed_) return;
    if (frame.stream == 0) {
        if (more == 0) return fail(Http2Error::PROTOCOL_ERROR, "WINDOW_UPDATE of nothing");
        send_window_ += more;
        if (send_window_ > LARGEST_WINDOW) fail(Http2Error::FLOW_CONTROL_ERROR, "a window is too large");
        return;
    }
    if (is_idle(frame.stream)) return fail(Http2Error::PROTOCOL_ERROR, "WINDOW_UPDATE for a stream that is not open");
    const auto found = streams_.find(frame.stream);
    if (found == streams_.end()) return;
    if (more == 0) return fail_stream(found, Http2Error::PROTOCOL_ERROR);
    found->second.send_window += more;
    if (found->second.send_window > LARGEST_WINDOW) return fail_stream(found, Http2Error::FLOW_CONTROL_ERROR);
    queue(frame.stream, found->second);
}

void Http2Client::give_back(size_t bytes) {
    owed_bytes_ += static_cast<int64_t>(bytes);
    if (owed_bytes_ < OWED_BYTES) return;
    write_frame(FrameType::WINDOW_UPDATE, 0, static_cast<uint32_t>(owed_bytes_));
    receive_window_ += owed_bytes_;
    owed_bytes_ = 0;
}

}  // namespace paperwasp
