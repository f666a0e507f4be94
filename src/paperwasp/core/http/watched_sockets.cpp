// WatchedSockets: threads that read HTTP/1.1 connections, and answer the requests whose routes are known.
//
//     a thread: the epoll has a ready socket → read it → its route (text_routes.hpp) → RoutedText: prepare, run → the answer is written
//     event loop: `fd` is ready → receive → for each socket: a request that was answered, or what is to be done by Python
//
// A request that has a route needs no Python. One thread reads it, runs its plan and writes the answer, without the interpreter's lock and
// without waiting for another thread. Afterwards the event loop receives a list of the answered requests, and counts them.
//
// - A socket is either a thread's or the event loop's. Whatever is not answered in full goes to the loop: bytes without a route, a request
//   that takes long or that the route does not answer, the rest of an answer that the system did not take, the end of the stream, an
//   error. Such a socket is not read until the loop calls `expect`.
// - The loop receives what was read from one socket in the order in which the client sent it.
// - Each socket is read once when it is ready (EPOLLONESHOT), and goes behind all others that are: a client that never stops sending holds
//   up nobody.
// - Where MOST_UNTOLD things wait for the loop, the threads wait for it too.
//
// Threads: the methods are one event loop's, with the interpreter's lock; the threads never have it. They leave everything that holds an
// object of Python's for the loop to free. They have the name of those in plans/plan_pool.cpp, which do the same work.
#include <pthread.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <system_error>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include <nanobind/nanobind.h>

#include "core.hpp"
#include "http/system_error.hpp"
#include "http/text_route.hpp"
#include "http/text_routes.hpp"
#include "native_threads.hpp"
#include "plans/plan_pool.hpp"
#include "unlocked.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_UNTOLD = 256;
constexpr uint32_t LOOKED_FOR = EPOLLIN | EPOLLRDHUP | EPOLLONESHOT;
constexpr uint64_t THE_END = 0;  // in place of a socket's number: the threads end

// A socket in the epoll.
struct Watched {
    enum class State {
        WAITING,  // for something to come
        READ,     // by a thread
        HANDED,   // to the event loop
    };

    Watched(int given, nb::object answers, nb::object given_line, nb::object asker)
        : socket(given), client(std::make_shared<Client>(std::move(answers), std::move(asker))), line(std::move(given_line)) {}

    const int socket;
    const std::shared_ptr<const Client> client;
    const nb::object line;
    State state = State::WAITING;
    bool expects_request = true;  // or bytes for Python
    bool is_gone = false;         // whether the loop has taken it back
    size_t untold = 0;            // things that have come, of which the loop does not know
    std::mutex reading;           // held while the socket is read, which is not closed meanwhile
};

// What has come on a socket.
struct Came {
    std::shared_ptr<Watched> from;
    std::unique_ptr<RoutedText> routed;
    std::string bytes;
    bool is_end = false;   // or an error, or something else that is no bytes
    bool is_last = false;  // of a socket that the loop has taken back
};

