// The words of HTTP/2 (RFC 9113): frames, flags, settings, errors, and the states of a stream with what each allows.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace paperwasp {

constexpr std::string_view HTTP2_PREFACE{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 24};

enum class FrameType : uint8_t {
    DATA,
    HEADERS,
    PRIORITY,
    RST_STREAM,
    SETTINGS,
    PUSH_PROMISE,
    PING,
    GOAWAY,
    WINDOW_UPDATE,
    CONTINUATION,
};

namespace flag {
constexpr uint8_t ACK = 0x1, END_STREAM = 0x1, END_HEADERS = 0x4, PADDED = 0x8, PRIORITY = 0x20;
}

enum class Http2Error : uint32_t {
    NO_ERROR,
    PROTOCOL_ERROR,
    INTERNAL_ERROR,
    FLOW_CONTROL_ERROR,
    SETTINGS_TIMEOUT,
    STREAM_CLOSED,
    FRAME_SIZE_ERROR,
    REFUSED_STREAM,
    CANCEL,
    COMPRESSION_ERROR,
    CONNECT_ERROR,
    ENHANCE_YOUR_CALM,
    INADEQUATE_SECURITY,
    HTTP_1_1_REQUIRED,
};

enum class Setting : uint16_t {
    HEADER_TABLE_SIZE = 1,
    ENABLE_PUSH,
    MAX_CONCURRENT_STREAMS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    MAX_HEADER_LIST_SIZE,
};

constexpr size_t FRAME_HEAD_BYTES = 9;
constexpr size_t SETTING_BYTES = 6;
constexpr size_t PRIORITY_BYTES = 5;
constexpr size_t PING_BYTES = 8;
constexpr uint32_t SMALLEST_MAX_FRAME = 1 << 14, LARGEST_MAX_FRAME = (1 << 24) - 1;
constexpr int64_t LARGEST_WINDOW = 0x7FFFFFFF;
constexpr int64_t FIRST_WINDOW = 65535;  // of a connection, and of a stream until SETTINGS say otherwise
constexpr uint32_t STREAM_BITS = 0x7FFFFFFF;

// The states of a stream as the server sees it. Those from ENDED on are states of a stream that is not kept any more.
enum class StreamState : uint8_t {
    IDLE,
    OPEN,
    HALF_CLOSED_REMOTE,  // the request has ended
    HALF_CLOSED_LOCAL,   // the answer has ended, the request has not
    ENDED,               // both have
    RESET_BY_PEER,
    RESET_BY_US,
    FORGOTTEN,  // closed long ago, nobody knows how
};

// What becomes of a frame.
enum class Rule : uint8_t {
    TAKE,
    IGNORE,         // it was under way when the stream ended
    STREAM_CLOSED,  // an error of the stream
    ENDED_TWICE,    // an error of the connection, STREAM_CLOSED
    PROTOCOL,       // an error of the connection, PROTOCOL_ERROR
};

enum class StreamFrame : uint8_t { DATA, HEADERS, RST_STREAM, WINDOW_UPDATE };

// RFC 9113, section 5.1. A stream that we have reset may go on for a while: the peer does not know yet. A new stream is
// HEADERS in the state IDLE; to open one that is closed is the error that fits how it ended.
constexpr Rule stream_rule(StreamFrame frame, StreamState state) {
    constexpr Rule TAKE = Rule::TAKE, IGNORE = Rule::IGNORE, CLOSED = Rule::STREAM_CLOSED, TWICE = Rule::ENDED_TWICE,
                   PROTO = Rule::PROTOCOL;
    constexpr Rule RULES[][4] = {
        // DATA, HEADERS, RST_STREAM, WINDOW_UPDATE
        {PROTO, TAKE, PROTO, PROTO},       // IDLE
        {TAKE, TAKE, TAKE, TAKE},          // OPEN
        {CLOSED, CLOSED, TAKE, TAKE},      // HALF_CLOSED_REMOTE
        {TAKE, TAKE, TAKE, TAKE},          // HALF_CLOSED_LOCAL
        {TWICE, TWICE, IGNORE, IGNORE},    // ENDED
        {CLOSED, TWICE, IGNORE, IGNORE},   // RESET_BY_PEER
        {IGNORE, IGNORE, IGNORE, IGNORE},  // RESET_BY_US
        {CLOSED, PROTO, IGNORE, IGNORE},   // FORGOTTEN
    };
    return RULES[static_cast<size_t>(state)][static_cast<size_t>(frame)];
}

inline uint32_t read_16(const uint8_t* from) { return static_cast<uint32_t>(from[0]) << 8 | from[1]; }
inline uint32_t read_24(const uint8_t* from) { return static_cast<uint32_t>(from[0]) << 16 | read_16(from + 1); }
inline uint32_t read_32(const uint8_t* from) { return read_16(from) << 16 | read_16(from + 2); }

// A frame as it came: its payload is where the bytes of the connection are.
struct Frame {
    uint8_t type;
    uint8_t flags;
    uint32_t stream;
    const uint8_t* payload;
    uint32_t length;

    explicit Frame(const uint8_t* head)
        : type(head[3]), flags(head[4]), stream(read_32(head + 5) & STREAM_BITS), payload(head + FRAME_HEAD_BYTES), length(read_24(head)) {}

    bool has(uint8_t flag) const { return flags & flag; }

    // Takes the padding away. False: there is more of it than there is room for.
    bool drop_padding() {
        if (!has(flag::PADDED)) return true;
        if (length == 0 || payload[0] >= length) return false;
        length -= 1u + payload[0];
        ++payload;
        return true;
    }
};

inline void write_32(uint32_t value, uint8_t* to) {
    for (int i = 0; i < 4; ++i) to[i] = static_cast<uint8_t>(value >> (24 - 8 * i));
}

inline void write_head(size_t length, FrameType type, uint8_t flags, uint32_t stream, uint8_t* to) {
    write_32(static_cast<uint32_t>(length << 8) | static_cast<uint8_t>(type), to);
    to[4] = flags;
    write_32(stream, to + 5);
}

inline void append_32(uint32_t value, std::string& to) {
    uint8_t bytes[4];
    write_32(value, bytes);
    to.append(reinterpret_cast<const char*>(bytes), sizeof bytes);
}

inline void append_head(size_t length, FrameType type, uint8_t flags, uint32_t stream, std::string& to) {
    uint8_t head[FRAME_HEAD_BYTES];
    write_head(length, type, flags, stream, head);
    to.append(reinterpret_cast<const char*>(head), sizeof head);
}

}  // namespace paperwasp
