// AnswerSocket: a connection's socket, as threads of the core write answers to it.
//
// The socket belongs to the event loop, which opens, reads and closes it, and writes to it whenever no thread of the core has been asked
// to. Who is about to close it calls `close` first: from then on nothing is written, so that no answer goes to whoever has its number next.
//
// Threads: any, under a lock of its own.
#pragma once

#include <cstddef>
#include <mutex>
#include <string>
#include <string_view>

namespace paperwasp {

class AnswerSocket {
  public:
    explicit AnswerSocket(int socket) : socket_(socket) {}

    // Writes an answer of HTTP/1.1, of which `head` is the first lines, and returns what the system does not take now. What is written to a
    // socket that is closed, or broken, is lost: the event loop learns of that by itself. bytes: of the whole answer.
    std::string send(std::string_view head, std::string_view body, size_t& bytes);

    void close();

    // The answers that are written from now on say that the connection ends with them.
    void end_soon();

  private:
    std::mutex mutex_;
    int socket_;  // -1: closed
    bool ends_soon_ = false;
};

// The last lines of the head of an answer with such a body, and the empty one; now: seconds since 1970.
std::string last_lines(size_t body_bytes, bool closes, int64_t now);

}  // namespace paperwasp
