// Http2Connection: from bytes to frames, from frames to requests and bodies, and from these to events.
#include <algorithm>
#include <cstring>

#include "http/http2.hpp"

namespace paperwasp {
namespace {

constexpr size_t NO_PIECE = ~size_t{0};
constexpr size_t KEPT_ELEMENTS = 64;  // of the room for events, of a connection that rests

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
    const BytesView view(data);
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
    release_rooms();
    return events;
}

// The first unit is the preface.
size_t Http2Connection::unit_bytes(const uint8_t* data, size_t size) {
    if (!has_preface_) {
        const size_t compared = std::min(size, HTTP2_PREFACE.size());
        if (std::memcmp(data, HTTP2_PREFACE.data(), compared) != 0) fail(Http2Error::PROTOCOL_ERROR, "no HTTP/2 preface");
        return HTTP2_PREFACE.size();
    }
    return Http2Peer::unit_bytes(data, size);
}

void Http2Connection::take_unit(const uint8_t* data) {
    if (has_preface_) return take_frame(Frame(data));
    has_preface_ = true;
}

// Looks up the rule for a frame in this state of its stream, and follows it. True: the frame is to be taken; `stream`
// is null for a new one.
bool Http2Connection::is_allowed(StreamFrame kind, uint32_t stream_id, Stream*& stream) {
    const Rule rule = stream_rule(kind, state_of(stream_id, stream));
    switch (rule) {
        case Rule::TAKE:
            return true;
        case Rule::IGNORE:
            spend_control();
            return false;
        case Rule::STREAM_CLOSED:
            fail_stream(stream_id, Http2Error::STREAM_CLOSED);
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
    if (!is_allowed(StreamFrame::DATA, frame.stream, stream)) return give_back_to_connection(whole);
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

const char* Http2Connection::refusal_of_headers(uint32_t stream_id) const { return stream_id == 0 ? "HEADERS without a stream" : nullptr; }

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
        Event& event = events_[i];
        if (event.kind == EventKind::REQUEST && event.has_ended && event.body_bytes > 0 && batch_.is_for(event.head)) {
            batch_.add(event.stream, event.head, make_body(event), events);
            event.head.begin(0);
        } else if (event.kind != EventKind::NONE) {
            batch_.end(events);
            events.append(make_event(event));
        }
    }
    batch_.end(events);
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
                                     head.whole_headers(), make_body(event), has_ended);
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
