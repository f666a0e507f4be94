// Http2Connection: answers, and whose data goes when.
//
// A small answer is copied to the output at once where the windows allow it. Other data waits as the objects that
// Python gave, in its stream; streams that have data and a window stand in a queue, and each sends one frame in its
// turn. What goes is copied once, into the bytes that the transport gets.
#include <algorithm>
#include <charconv>
#include <cstring>
#include <iterator>

#include "http/http2.hpp"

namespace paperwasp {
namespace {

constexpr size_t SMALL_BYTES = 16384;        // an answer that is copied to the output at once
constexpr size_t TURN_BYTES = 65536;         // what a stream sends before others do, if the peer takes frames of that size
constexpr size_t KEPT_OUTPUT_BYTES = 65536;  // of the room for output
constexpr size_t MOST_PASSED = 64;           // entries of a stream's data that have gone out and still stand there

// What is given back of max_control_frames by an answer that is sent, and by a frame of data, since the peer says for
// two windows that it has read it. A frame that is small because of these windows gives nothing back.
constexpr uint32_t CONTROLS_OF_AN_ANSWER = 8;
constexpr uint32_t CONTROLS_OF_A_FRAME = 2;
constexpr size_t LARGE_FRAME_BYTES = 1024;

// :content-length, number 28 of the static table, as a literal that is not added.
constexpr char CONTENT_LENGTH[] = {0x0F, 0x0D};

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

}  // namespace

// The stream, or null where it is gone, or never was.
Stream* Http2Connection::stream_to_answer(uint32_t stream_id) {
    Stream* stream = streams_.find(stream_id);
    if (stream != nullptr && stream->is_answered) throw nb::value_error("the stream is answered already");
    return stream;
}

bool Http2Connection::inform(uint32_t stream_id, const nb::bytes& block) {
    if (stream_to_answer(stream_id) == nullptr) return false;
    write_block(stream_id, view(block), {}, false);
    return true;
}

bool Http2Connection::respond(uint32_t stream_id, const nb::bytes& block, const nb::bytes& body, bool ends) {
    Stream* stream = stream_to_answer(stream_id);
    if (stream == nullptr) return false;
    stream->is_answered = true;
    if (stream->has_request_ended()) give_back(*stream, static_cast<size_t>(stream->held_bytes));
    const bool is_empty = body.size() == 0;
    char length[32] = {CONTENT_LENGTH[0], CONTENT_LENGTH[1]};
    size_t length_size = 0;
    if (ends && !is_empty) {
        const char* end = std::to_chars(length + 3, std::end(length), body.size()).ptr;
        length_size = static_cast<size_t>(end - length);
        length[2] = static_cast<char>(length_size - 3);
    }
    write_block(stream_id, view(block), {length, length_size}, ends && is_empty);
    if (!is_empty) {
        send_or_wait(*stream, body, ends);
    } else if (ends) {
        stream->is_answer_whole = true;
        end_answer(*stream);
    }
    return true;
}

bool Http2Connection::send_data(uint32_t stream_id, const nb::bytes& data, bool ends) {
    Stream* stream = streams_.find(stream_id);
    if (stream == nullptr) return false;
    if (!stream->is_answered || stream->is_answer_whole) throw nb::value_error("data before the head of an answer, or behind its end");
    send_or_wait(*stream, data, ends);
    return true;
}

// HEADERS, and CONTINUATION where they are larger than a frame of the peer may be. `more` belongs to the block.
void Http2Connection::write_block(uint32_t stream_id, std::string_view block, std::string_view more, bool ends) {
    const size_t first = has_sent_headers_ ? 0 : 1;
    const size_t size = first + block.size() + more.size();
    const size_t begin = output_.size();
    const uint8_t end_flag = ends ? flag::END_STREAM : 0;
    const bool is_one = size <= peer_frame_bytes_;
    append_head(is_one ? size : peer_frame_bytes_, FrameType::HEADERS, is_one ? end_flag | flag::END_HEADERS : end_flag, stream_id,
                output_);
    if (first == 1) output_.push_back(static_cast<char>(HPACK_TABLE_SIZE_ZERO));
    has_sent_headers_ = true;
    output_.append(block).append(more);
    if (is_one) return;
    // The first frame ends within the block: heads of further frames are put where it does.
    const std::string rest = output_.substr(begin + FRAME_HEAD_BYTES + peer_frame_bytes_);
    output_.resize(output_.size() - rest.size());
    for (size_t at = 0; at < rest.size(); at += peer_frame_bytes_) {
        const size_t part = std::min<size_t>(peer_frame_bytes_, rest.size() - at);
        append_head(part, FrameType::CONTINUATION, at + part == rest.size() ? flag::END_HEADERS : 0, stream_id, output_);
        output_.append(rest, at, part);
    }
}

void Http2Connection::send_or_wait(Stream& stream, const nb::bytes& data, bool ends) {
    const size_t size = data.size();
    stream.is_answer_whole = ends;
    if (size == 0 && (!ends || stream.unsent_bytes > 0)) return;
    const bool may_go = output_.size() < HTTP2_COPIED_BYTES && size <= SMALL_BYTES && size <= peer_frame_bytes_ &&
                        static_cast<int64_t>(size) <= std::min(send_window_, stream.send_window);
    if (stream.unsent_bytes == 0 && (size == 0 || (may_go && turns_.empty()))) {
        append_head(size, FrameType::DATA, ends ? flag::END_STREAM : 0, stream.id, output_);
        output_.append(data.c_str(), size);
        send_window_ -= static_cast<int64_t>(size);
        stream.send_window -= static_cast<int64_t>(size);
        if (size > 0) reward(0, CONTROLS_OF_A_FRAME);
        if (ends) end_answer(stream);
        return;
    }
    stream.waiting.push_back({data, 0});
    stream.unsent_bytes += size;
    unsent_bytes_ += size;
    queue(stream);
}

void Http2Connection::queue(Stream& stream) {
    if (stream.is_in_turn || stream.unsent_bytes == 0 || stream.send_window <= 0) return;
    stream.is_in_turn = true;
    turns_.push_back(stream.id);
}

// All of an answer has gone out, or stands in the plan.
void Http2Connection::end_answer(Stream& stream) {
    reward(1, CONTROLS_OF_AN_ANSWER);
    if (stream.has_request_ended()) {
        close_stream(stream, StreamState::ENDED);
    } else if (stream.resets_after) {
        cut(stream.id, &stream, static_cast<uint32_t>(Http2Error::NO_ERROR));
    } else {
        stream.state = StreamState::HALF_CLOSED_LOCAL;
    }
}

nb::bytes Http2Connection::take_output(size_t most_bytes) {
    unread_bytes_ = 0;
    ahead_.swap(output_);
    // From here on the output is what goes behind the data.
    size_t planned = 0;
    while (!turns_.empty() && send_window_ > 0 && planned < most_bytes) {
        Stream& stream = *streams_.find(turns_.front());
        turns_.pop_front();
        stream.is_in_turn = false;
        if (stream.send_window <= 0) continue;  // settings made it smaller; the stream comes back with its window
        planned += plan_turn(stream, most_bytes - planned);
        if (stream.unsent_bytes > 0) {
            queue(stream);
        } else if (stream.is_answer_whole) {
            end_answer(stream);
        } else {
            drained_.push_back(stream.id);
        }
    }
    nb::bytes taken(nullptr, ahead_.size() + planned + plan_.size() * FRAME_HEAD_BYTES + output_.size());
    write_plan(reinterpret_cast<uint8_t*>(PyBytes_AS_STRING(taken.ptr())));
    if (ahead_.capacity() > KEPT_OUTPUT_BYTES) ahead_ = std::string();
    ahead_.clear();
    output_.clear();
    return taken;
}

// The next frame of a stream. Its bytes stay where they are until they are copied; `sent_` keeps objects of which
// nothing is left.
size_t Http2Connection::plan_turn(Stream& stream, size_t most_bytes) {
    const auto window = static_cast<size_t>(std::min(send_window_, stream.send_window));
    const size_t size = std::min({window, stream.unsent_bytes, most_bytes, size_t{peer_frame_bytes_}, TURN_BYTES});
    const size_t first_part = parts_.size();
    for (size_t left = size; left > 0;) {
        Waiting& next = stream.waiting[stream.waiting_first];
        const size_t part = std::min(left, next.bytes.size() - next.sent);
        parts_.push_back({next.bytes.c_str() + next.sent, part});
        left -= part;
        next.sent += part;
        if (next.sent < next.bytes.size()) break;
        sent_.push_back(std::move(next.bytes));
        ++stream.waiting_first;
    }
    if (stream.waiting_first == stream.waiting.size() || stream.waiting_first >= MOST_PASSED) {
        stream.waiting.erase(stream.waiting.begin(), stream.waiting.begin() + static_cast<ptrdiff_t>(stream.waiting_first));
        stream.waiting_first = 0;
    }
    stream.unsent_bytes -= size;
    stream.send_window -= static_cast<int64_t>(size);
    unsent_bytes_ -= size;
    send_window_ -= static_cast<int64_t>(size);
    plan_.push_back(
        {stream.id, static_cast<uint32_t>(size), stream.unsent_bytes == 0 && stream.is_answer_whole, parts_.size() - first_part});
    if (size >= LARGE_FRAME_BYTES || stream.unsent_bytes == 0) reward(0, CONTROLS_OF_A_FRAME);
    return size;
}

void Http2Connection::write_plan(uint8_t* to) {
    const auto put = [&to](const char* bytes, size_t size) {
        std::memcpy(to, bytes, size);
        to += size;
    };
    put(ahead_.data(), ahead_.size());
    size_t part = 0;
    for (const Turn& turn : plan_) {
        write_head(turn.size, FrameType::DATA, turn.ends ? flag::END_STREAM : 0, turn.stream, to);
        to += FRAME_HEAD_BYTES;
        for (const size_t end = part + turn.parts; part < end; ++part) put(parts_[part].bytes, parts_[part].size);
    }
    put(output_.data(), output_.size());
    plan_.clear();
    parts_.clear();
    sent_.clear();
}

nb::list Http2Connection::take_drained() {
    nb::list drained;
    for (const uint32_t stream_id : drained_) drained.append(stream_id);
    drained_.clear();
    return drained;
}

size_t Http2Connection::unsent_bytes(uint32_t stream_id) const {
    if (stream_id == 0) return unsent_bytes_;
    const Stream* stream = streams_.find(stream_id);
    return stream == nullptr ? 0 : stream->unsent_bytes;
}

}  // namespace paperwasp
