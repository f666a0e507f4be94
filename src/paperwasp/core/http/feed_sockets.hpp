// FeedSockets: a thread that reads the puts and updates of HTTP/1.1 connections, and writes the answers to them.
//
//     thread: a socket is ready → recv → a request of a known form → … → take: the event loop begins all of them together
//     event loop: answer → thread: send → the socket is read again
//
// A request costs an event loop a dozen Python calls to read, and its answer some more to write, all with the interpreter's lock, which
// the writer of the documents wants meanwhile. A connection that feeds therefore moves its socket into the epoll of this thread, which
// never takes that lock. A feed sends the same bytes over and over but for a document's name, the length of the body and the body: all
// else of a request is its form. The first request of a form is read by Python, which makes it known (`learn`).
//
// - Where something else comes than one whole request of a known form, the socket goes back to the event loop, with what was read of it.
// - So it does at the end of the stream and on errors, which are not read here, and with what the system does not take of an answer.
// - While a request waits for its answer, its socket is not read. So of each socket there is one request at most that was not taken, of
//   the bytes of one read.
//
// Threads: all methods are one event loop's, with the interpreter's lock. The thread shares sockets, known forms and what it has read with
// them under a lock of its own, which is held for one recv or send at a time; it touches no object of Python's.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "core.hpp"

namespace paperwasp {

// A whole put or update of HTTP/1.1, with a body of known length and nothing behind it.
struct CutChange {
    size_t name_at, name_size, body_at;
};

// Cuts such a request; `form`: all of its head but name and length. False: it is none.
bool cut_change(std::string_view request, CutChange& cut, std::string& form);

class FeedSockets {
  public:
    // most_bytes: read of a socket at a time; most_forms: that are known. The thread begins with the first socket.
    FeedSockets(size_t most_bytes, size_t most_forms);
    ~FeedSockets();
    FeedSockets(const FeedSockets&) = delete;
    FeedSockets& operator=(const FeedSockets&) = delete;

    // Can be read when there is something to take.
    int fd() const { return told_; }

    // Requests like this one are taken as requests of that form from now on. False: it is none that is cut here.
    bool learn(const nb::bytes& request, nb::object form);

    // Reads a socket from now on.
    void watch(int socket, nb::object line);

    // Reads it no more. (what has come and was not taken, what is left to be sent)
    nb::tuple unwatch(int socket);

    // Has answers written, whose heads begin so, to requests that were taken, and the next ones read.
    void answer(const nb::list& sockets, const nb::bytes& head, const nb::list& bodies);

    // ([(form, lines, names, bodies)] of requests, [(line, what has come, what is left to be sent)] of sockets that go back, bytes that
    // were read, bytes that were sent)
    nb::tuple take();

    // Watches nothing any more, and ends the thread.
    void close();

    size_t size() const { return watched_.size(); }

  private:
    enum class Kind { REQUEST, BACK, UNSENT };

    struct Watched {
        nb::object line;
        uint32_t number;          // of all that were watched: a socket's number comes again
        bool waits = false;       // whether a request waits for its answer
        bool is_put_off = false;  // whether something has come meanwhile, of which the epoll tells no more
        bool is_back = false;     // whether it has left the epoll
    };

    struct Came {
        int socket;
        uint32_t number;
        Kind kind;
        std::string data;
        uint64_t form = 0;
        CutChange cut{};
    };

    struct Answer {
        int socket;
        uint32_t number;
        std::shared_ptr<const std::string> head;
        std::string body;
    };

    // What is taken: requests by form, and the sockets that go back.
    struct Batches {
        std::unordered_map<uint64_t, size_t> places;
        nb::list requests, back;

        void add(const Came& came, const nb::object& line, const nb::object& form);
        void give_back(const Came& came, const nb::object& line);
    };

    void begin();
    void work();
    void read(int socket, uint32_t number, uint32_t events) noexcept;
    void receive(int socket, uint32_t number, uint32_t events);
    void write() noexcept;
    void write(const Answer& answer);
    void tell();
    Watched* find(int socket, uint32_t number);
    void give_back(int socket, Watched& watched);
    std::string send(const Answer& answer);
    bool control(int operation, int socket, uint32_t number, uint32_t events) const;

    const size_t most_forms_;
    std::vector<char> buffer_;  // the thread's, as is the next one
    std::string form_;
    int epoll_ = -1, wake_ = -1, told_ = -1;
    std::atomic<bool> ends_soon_{false};
    mutable std::mutex mutex_;
    std::unordered_map<int, Watched> watched_;
    std::unordered_map<std::string, uint64_t> known_;
    std::vector<Came> came_;
    std::deque<Answer> answers_;
    bool is_told_ = false;
    size_t received_bytes_ = 0, sent_bytes_ = 0;
    uint32_t watched_count_ = 0;
    uint64_t forms_count_ = 0, first_form_ = 0;  // of those that are known
    std::map<uint64_t, nb::object> forms_;       // the event loop's alone
    std::thread thread_;
};

}  // namespace paperwasp
