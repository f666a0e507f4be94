// WatchedSockets: an epoll over HTTP/1.1 connections. One call reads every socket that is ready, and begins to answer the requests whose
// routes are known.
//
//     event loop: the epoll is ready → receive → for each ready socket: a request that is being answered, or bytes
//
// A read of one socket by the event loop costs a dozen Python calls. A connection whose requests have routes therefore moves its socket
// into this epoll, and the event loop watches only the epoll.
//
// - The end of the stream and errors are not read here: the socket leaves the epoll, and the event loop, which reads it again, finds them.
// - While a request is being answered, its socket is not read: the client may have the answer, and have sent its next request, before the
//   event loop has noted that the answer is out.
// - One call reads each ready socket once and at most MOST_SOCKETS of them; epoll returns the others first the next time, so a client that
//   never stops sending holds up nobody.
//
// Threads: one event loop's, with the interpreter's lock. Threads of the core write to the same sockets (answer_socket.hpp), and know
// nothing of this.
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <exception>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.hpp"
#include "text_routes.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_SOCKETS = 64;  // of one call: a bound on its time, not on the connections
constexpr uint32_t LOOKED_FOR = EPOLLIN | EPOLLRDHUP;

[[noreturn]] void raise_system_error() {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nb::python_error();
}

class WatchedSockets {
  public:
    // most_bytes: read of a socket by one call.
    WatchedSockets(const nb::object& routes, size_t most_bytes)
        : routes_object_(routes), routes_(nb::cast<TextRoutes&>(routes)), epoll_(epoll_create1(EPOLL_CLOEXEC)), buffer_(most_bytes) {
        if (most_bytes == 0) throw nb::value_error("nothing can be read into no bytes");
        if (epoll_ < 0) raise_system_error();
    }
    ~WatchedSockets() { close(); }
    WatchedSockets(const WatchedSockets&) = delete;
    WatchedSockets& operator=(const WatchedSockets&) = delete;

    int fd() const { return epoll_; }

    void close() {
        if (epoll_ >= 0) ::close(std::exchange(epoll_, -1));
        std::unordered_map<int, Watched> freed;  // what is freed may call back
        freed.swap(watched_);
    }

    void watch(int socket, nb::object answers, nb::object line, nb::object asker) {
        control(EPOLL_CTL_ADD, socket, LOOKED_FOR);
        watched_[socket] = {std::move(answers), std::move(line), std::move(asker), Next::REQUEST};
    }

    void unwatch(int socket) {
        if (watched_.count(socket) == 0) return;
        epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
        const auto gone = watched_.extract(socket);
    }

    void expect(int socket, bool request) {
        const auto found = watched_.find(socket);
        if (found == watched_.end()) return;
        found->second.next = request ? Next::REQUEST : Next::BYTES;
        if (std::exchange(found->second.is_put_off, false)) control(EPOLL_CTL_MOD, socket, LOOKED_FOR);
    }

    nb::tuple receive(bool alone) {
        std::array<epoll_event, MOST_SOCKETS> events;
        const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), 0);
        nb::list came;
        size_t bytes = 0;
        for (int each = 0; each < count; ++each) {
            const epoll_event& event = events[static_cast<size_t>(each)];
            const auto found = watched_.find(event.data.fd);
            if (found == watched_.end()) continue;
            Watched& watched = found->second;
            if (watched.next == Next::NOTHING && (event.events & (EPOLLERR | EPOLLHUP)) == 0) {
                watched.is_put_off = true;
                control(EPOLL_CTL_MOD, event.data.fd, 0);
            } else {
                came.append(read(event, watched, alone && count == 1, bytes));
            }
        }
        return nb::make_tuple(came, bytes);
    }

    size_t size() const { return watched_.size(); }

  private:
    // What is read next on a socket.
    enum class Next {
        REQUEST,  // it may be answered by the core
        BYTES,    // for Python to read
        NOTHING,  // until the answer is out
    };

    struct Watched {
        nb::object answers, line, asker;
        Next next;
        bool is_put_off = false;  // whether something has come meanwhile, of which the epoll tells no more
    };

    void control(int operation, int socket, uint32_t events) {
        epoll_event event{};
        event.events = events;
        event.data.fd = socket;
        if (epoll_ctl(epoll_, operation, socket, &event) != 0) raise_system_error();
    }

    // (line, what has come): a RoutedText, bytes; None: something else, and it is watched no more.
    nb::tuple read(const epoll_event& event, Watched& watched, bool alone, size_t& bytes) {
        const nb::object line = watched.line, answers = watched.answers;
        nb::object asker = watched.asker;
        const ssize_t size = event.events == EPOLLIN ? ::recv(event.data.fd, buffer_.data(), buffer_.size(), MSG_DONTWAIT) : -1;
        if (size <= 0) {
            unwatch(event.data.fd);
            return nb::make_tuple(line, nb::none());
        }
        bytes += static_cast<size_t>(size);
        nb::bytes data(buffer_.data(), static_cast<size_t>(size));
        nb::object routed;
        if (std::exchange(watched.next, Next::BYTES) == Next::REQUEST) {
            try {
                routed = routes_.begin_known(data, answers, std::move(asker), alone);
            } catch (const std::exception&) {  // no memory; nothing is under way, and what has come is not lost
            }
        }
        if (!routed.is_valid()) return nb::make_tuple(line, data);
        watched.next = Next::NOTHING;
        return nb::make_tuple(line, routed);
    }

    const nb::object routes_object_;
    TextRoutes& routes_;
    int epoll_;
    std::vector<char> buffer_;
    std::unordered_map<int, Watched> watched_;
};

}  // namespace

void bind_watched_sockets(nb::module_& m) {
    nb::class_<WatchedSockets>(m, "WatchedSockets")
        .def(nb::init<const nb::object&, size_t>(), nb::arg("routes"), nb::arg("most_bytes"))
        .def_prop_ro("fd", &WatchedSockets::fd, "Can be read when there is something to receive.")
        .def("watch", &WatchedSockets::watch, nb::arg("socket"), nb::arg("answers"), nb::arg("line"), nb::arg("asker"),
             "Reads a socket from now on; what comes next may be answered by the core. Errors: OSError.")
        .def("unwatch", &WatchedSockets::unwatch, nb::arg("socket"), "Reads it no more; before it is closed.")
        .def("expect", &WatchedSockets::expect, nb::arg("socket"), nb::arg("request"),
             "Its last request is answered, or left; request: whether what comes next may be answered by the core.")
        .def("receive", &WatchedSockets::receive, nb::arg("alone"),
             "(what has come on sockets, the bytes of all of it). Each is a line with bytes, with the RoutedText of a request that is"
             " being answered, or, as it is watched no more, None: its socket tells what has happened.")
        .def("close", &WatchedSockets::close, "Watches nothing any more.")
        .def("__len__", &WatchedSockets::size);
}

}  // namespace paperwasp