class WatchedSockets {
  public:
    // most_bytes: read of a socket at once.
    WatchedSockets(const nb::object& routes, size_t most_bytes, size_t threads)
        : routes_object_(routes),
          routes_(nb::cast<TextRoutes&>(routes)),
          most_bytes_(most_bytes),
          most_threads_(threads),
          epoll_(epoll_create1(EPOLL_CLOEXEC)),
          told_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
          end_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
        if (most_bytes == 0 || threads == 0) throw nb::value_error("nothing can be read into no bytes, or by no thread");
        if (epoll_ < 0 || told_ < 0 || end_ < 0) raise_system_error();
    }
    ~WatchedSockets() { close(); }
    WatchedSockets(const WatchedSockets&) = delete;
    WatchedSockets& operator=(const WatchedSockets&) = delete;

    int fd() const { return told_; }

    void close() {
        if (epoll_ < 0) return;
        {
            const std::lock_guard lock(mutex_);
            ends_ = true;
        }
        room_.notify_all();
        control(EPOLL_CTL_ADD, end_, THE_END, EPOLLIN);
        signal(end_);
        {
            const Unlocked unlocked;
            for (std::thread& thread : threads_) thread.join();
        }
        for (int* const each : {&epoll_, &told_, &end_}) ::close(std::exchange(*each, -1));
        const std::vector<Came> untold = std::exchange(came_, {});  // what is freed may call back
        const auto watched = std::exchange(watched_, {});
    }

    uint64_t watch(int socket, nb::object answers, nb::object line, nb::object asker) {
        if (threads_.empty()) start();
        const uint64_t number = ++last_number_;
        auto made = std::make_shared<Watched>(socket, std::move(answers), std::move(line), std::move(asker));
        {
            const std::lock_guard lock(mutex_);
            watched_[number] = std::move(made);
        }
        if (!control(EPOLL_CTL_ADD, socket, number, LOOKED_FOR)) {
            const int error = errno;
            const auto gone = remove(number);
            errno = error;
            raise_system_error();
        }
        return number;
    }

    bool unwatch(uint64_t number) {
        const auto gone = remove(number);
        if (!gone) return true;
        const std::lock_guard lock(gone->reading);  // it is read no more when this returns
        epoll_ctl(epoll_, EPOLL_CTL_DEL, gone->socket, nullptr);
        return is_told(*gone);
    }

    void expect(uint64_t number, bool request) {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(number);
        if (found == watched_.end()) return;
        Watched& watched = *found->second;
        if (watched.state == Watched::State::READ || watched.untold > 0) return;  // the loop does not know of it yet
        watched.expects_request = request;
        if (watched.state == Watched::State::HANDED) wait_for_more(number, watched);
    }

    bool is_read(uint64_t number) const {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(number);
        return found != watched_.end() && (found->second->state == Watched::State::READ || found->second->untold > 0);
    }

    nb::tuple receive() {
        std::vector<Came> came;
        size_t bytes = 0;
        {
            const std::lock_guard lock(mutex_);
            came.swap(came_);
            std::swap(bytes, bytes_);
            for (Came& each : came)
                each.is_last = --each.from->untold == 0 && each.from->is_gone && each.from->state != Watched::State::READ;
            eventfd_t taken = 0;
            eventfd_read(told_, &taken);
        }
        room_.notify_all();
        nb::list told;
        for (Came& each : came) {
            const nb::object& line = each.from->line;
            if (each.routed)
                told.append(nb::make_tuple(line, place(std::move(each.routed))));
            else if (!each.is_end)
                told.append(nb::make_tuple(line, nb::bytes(each.bytes.data(), each.bytes.size())));
            if (each.is_end || each.is_last) told.append(nb::make_tuple(line, nb::none()));
        }
        return nb::make_tuple(told, bytes);
    }

    size_t size() const {
        const std::lock_guard lock(mutex_);
        return watched_.size();
    }

  private:
    static void signal(int event) {
        const uint64_t one = 1;
        [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
    }

    bool control(int operation, int socket, uint64_t number, uint32_t events) {
        epoll_event event{};
        event.events = events;
        event.data.u64 = number;
        return epoll_ctl(epoll_, operation, socket, &event) == 0;
    }

    void start() {
        const SignalsBlocked blocked;
        try {
            while (threads_.size() < most_threads_) threads_.emplace_back([this] { work(); });
        } catch (const std::system_error&) {  // the machine has no more threads: fewer do
        }
        if (!threads_.empty()) return;
        errno = EAGAIN;
        raise_system_error();
    }

    // What was watched under a number; nullptr: nothing.
    std::shared_ptr<Watched> remove(uint64_t number) {
        const std::lock_guard lock(mutex_);
        auto found = watched_.extract(number);
        if (found.empty()) return nullptr;
        found.mapped()->is_gone = true;
        return std::move(found.mapped());
    }

    bool is_told(const Watched& watched) const {
        const std::lock_guard lock(mutex_);
        return watched.state != Watched::State::READ && watched.untold == 0;
    }

    // With the lock of this object.
    void wait_for_more(uint64_t number, Watched& watched) {
        watched.state = Watched::State::WAITING;
        control(EPOLL_CTL_MOD, watched.socket, number, LOOKED_FOR);
    }

    // The object of a request; one that takes long is given to the threads of queries.
    static nb::object place(std::unique_ptr<RoutedText> owned) {
        RoutedText* const routed = owned.get();
        nb::object object = nb::cast(owned.release(), nb::rv_policy::take_ownership);
        PlanPool& pool = *routed->route().route.pool;
        routed->is_here = routed->expected_ns() <= pool.long_ns() || pool.busy() >= routed->route().route.most_waiting;
        if (!routed->is_here) routed->is_worth_help = pool.add(*routed, object, true);
        return object;
    }

    void work() {
        pthread_setname_np(pthread_self(), QUERY_THREAD_NAME);
        std::string buffer(most_bytes_, '\0'), rest;
        for (;;) {
            epoll_event event{};
            const int count = epoll_wait(epoll_, &event, 1, -1);
            if (count == 1 && event.data.u64 == THE_END) return;
            const UnlockedTime counted;
            if (count == 1) read(event.data.u64, event.events, buffer, rest);
        }
    }

    // Reads a socket that is ready, and does what can be done at once.
    void read(uint64_t number, uint32_t events, std::string& buffer, std::string& rest) {
        Came came;
        bool expects_request = false;
        {
            std::unique_lock lock(mutex_);
            room_.wait(lock, [&] { return ends_ || came_.size() < MOST_UNTOLD; });
            const auto found = watched_.find(number);
            if (ends_ || found == watched_.end() || found->second->state != Watched::State::WAITING) return;
            came.from = found->second;
            came.from->state = Watched::State::READ;
            expects_request = came.from->expects_request;
        }
        const ssize_t size = events == EPOLLIN ? receive_from(*came.from, buffer) : 0;
        if (size > 0)
            answer(came, {buffer.data(), static_cast<size_t>(size)}, expects_request, rest);
        else
            came.is_end = size == 0;
        tell(number, came, size > 0 ? static_cast<size_t>(size) : 0);
    }

    // The number of bytes; 0: there is something else, which the loop will find; -1: there is nothing.
    ssize_t receive_from(Watched& watched, std::string& buffer) const {
        const std::lock_guard reading(watched.reading);
        {
            const std::lock_guard lock(mutex_);
            if (watched.is_gone) return -1;
        }
        const ssize_t size = ::recv(watched.socket, buffer.data(), buffer.size(), MSG_DONTWAIT);
        if (size < 0) return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ? -1 : 0;
        return size;
    }

    // Answers a request if it has a route and takes little time; else has it, or its bytes, handed to the loop.
    void answer(Came& came, std::string_view bytes, bool expects_request, std::string& rest) const {
        try {
            OwnValues values;
            std::string request(bytes);
            auto route = expects_request ? routes_.find(bytes, rest, values) : nullptr;
            if (route) {
                const uint64_t long_ns = route->route.pool->long_ns();
                came.routed = std::make_unique<RoutedText>(std::move(route), came.from->client, std::move(values), std::move(request));
                came.routed->prepare();
                if (came.routed->expected_ns() <= long_ns) came.routed->run();
            } else {
                came.bytes = std::move(request);
            }
        } catch (...) {  // no memory: the connection is broken off
            ::shutdown(came.from->socket, SHUT_RDWR);
            came.is_end = true;
        }
    }

    // Tells the loop what has come, and lets more come on a socket where nothing is left to be done.
    void tell(uint64_t number, Came& came, size_t bytes) {
        const std::lock_guard lock(mutex_);
        Watched& watched = *came.from;
        const bool is_nothing = !came.routed && !came.is_end && came.bytes.empty();
        const bool is_done = is_nothing || (came.routed && came.routed->is_sent() && came.routed->unsent().empty());
        watched.state = Watched::State::HANDED;
        if (is_done && !watched.is_gone) wait_for_more(number, watched);
        bytes_ += bytes;
        if (is_nothing && !watched.is_gone) {  // it stays among the watched: nothing of Python's is freed here
            came.from.reset();
            return;
        }
        if (is_nothing) came.is_end = true;
        ++watched.untold;
        if (came_.empty()) signal(told_);
        came_.push_back(std::move(came));
    }

    const nb::object routes_object_;
    TextRoutes& routes_;
    const size_t most_bytes_, most_threads_;
    int epoll_, told_, end_;
    uint64_t last_number_ = THE_END;
    std::vector<std::thread> threads_;

    mutable std::mutex mutex_;  // guards what follows, and the states of what is watched
    std::condition_variable room_;
    std::unordered_map<uint64_t, std::shared_ptr<Watched>> watched_;
    std::vector<Came> came_;  // untold
    size_t bytes_ = 0;        // of it
    bool ends_ = false;
};

}  // namespace

