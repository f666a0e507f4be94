// The streams of an HTTP/2 connection that are open, and how those ended that are not.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "core.hpp"
#include "http/http2_protocol.hpp"

namespace paperwasp {

// Bytes of an answer that wait for windows. Python owns them.
struct Waiting {
    nb::bytes bytes;
    size_t sent;
};

struct Stream {
    uint32_t id = 0;
    StreamState state = StreamState::OPEN;

    // The request.
    int64_t receive_window = 0;  // what the peer may still send
    int64_t owed_bytes = 0;      // consumed, but not given back to that window yet
    int64_t held_bytes = 0;      // given to Python, not consumed, and not given back to the window of the connection
    int64_t length_left = -1;    // of the announced length; -1: none was announced
    uint64_t received_in = 0;    // the call of `receive` that `event` belongs to
    size_t event = 0;            // of this stream, among the events of that call
    bool is_delivered = false;   // Python knows the stream

    // The answer.
    int64_t send_window = 0;
    std::vector<Waiting> waiting;
    size_t waiting_first = 0;  // of `waiting`: those before have gone out
    size_t unsent_bytes = 0;
    bool is_answered = false;      // the head has gone out
    bool is_answer_whole = false;  // no more of it will come
    bool is_in_turn = false;       // it stands in the queue of streams that send
    bool resets_after = false;     // when all is sent, the peer shall send no more

    bool has_request_ended() const { return state == StreamState::HALF_CLOSED_REMOTE; }
};

// Finds streams by their number. Slots are found by linear probing from half the number; streams are used again.
class StreamTable {
  public:
    explicit StreamTable(uint32_t most) {
        size_t remembered = FIRST_SLOTS;
        while (remembered < size_t{most} * 2 && remembered < MOST_REMEMBERED) remembered *= 2;
        closed_.resize(remembered);
        slots_.resize(FIRST_SLOTS);
    }

    uint32_t count() const { return count_; }

    Stream* find(uint32_t id) const {
        for (size_t at = home(id);; at = next(at)) {
            Stream* stream = slots_[at].get();
            if (stream == nullptr || stream->id == id) return stream;
        }
    }

    Stream& open(uint32_t id) {
        if ((count_ + 1) * 2 > slots_.size()) grow();
        std::unique_ptr<Stream> stream;
        if (spare_.empty()) {
            stream = std::make_unique<Stream>();
        } else {
            stream = std::move(spare_.back());
            spare_.pop_back();
        }
        stream->id = id;
        ++count_;
        return *place(std::move(stream));
    }

    // Forgets all of the stream but how it ended.
    void close(Stream& stream, StreamState how) {
        remember(stream.id, how);
        size_t at = home(stream.id);
        while (slots_[at].get() != &stream) at = next(at);
        std::unique_ptr<Stream> gone = std::move(slots_[at]);
        --count_;
        // Those that stand behind because this slot was taken move up.
        for (size_t from = next(at); slots_[from] != nullptr; from = next(from)) {
            const size_t wanted = home(slots_[from]->id);
            const bool stays = at <= from ? at < wanted && wanted <= from : at < wanted || wanted <= from;
            if (stays) continue;
            slots_[at] = std::move(slots_[from]);
            at = from;
        }
        if (spare_.size() < MOST_SPARE) {
            std::vector<Waiting> waiting = std::move(gone->waiting);
            waiting.clear();
            *gone = Stream();
            if (waiting.capacity() <= MOST_SPARE) gone->waiting = std::move(waiting);
            spare_.push_back(std::move(gone));
        }
    }

    void remember(uint32_t id, StreamState how) { closed_[id / 2 & (closed_.size() - 1)] = id / 2 << 2 | code(how); }

    // How a stream ended: FORGOTTEN where that is long ago, or it was never opened.
    StreamState closed(uint32_t id) const {
        const uint32_t found = closed_[id / 2 & (closed_.size() - 1)];
        if ((found & 3) == 0 || (found >> 2) != (id / 2 & 0x3FFFFFFF)) return StreamState::FORGOTTEN;
        return static_cast<StreamState>(static_cast<uint32_t>(StreamState::ENDED) + (found & 3) - 1);
    }

    template <typename F>
    void each(F f) {
        for (auto& stream : slots_)
            if (stream != nullptr) f(*stream);
    }

  private:
    static constexpr size_t FIRST_SLOTS = 16;
    static constexpr size_t MOST_SPARE = 16;
    static constexpr size_t MOST_REMEMBERED = 1024;

    static uint32_t code(StreamState how) { return static_cast<uint32_t>(how) - static_cast<uint32_t>(StreamState::ENDED) + 1; }
    size_t home(uint32_t id) const { return id / 2 & (slots_.size() - 1); }
    size_t next(size_t at) const { return (at + 1) & (slots_.size() - 1); }

    Stream* place(std::unique_ptr<Stream> stream) {
        size_t at = home(stream->id);
        while (slots_[at] != nullptr) at = next(at);
        slots_[at] = std::move(stream);
        return slots_[at].get();
    }

    void grow() {
        std::vector<std::unique_ptr<Stream>> before(slots_.size() * 2);
        before.swap(slots_);
        for (auto& stream : before)
            if (stream != nullptr) place(std::move(stream));
    }

    std::vector<std::unique_ptr<Stream>> slots_;  // at most half of them taken; a power of two
    std::vector<std::unique_ptr<Stream>> spare_;
    std::vector<uint32_t> closed_;  // by half the number: the number and how; the latest of a slot
    uint32_t count_ = 0;
};

}  // namespace paperwasp
