// Http2Client: from bytes to frames, and from frames to answers.
#include <algorithm>
#include <charconv>
#include <utility>

#include "http/http2_client.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t CONTROLS_OF_AN_ANSWER = 8;  // are given back by one

// Digits only, and all of them. -1: it is no such number.
int64_t number_of(const std::string& text) {
    int64_t number = -1;
    const char* end = text.data() + text.size();
    const auto read = std::from_chars(text.data(), end, number);
    return read.ec == std::errc() && read.ptr == end && number >= 0 ? number : -1;
}

}  // namespace

nb::list Http2Client::receive(nb::handle data) {
    const BytesView view(data);
    if (!has_failed_) take_bytes(view.data(), view.size());
    release_rooms();
    return std::exchange(events_, nb::list());
}

// A server of HTTP/1.1 answers the preface with "HTTP/1.1 400 …".
size_t Http2Client::unit_bytes(const uint8_t* data, size_t size) {
    if (!has_settings_ && size >= 1 && data[0] == 'H') {
        fail(Http2Error::PROTOCOL_ERROR, "the server does not speak HTTP/2");
        return FRAME_HEAD_BYTES;
    }
    return Http2Peer::unit_bytes(data, size);
}

void Http2Client::take_data(Frame& frame) {
    if (frame.stream == 0) return fail(Http2Error::PROTOCOL_ERROR, "DATA without a stream");
    const uint32_t whole = frame.length;
    if (!frame.drop_padding()) return fail(Http2Error::PROTOCOL_ERROR, "more padding than frame");
    if (whole > receive_window_) return fail(Http2Error::FLOW_CONTROL_ERROR, "more DATA than the window of the connection");
    receive_window_ -= whole;
    if (is_idle(frame.stream)) return fail(Http2Error::PROTOCOL_ERROR, "DATA for a stream that is not open");
    give_back_to_connection(whole);
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

const char* Http2Client::refusal_of_headers(uint32_t stream_id) const {
    return is_idle(stream_id) ? "HEADERS for a stream that is not open" : nullptr;
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
    reward_controls(CONTROLS_OF_AN_ANSWER);
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

const char* Http2Client::apply_setting(Setting setting, uint32_t value) {
    if (setting == Setting::ENABLE_PUSH && value != 0) return "SETTINGS_ENABLE_PUSH of a server is 0";
    if (setting == Setting::MAX_CONCURRENT_STREAMS) peer_max_streams_ = value;
    const uint32_t limit = std::min(value, HPACK_TABLE_BYTES);
    if (setting != Setting::HEADER_TABLE_SIZE || limit == table_limit_) return nullptr;
    table_limit_ = limit;
    has_table_changed_ = true;
    table_bytes_ = 0;
    entries_ = 0;
    for (Head& head : heads_)
        for (Field& field : head.fields) field.entry = -1;
    return nullptr;
}

bool Http2Client::change_send_windows(int64_t change) {
    for (auto& [id, request] : streams_) {
        request.send_window += change;
        if (request.send_window > LARGEST_WINDOW) return false;
        queue(id, request);
    }
    return true;
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

void Http2Client::take_stream_window(uint32_t stream_id, int64_t more) {
    spend_control();
    if (has_failed_) return;
    if (is_idle(stream_id)) return fail(Http2Error::PROTOCOL_ERROR, "WINDOW_UPDATE for a stream that is not open");
    const auto found = streams_.find(stream_id);
    if (found == streams_.end()) return;
    if (more == 0) return fail_stream(found, Http2Error::PROTOCOL_ERROR);
    found->second.send_window += more;
    if (found->second.send_window > LARGEST_WINDOW) return fail_stream(found, Http2Error::FLOW_CONTROL_ERROR);
    queue(stream_id, found->second);
}

}  // namespace paperwasp