void bind_watched_sockets(nb::module_& m) {
    nb::class_<WatchedSockets>(m, "WatchedSockets")
        .def(nb::init<const nb::object&, size_t, size_t>(), nb::arg("routes"), nb::arg("most_bytes"), nb::arg("threads"))
        .def_prop_ro("fd", &WatchedSockets::fd, "Can be read when there is something to receive.")
        .def("watch", &WatchedSockets::watch, nb::arg("socket"), nb::arg("answers"), nb::arg("line"), nb::arg("asker"),
             "Has a socket read from now on; what comes next may be answered at once. The number it is watched under. Errors: OSError.")
        .def("unwatch", &WatchedSockets::unwatch, nb::arg("number"),
             "Has a socket read no more; before it is closed. False: something that was read is still to be received.")
        .def("expect", &WatchedSockets::expect, nb::arg("number"), nb::arg("request"),
             "Has a socket read again after something that was left to Python, unless something is still to be received. request: whether"
             " what comes next may be answered at once.")
        .def("is_read", &WatchedSockets::is_read, nb::arg("number"),
             "Whether a socket is being read, or its request answered, or something that was read is still to be received.")
        .def("receive", &WatchedSockets::receive,
             "(what has come on sockets, in order; the bytes of all of it). Each is the line of a socket with the RoutedText of a request"
             " that was answered, or is `not is_here` yet; with bytes; or with None: the socket itself tells what has happened, or it was"
             " unwatched and nothing is still to be received. But for an answer that was sent in full, it is read again after `expect`.")
        .def("close", &WatchedSockets::close, "Watches nothing any more, and ends the threads.")
        .def("__len__", &WatchedSockets::size);
}

}  // namespace paperwasp
