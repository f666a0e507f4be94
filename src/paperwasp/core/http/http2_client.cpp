// Http2Client: requests, and whose data goes when.
#include "http/http2_client.hpp"

#include <nanobind/stl/pair.h>

#include <algorithm>
#include <iterator>

namespace paperwasp {
namespace {

constexpr uint32_t MOST_HEADS = 64;              // of a connection: each may stand in its table
constexpr size_t KEPT_OUTPUT_BYTES = 1 << 18;    // of the room for output
constexpr size_t COPIED_BYTES = 1 << 18;         // a body goes to the output at once while that has less
constexpr size_t TURN_BYTES = 65536;             // what a stream sends before others do
constexpr uint32_t CONNECTION_WINDOW = 1 << 24;  // what the server may send of all answers before they are read
constexpr int64_t WINDOW_STEP = 1 << 20;         // bytes that are given back to it at once
constexpr uint8_t INDEXED = 0x80;
constexpr int INDEXED_BITS = 7, TABLE_SIZE_BITS = 5;

std::string_view view(const nb::bytes& bytes) { return {bytes.c_str(), bytes.size()}; }

// Names are in lower case already, as HTTP/2 wants them.
bool is_name(std::string_view name) {
    if (!name.empty() && name.front() == ':') name.remove_prefix(1);
    return !name.empty() &&
           std::all_of(name.begin(), name.end(), [](char c) { return c > ' ' && c < 0x7F && c != ':' && !(c >= 'A' && c <= 'Z'); });
}

bool is_value(std::string_view value) {
    return std::none_of(value.begin(), value.end(), [](char c) { return c == '\0' || c == '\r' || c == '\n'; });
}

}  // namespace

Http2Client::Http2Client(const Http2ClientLimits& limits)
    : Http2Peer({SMALLEST_MAX_FRAME, limits.max_header_bytes, limits.max_control_frames, limits.max_continuations, CONNECTION_WINDOW,
                 WINDOW_STEP}),
      limits_(limits) {
    if (limits.max_body_bytes == 0 || limits.max_body_bytes > LARGEST_WINDOW) throw nb::value_error("max_body_bytes is from 1 to 2^31 - 1");
    output_.append(HTTP2_PREFACE);
    write_settings({
        {Setting::ENABLE_PUSH, 0},
        {Setting::INITIAL_WINDOW_SIZE, limits_.max_body_bytes},
        {Setting::MAX_HEADER_LIST_SIZE, limits_.max_header_bytes},
    });
}

uint32_t Http2Client::add_head(const nb::list& fields) {
    if (heads_.size() == MOST_HEADS) throw nb::value_error("a connection has 64 heads at most");
    Head head;
    for (nb::handle each : fields) {
        const auto field = nb::cast<std::pair<nb::bytes, nb::bytes>>(each);
        const std::string_view name = view(field.first), value = view(field.second);
        const bool is_pseudo = !name.empty() && name.front() == ':';
        if (!is_name(name) || !is_value(value) || (is_pseudo && head.pseudo_count < head.fields.size()))
            throw nb::value_error("a name or value that HTTP/2 does not have, or a pseudo-header field behind others");
        head.pseudo_count += is_pseudo;
        head.fields.push_back({std::string(name), std::string(value)});
    }
    heads_.push_back(std::move(head));
    return static_cast<uint32_t>(heads_.size() - 1);
}

uint32_t Http2Client::room() const {
    if (is_leaving() || next_stream_ > STREAM_BITS - 2) return 0;
    const size_t open = streams_.size();
    return open < peer_max_streams_ ? static_cast<uint32_t>(peer_max_streams_ - open) : 0;
}

uint32_t Http2Client::request(uint32_t head, const nb::bytes& path, const nb::bytes& body) {
    if (head >= heads_.size()) throw nb::value_error("there is no such head");
    const std::string_view path_text = view(path);
    if (path_text.empty() || path_text.front() != '/' || !is_value(path_text)) throw nb::value_error("a path begins with a slash");
    if (room() == 0) return 0;
    const uint32_t id = next_stream_;
    next_stream_ += 2;
    block_out_.clear();
    if (has_table_changed_) {
        block_out_.push_back(static_cast<char>(HPACK_TABLE_SIZE_ZERO));
        hpack_number(table_limit_, HPACK_TABLE_SIZE_ZERO, TABLE_SIZE_BITS, block_out_);
        has_table_changed_ = false;
    }
    Head& used = heads_[head];
    for (size_t i = 0; i < used.pseudo_count; ++i) encode_field(used.fields[i]);
    hpack_field(":path", path_text, block_out_);
    for (size_t i = used.pseudo_count; i < used.fields.size(); ++i) encode_field(used.fields[i]);
    if (body.size() > 0) hpack_field("content-length", std::to_string(body.size()), block_out_);
    write_block(id, body.size() == 0);

    Request& request = streams_[id];
    request.body = body;
    request.send_window = first_send_window_;
    request.receive_window = limits_.max_body_bytes;
    unsent_bytes_ += body.size();
    if (turns_.empty() && output_.size() < COPIED_BYTES) send_body(id, request);
    queue(id, request);
    return id;
}

// By its number in the table where it stands there; else it is added while there is room. Nothing is ever pushed out of
// the table, so the numbers of entries are known from how many there are.
void Http2Client::encode_field(Field& field) {
    if (field.entry >= 0) {
        return hpack_number(HPACK_STATIC_ENTRIES + static_cast<uint64_t>(entries_ - field.entry), INDEXED, INDEXED_BITS, block_out_);
    }
    const size_t size = field.name.size() + field.value.size() + HPACK_FIELD_BYTES;
    if (table_bytes_ + size > table_limit_) return hpack_field(field.name, field.value, block_out_);
    if (!hpack_added_field(field.name, field.value, block_out_)) return;
    field.entry = entries_++;
    table_bytes_ += size;
}

// HEADERS, and CONTINUATION where they are larger than a frame of the server may be.
void Http2Client::write_block(uint32_t stream_id, bool ends) {
    const uint8_t end_flag = ends ? flag::END_STREAM : 0;
    const size_t size = block_out_.size();
    for (size_t at = 0; at == 0 || at < size; at += peer_frame_bytes_) {
        const size_t part = std::min<size_t>(peer_frame_bytes_, size - at);
        const uint8_t last = at + part == size ? flag::END_HEADERS : 0;
        append_head(part, at == 0 ? FrameType::HEADERS : FrameType::CONTINUATION, at == 0 ? end_flag | last : last, stream_id, output_);
        output_.append(block_out_, at, part);
    }
}

// What the windows allow, up to one frame.
void Http2Client::send_body(uint32_t stream_id, Request& request) {
    const int64_t window = std::min(send_window_, request.send_window);
    if (window <= 0 || request.unsent() == 0) return;
    const size_t size = std::min({static_cast<size_t>(window), request.unsent(), size_t{peer_frame_bytes_}, TURN_BYTES});
    append_head(size, FrameType::DATA, size == request.unsent() ? flag::END_STREAM : 0, stream_id, output_);
    output_.append(request.body.c_str() + request.sent, size);
    request.sent += size;
    request.send_window -= static_cast<int64_t>(size);
    send_window_ -= static_cast<int64_t>(size);
    unsent_bytes_ -= size;
    if (request.unsent() == 0) request.body = nb::bytes("", 0), request.sent = 0;
}

void Http2Client::queue(uint32_t stream_id, Request& request) {
    if (request.is_in_turn || request.unsent() == 0 || request.send_window <= 0) return;
    request.is_in_turn = true;
    turns_.push_back(stream_id);
}

nb::bytes Http2Client::take_output(size_t most_bytes) {
    while (!turns_.empty() && send_window_ > 0 && output_.size() < most_bytes) {
        const uint32_t id = turns_.front();
        turns_.pop_front();
        const auto found = streams_.find(id);
        if (found == streams_.end()) continue;  // it has ended meanwhile
        found->second.is_in_turn = false;
        send_body(id, found->second);
        queue(id, found->second);
    }
    nb::bytes taken(output_.data(), output_.size());
    output_.clear();
    if (output_.capacity() > KEPT_OUTPUT_BYTES) output_ = std::string();
    return taken;
}

void Http2Client::reset(uint32_t stream_id, uint32_t code) {
    const auto found = streams_.find(stream_id);
    if (found == streams_.end()) return;
    write_frame(FrameType::RST_STREAM, stream_id, code);
    drop(found);
}

// Forgets a stream.
void Http2Client::drop(Streams::iterator found) {
    unsent_bytes_ -= found->second.unsent();
    buffered_bytes_ -= found->second.answer.body.size();
    streams_.erase(found);
}

// An error of one stream: Python learns that it has no answer.
void Http2Client::fail_stream(Streams::iterator found, Http2Error error) {
    const uint32_t id = found->first;
    write_frame(FrameType::RST_STREAM, id, static_cast<uint32_t>(error));
    drop(found);
    events_.append(nb::make_tuple("reset", id, static_cast<uint32_t>(error), false));
    spend_control();
}

void Http2Client::failed() {
    turns_.clear();
    streams_.clear();
    unsent_bytes_ = buffered_bytes_ = 0;
    events_.append(nb::make_tuple("over", static_cast<uint32_t>(failure_code_), failure_));
}

}  // namespace paperwasp
