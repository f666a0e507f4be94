// Http2Connection: from bytes to frames, from frames to requests and bodies, and from these to events.
#include <algorithm>
#include <cstring>

#include "http2.hpp"

namespace paperwasp {
namespace {

constexpr size_t NO_PIECE = ~size_t{0};
constexpr size_t KEPT_BYTES = 4096;   // of the room for frames that come in parts, of a connection that rests
constexpr size_t KEPT_ELEMENTS = 64;  // and of that for events

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

template <typename T>
void keep_some(std::vector<T>& room) {
    if (room.size() <= KEPT_ELEMENTS) return;
    room.resize(KEPT_ELEMENTS);
    room.shrink_to_fit();
}

struct Words {
    nb::object request = nb::steal(PyUnicode_InternFromString("request"));
    nb::object data = nb::steal(PyUnicode_InternFromString("data"));
    nb::object reset = nb::steal(PyUnicode_InternFromString("reset"));
    nb::object over = nb::steal(PyUnicode_InternFromString("over"));
};

// Never freed: they must not outlive the interpreter.
const Words& words() {
    static const Words* const all = new Words();
    return *all;
}

}  // namespace

nb::list Http2Connection::receive(nb::handle data) {
    const View view(data);
    ++received_;
    event_count_ = 0;
    pieces_.clear();
    const bool had_failed = has_failed_;
    is_receiving_ = true;
    if (output_.size() > limits_.max_unread_bytes + 2 * HTTP2_COPIED_BYTES)
        fail(Http2Error::ENHANCE_YOUR_CALM, "what is answered is not read");
    if (!has_failed_) take_bytes(view.data(), view.size());
    is_receiving_ = false;
    if (has_failed_) drop_streams();
    nb::list events = make_events();
    if (has_failed_ && !had_failed) events.append(nb::make_tuple(words().over, static_cast<uint32_t>(failure_code_), failure_));
    release_room(used_);
    if (carried_.empty()) release_room(carried_);
    return events;
}

// Units are the preface and frames. One that is whole is taken where it is; what has only begun is carried to the next
// call.
void Http2Connection::take_bytes(const uint8_t* data, size_t size) {
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

// How large the unit is that begins here, or how much of it must be there to say so.
size_t Http2Connection::unit_bytes(const uint8_t* data, size_t size) {
    if (!has_preface_) {
        const size_t compared = std::min(size, HTTP2_PREFACE.size());
        if (std::memcmp(data, HTTP2_PREFACE.data(), compared) != 0) fail(Http2Error::PROTOCOL_ERROR, "no HTTP/2 preface");
        return HTTP2_PREFACE.size();
    }
    if (size < FRAME_HEAD_BYTES) return FRAME_HEAD_BYTES;
    const uint32_t length = read_24(data);
    if (length > limits_.max_frame_bytes) fail(Http2Error::FRAME_SIZE_ERROR, "a frame is larger than SETTINGS_MAX_FRAME_SIZE");
    return FRAME_HEAD_BYTES + length;
}

void Http2Connection::take_unit(const uint8_t* data) {
    if (has_preface_) return take_frame(Frame(data));
    has_preface_ = true;
}

void Http2Connection::take_frame(Frame frame) {
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
            return fail(Http2Error::PROTOCOL_ERROR, "PUSH_PROMISE of a client");
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

// Looks up the rule for a frame in this state of its stream, and follows it. True: the frame is to be taken; `stream`
// is null for a new one.
bool Http2Connection::is_allowed(StreamFrame kind, const Frame& frame, Stream*& stream) {
    const Rule rule = stream_rule(kind, state_of(frame.stream, stream));
    switch (rule) {
        case Rule::TAKE:
            return true;
        case Rule::IGNORE:
            spend_control();
            return false;
        case Rule::STREAM_CLOSED:
            fail_stream(frame.stream, Http2Error::STREAM_CLOSED);
            return false;
        case Rule::ENDED_TWICE:
            fail(Http2Error::STREAM_CLOSED, "a frame for a stream that has ended");
            return false;
        case Rule::PROTOCOL:
            fail(Http2Error::PROTOCOL_ERROR, "a frame for a stream that is not open");
            return false;
    }
    return false;
}

void Http2Connection::take_data(Frame& frame) {
    if (frame.stream == 0) return fail(Http2Error::PROTOCOL_ERROR, "DATA without a stream");
    const uint32_t whole = frame.length;
    if (!frame.drop_padding()) return fail(Http2Error::PROTOCOL_ERROR, "more padding than frame");
    if (whole > receive_window_) return fail(Http2Error::FLOW_CONTROL_ERROR, "more DATA than the window of the connection");
    receive_window_ -= whole;
    Stream* stream = nullptr;
    if (!is_allowed(StreamFrame::DATA, frame, stream)) return give_back_to_connection(whole);
    if (whole > stream->receive_window) {
        give_back_to_connection(whole);
        return fail_stream(frame.stream, Http2Error::FLOW_CONTROL_ERROR);
    }
    stream->receive_window -= whole;
    take_body(*stream, frame, whole - frame.length);
}

void Http2Connection::take_body(Stream& stream, const Frame& frame, size_t padding_bytes) {
    const bool has_ended = frame.has(flag::END_STREAM);
    stream.held_bytes += frame.length + padding_bytes;
    if (frame.length == 0 && !has_ended) spend_control();
    if (stream.length_left >= 0) {
        stream.length_left -= frame.length;
        if (stream.length_left < 0 || (has_ended && stream.length_left > 0)) return fail_stream(stream.id, Http2Error::PROTOCOL_ERROR);
    }
    if (padding_bytes > 0) give_back(stream, padding_bytes);
    if (frame.length > 0) add_piece(events_[event_of(stream, EventKind::DATA)], frame.payload, frame.length);
    if (has_ended) end_request(stream);
}

void Http2Connection::take_headers(Frame& frame) {
    if (frame.stream == 0) return fail(Http2Error::PROTOCOL_ERROR, "HEADERS without a stream");
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

void Http2Connection::take_continuation(const Frame& frame) {
    if (block_stream_ == 0) return fail(Http2Error::PROTOCOL_ERROR, "CONTINUATION without HEADERS");
    if (++continuations_ > limits_.max_continuations || block_.size() + frame.length > limits_.max_header_bytes)
        return fail(Http2Error::ENHANCE_YOUR_CALM, "headers that do not end");
    block_.append(reinterpret_cast<const char*>(frame.payload), frame.length);
    if (!frame.has(flag::END_HEADERS)) return;
    take_block(reinterpret_cast<const uint8_t*>(block_.data()), block_.size());
    release_room(block_);
}

// A whole block of headers: of a new stream, of trailers, or of a stream that is closed, whose block must be decoded
// all the same.
void Http2Connection::take_block(const uint8_t* block, size_t size) {
    const uint32_t id = block_stream_;
    const bool has_ended = block_flags_ & flag::END_STREAM;
    Stream* stream = nullptr;
    const StreamState state = state_of(id, stream);
    const Rule rule = stream_rule(StreamFrame::HEADERS, state);
    block_stream_ = 0;
    if (rule == Rule::ENDED_TWICE) return fail(Http2Error::STREAM_CLOSED, "HEADERS for a stream that has ended");
    if (rule == Rule::PROTOCOL || (state == StreamState::IDLE && id % 2 == 0))
        return fail(Http2Error::PROTOCOL_ERROR, "HEADERS for a stream that cannot be opened");
    if (state == StreamState::IDLE) last_stream_ = id;
    if (!read_block(block, size)) return fail(Http2Error::COMPRESSION_ERROR, "a block of headers is broken");
    if (rule == Rule::STREAM_CLOSED) return fail_stream(id, Http2Error::STREAM_CLOSED);
    if (rule == Rule::IGNORE) return spend_control();
    if (stream != nullptr) return take_trailers(*stream, has_ended);
    if (is_leaving_ || streams_.count() >= limits_.max_streams) return fail_stream(id, Http2Error::REFUSED_STREAM);
    open_stream(has_ended);
}

bool Http2Connection::read_block(const uint8_t* block, size_t size) {
    decoder_.begin(block, size);
    head_.begin(limits_.max_header_bytes);
    while (true) {
        switch (decoder_.next()) {
            case HpackDecoder::Step::FIELD:
                head_.add(decoder_.field());
                break;
            case HpackDecoder::Step::END:
                return true;
            case HpackDecoder::Step::DAMAGED:
                return false;
        }
    }
}

// The stream is the last one that the peer has opened.
void Http2Connection::open_stream(bool has_ended) {
    Stream& stream = streams_.open(last_stream_);
    stream.state = StreamState::OPEN;
    stream.receive_window = is_acknowledged_ ? limits_.stream_window : FIRST_WINDOW;
    stream.send_window = first_send_window_;
    stream.length_left = head_.content_length();
    if (head_.is_too_large()) return answer_status(stream, 431, has_ended);
    const char* problem = head_.finish();
    if (problem != nullptr || (has_ended && stream.length_left > 0)) return fail_stream(stream.id, Http2Error::PROTOCOL_ERROR);
    if (head_.is_connect()) return answer_status(stream, 501, has_ended);
    std::swap(events_[event_of(stream, EventKind::REQUEST)].head, head_);
    if (has_ended) end_request(stream);
}

void Http2Connection::take_trailers(Stream& stream, bool has_ended) {
    if (!has_ended || head_.is_too_large() || head_.finish_trailers() != nullptr || stream.length_left > 0)
        return fail_stream(stream.id, Http2Error::PROTOCOL_ERROR);
    end_request(stream);
}

void Http2Connection::end_request(Stream& stream) {
    events_[event_of(stream, EventKind::DATA)].has_ended = true;
    if (stream.state == StreamState::HALF_CLOSED_LOCAL) {
        close_stream(stream, StreamState::ENDED);
    } else {
        stream.state = StreamState::HALF_CLOSED_REMOTE;
    }
}

// The event of this call of `receive` that more of the stream belongs to; one of this kind where there is none.
size_t Http2Connection::event_of(Stream& stream, EventKind kind) {
    if (stream.received_in == received_) return stream.event;
    if (event_count_ == events_.size()) events_.emplace_back();
    Event& event = events_[event_count_];
    event.kind = kind;
    event.stream = stream.id;
    event.first_piece = event.last_piece = NO_PIECE;
    event.body_bytes = 0;
    event.has_ended = false;
    stream.received_in = received_;
    stream.event = event_count_;
    stream.is_delivered = true;
    return event_count_++;
}

void Http2Connection::add_piece(Event& event, const uint8_t* bytes, size_t size) {
    const size_t piece = pieces_.size();
    pieces_.push_back({bytes, size, NO_PIECE});
    if (event.first_piece == NO_PIECE) {
        event.first_piece = piece;
    } else {
        pieces_[event.last_piece].next = piece;
    }
    event.last_piece = piece;
    event.body_bytes += size;
}

nb::list Http2Connection::make_events() {
    nb::list events;
    for (size_t i = 0; i < event_count_; ++i) {
        if (events_[i].kind != EventKind::NONE) events.append(make_event(events_[i]));
    }
    keep_some(events_);
    keep_some(pieces_);
    return events;
}

nb::object Http2Connection::make_event(Event& event) {
    if (event.kind == EventKind::RESET) return nb::make_tuple(words().reset, event.stream, event.code);
    const nb::bool_ has_ended(event.has_ended);
    if (event.kind == EventKind::DATA) return nb::make_tuple(words().data, event.stream, make_body(event), has_ended);
    RequestHead& head = event.head;
    nb::object made = nb::make_tuple(words().request, event.stream, head.method, head.scheme, head.authority, head.path, head.query,
                                     head.headers, make_body(event), has_ended);
    head.begin(0);
    return made;
}

nb::bytes Http2Connection::make_body(const Event& event) {
    nb::bytes body(nullptr, event.body_bytes);
    char* to = PyBytes_AS_STRING(body.ptr());
    for (size_t i = event.first_piece; i != NO_PIECE; i = pieces_[i].next) {
        std::memcpy(to, pieces_[i].bytes, pieces_[i].size);
        to += pieces_[i].size;
    }
    return body;
}

}  // namespace paperwasp
