// The thread that reads and answers puts and updates of HTTP/1.1: see feed_sockets.hpp.
#include "http/feed_sockets.hpp"

#include <strings.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <ctime>
#include <exception>
#include <system_error>
#include <utility>

#include "http/answer_socket.hpp"
#include "http/system_error.hpp"
#include "native_threads.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_SOCKETS = 64;  // ready sockets that one wait of the epoll returns
constexpr uint32_t LOOKED_FOR = EPOLLIN | EPOLLRDHUP;
constexpr std::string_view VERSION = " HTTP/1.1", LINE_END = "\r\n", HEAD_END = "\r\n\r\n", LENGTH = "content-length:";

// Has an eventfd ready to be read, and not any more.
void note(int event) {
    const uint64_t one = 1;
    [[maybe_unused]] const ssize_t written = ::write(event, &one, sizeof one);
}

void empty(int event) {
    uint64_t times = 0;
    [[maybe_unused]] const ssize_t taken = ::read(event, &times, sizeof times);
}

nb::bytes bytes_of(std::string_view data) { return nb::bytes(data.data(), data.size()); }

bool begins_with(std::string_view text, std::string_view start) { return text.substr(0, start.size()) == start; }

bool is_length_line(std::string_view line) {
    return line.size() > LENGTH.size() && strncasecmp(line.data(), LENGTH.data(), LENGTH.size()) == 0;
}

// The digits of the one length that the lines of a head say; empty: there is none, or another.
std::string_view length_of(std::string_view lines) {
    std::string_view found;
    for (size_t at = 0; at < lines.size();) {
        const size_t end = lines.find(LINE_END, at);
        if (end == std::string_view::npos) return {};
        std::string_view line = lines.substr(at, end - at);
        at = end + LINE_END.size();
        if (!is_length_line(line)) continue;
        if (!found.empty()) return {};
        line.remove_prefix(LENGTH.size());
        while (!line.empty() && line.front() == ' ') line.remove_prefix(1);
        const bool are_digits = std::all_of(line.begin(), line.end(), [](char c) { return c >= '0' && c <= '9'; });
        if (line.empty() || !are_digits) return {};
        found = line;
    }
    return found;
}

// What is left of an answer that the system does not take now.
std::string send_all(int socket, std::string data) {
    ssize_t sent = -1;
    do sent = ::send(socket, data.data(), data.size(), MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) return errno == EAGAIN || errno == EWOULDBLOCK ? data : std::string();  // what is broken, the epoll tells
    data.erase(0, static_cast<size_t>(sent));
    return data;
}

}  // namespace

bool cut_change(std::string_view request, CutChange& cut, std::string& form) {
    const size_t line_end = request.find(LINE_END), head_end = request.find(HEAD_END);
    if (head_end == std::string_view::npos || (!begins_with(request, "POST /") && !begins_with(request, "PUT /"))) return false;
    const size_t start = request.find(' ') + 1, target_end = line_end - VERSION.size();
    if (line_end < start + VERSION.size() || request.substr(target_end, VERSION.size()) != VERSION) return false;
    const std::string_view target = request.substr(start, target_end - start);
    if (!std::all_of(target.begin(), target.end(), [](char c) { return c > ' ' && c <= '~' && c != '#'; })) return false;
    const std::string_view path = target.substr(0, target.find('?'));
    cut.name_at = start + path.rfind('/') + 1;
    cut.name_size = start + path.size() - cut.name_at;
    cut.body_at = head_end + HEAD_END.size();
    const size_t lines_at = line_end + LINE_END.size();
    const std::string_view digits = length_of(request.substr(lines_at, head_end + LINE_END.size() - lines_at));
    size_t length = 0;
    if (cut.name_size == 0 || digits.empty()) return false;
    if (std::from_chars(digits.data(), digits.data() + digits.size(), length).ec != std::errc()) return false;
    if (length == 0 || length != request.size() - cut.body_at) return false;
    const auto digits_at = static_cast<size_t>(digits.data() - request.data()), name_end = cut.name_at + cut.name_size;
    form.assign(request.substr(0, cut.name_at)) += '\0';  // which no head has
    (form += request.substr(name_end, digits_at - name_end)) += '\0';
    form += request.substr(digits_at + digits.size(), head_end - digits_at - digits.size());
    return true;
}

FeedSockets::FeedSockets(size_t most_bytes, size_t most_forms) : most_forms_(most_forms), buffer_(most_bytes) {
    if (most_bytes == 0) throw nb::value_error("nothing can be read into no bytes");
    epoll_ = epoll_create1(EPOLL_CLOEXEC);
    wake_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    told_ = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
    if (epoll_ < 0 || wake_ < 0 || told_ < 0 || !control(EPOLL_CTL_ADD, wake_, 0, EPOLLIN)) {
        for (const int each : {epoll_, wake_, told_}) ::close(each);
        raise_system_error();
    }
}

FeedSockets::~FeedSockets() { close(); }

void FeedSockets::close() {
    ends_soon_ = true;
    if (thread_.joinable()) {
        note(wake_);
        const Unlocked unlocked;
        thread_.join();
    }
    for (int* const each : {&epoll_, &wake_, &told_})
        if (*each >= 0) ::close(std::exchange(*each, -1));
    std::unordered_map<int, Watched> freed;  // what is freed may call back
    freed.swap(watched_);
}

void FeedSockets::begin() {
    if (thread_.joinable()) return;
    const SignalsBlocked blocked;
    try {
        thread_ = std::thread([this] { work(); });
    } catch (const std::system_error&) {  // the machine has no more threads
        errno = EAGAIN;
        raise_system_error();
    }
}

bool FeedSockets::learn(const nb::bytes& request, nb::object form) {
    CutChange cut{};
    std::string bytes;
    if (!cut_change({request.c_str(), request.size()}, cut, bytes)) return false;
    {
        const std::lock_guard lock(mutex_);
        if (known_.size() >= most_forms_) known_.clear();
        if (!known_.try_emplace(std::move(bytes), forms_count_).second) return true;
        if (known_.size() == 1) first_form_ = forms_count_;
    }
    forms_.erase(forms_.begin(), forms_.lower_bound(first_form_));
    forms_[forms_count_++] = std::move(form);
    return true;
}

void FeedSockets::watch(int socket, nb::object line) {
    if (ends_soon_) {
        errno = EBADF;
        raise_system_error();
    }
    begin();
    const std::lock_guard lock(mutex_);
    const uint32_t number = ++watched_count_;
    if (!control(EPOLL_CTL_ADD, socket, number, LOOKED_FOR)) raise_system_error();
    watched_[socket] = {std::move(line), number};
}

nb::tuple FeedSockets::unwatch(int socket) {
    std::string unsent, came;
    nb::object freed;  // without the lock
    {
        const std::lock_guard lock(mutex_);
        const auto found = watched_.find(socket);
        if (found == watched_.end()) return nb::make_tuple(bytes_of(came), bytes_of(unsent));
        const uint32_t number = found->second.number;
        give_back(socket, found->second);
        const auto is_its = [&](const auto& each) { return each.socket == socket && each.number == number; };
        if (const auto answer = std::find_if(answers_.begin(), answers_.end(), is_its); answer != answers_.end()) {
            unsent = send(*answer);
            answers_.erase(answer);
        }
        if (const auto each = std::find_if(came_.begin(), came_.end(), is_its); each != came_.end()) {
            (each->kind == Kind::UNSENT ? unsent : came) = std::move(each->data);
            came_.erase(each);
        }
        freed = std::move(found->second.line);
        watched_.erase(found);
    }
    return nb::make_tuple(bytes_of(came), bytes_of(unsent));
}

void FeedSockets::answer(const nb::list& sockets, const nb::bytes& head, const nb::list& bodies) {
    if (sockets.size() != bodies.size()) throw nb::value_error("each socket has an answer");
    const auto start = std::make_shared<const std::string>(head.c_str(), head.size());
    std::vector<Answer> made;
    for (size_t each = 0; each < sockets.size(); ++each) {
        const auto body = nb::cast<nb::bytes>(bodies[each]);
        made.push_back({nb::cast<int>(sockets[each]), 0, start, std::string(body.c_str(), body.size())});
    }
    {
        const std::lock_guard lock(mutex_);
        for (Answer& each : made) {
            const auto found = watched_.find(each.socket);
            if (found == watched_.end()) continue;
            each.number = found->second.number;
            answers_.push_back(std::move(each));
        }
    }
    note(wake_);
}

void FeedSockets::Batches::add(const Came& came, const nb::object& line, const nb::object& form) {
    const auto [place, is_new] = places.try_emplace(came.form, requests.size());
    if (is_new) requests.append(nb::make_tuple(form, nb::list(), nb::list(), nb::list()));
    const auto batch = nb::cast<nb::tuple>(requests[place->second]);
    const std::string_view data = came.data, name = data.substr(came.cut.name_at, came.cut.name_size);
    nb::cast<nb::list>(batch[1]).append(line);
    nb::cast<nb::list>(batch[2]).append(nb::str(name.data(), name.size()));
    nb::cast<nb::list>(batch[3]).append(bytes_of(data.substr(came.cut.body_at)));
}

void FeedSockets::Batches::give_back(const Came& came, const nb::object& line) {
    const bool is_unsent = came.kind == Kind::UNSENT;
    back.append(nb::make_tuple(line, bytes_of(is_unsent ? "" : came.data), bytes_of(is_unsent ? came.data : "")));
}

nb::tuple FeedSockets::take() {
    std::vector<std::pair<Came, nb::object>> came;
    size_t received_bytes = 0, sent_bytes = 0;
    {
        const std::lock_guard lock(mutex_);
        for (Came& each : came_) {
            Watched* const watched = find(each.socket, each.number);
            if (watched == nullptr) continue;
            if (each.kind == Kind::REQUEST && forms_.count(each.form) == 0) each.kind = Kind::BACK;  // its form has been forgotten
            came.emplace_back(std::move(each), watched->line);
            if (came.back().first.kind == Kind::REQUEST) continue;
            give_back(came.back().first.socket, *watched);
            watched_.erase(came.back().first.socket);
        }
        came_.clear();
        std::swap(received_bytes, received_bytes_);
        std::swap(sent_bytes, sent_bytes_);
        if (std::exchange(is_told_, false)) empty(told_);
    }
    Batches batches;
    for (const auto& [each, line] : came) {
        if (each.kind == Kind::REQUEST)
            batches.add(each, line, forms_.at(each.form));
        else
            batches.give_back(each, line);
    }
    return nb::make_tuple(batches.requests, batches.back, received_bytes, sent_bytes);
}

bool FeedSockets::control(int operation, int socket, uint32_t number, uint32_t events) const {
    epoll_event event{};
    event.events = events;
    event.data.u64 = static_cast<uint64_t>(number) << 32 | static_cast<uint32_t>(socket);
    return epoll_ctl(epoll_, operation, socket, &event) == 0;
}

FeedSockets::Watched* FeedSockets::find(int socket, uint32_t number) {
    const auto found = watched_.find(socket);
    return found == watched_.end() || found->second.number != number ? nullptr : &found->second;
}

// Takes a socket out of the epoll.
void FeedSockets::give_back(int socket, Watched& watched) {
    if (!std::exchange(watched.is_back, true)) epoll_ctl(epoll_, EPOLL_CTL_DEL, socket, nullptr);
}

// The thread.

void FeedSockets::work() {
    std::array<epoll_event, MOST_SOCKETS> events;
    while (!ends_soon_) {
        const int count = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
        const UnlockedTime counted;
        for (int each = 0; each < count; ++each) {
            const epoll_event& event = events[static_cast<size_t>(each)];
            const auto socket = static_cast<int>(event.data.u64 & 0xFFFFFFFF);
            if (socket != wake_) {
                read(socket, static_cast<uint32_t>(event.data.u64 >> 32), event.events);
                continue;
            }
            empty(wake_);
            write();
        }
        tell();
    }
}

// Where there is no memory, the client sees its connection end.
void FeedSockets::read(int socket, uint32_t number, uint32_t events) noexcept {
    const std::lock_guard lock(mutex_);
    try {
        receive(socket, number, events);
    } catch (const std::exception&) {
        ::shutdown(socket, SHUT_RDWR);
    }
}

void FeedSockets::receive(int socket, uint32_t number, uint32_t events) {
    Watched* const watched = find(socket, number);
    if (watched == nullptr || watched->is_back) return;
    if (watched->waits && (events & (EPOLLERR | EPOLLHUP)) == 0) {
        watched->is_put_off = true;
        control(EPOLL_CTL_MOD, socket, number, 0);
        return;
    }
    const ssize_t size = events == EPOLLIN ? ::recv(socket, buffer_.data(), buffer_.size(), MSG_DONTWAIT) : 0;
    if (size < 0 && (errno == EAGAIN || errno == EINTR)) return;
    Came came{socket, number, Kind::BACK, {}};
    if (size > 0) {
        came.data.assign(buffer_.data(), static_cast<size_t>(size));
        received_bytes_ += came.data.size();
        const auto known = cut_change(came.data, came.cut, form_) ? known_.find(form_) : known_.end();
        if (known != known_.end()) {
            came.kind = Kind::REQUEST;
            came.form = known->second;
            watched->waits = true;
        }
    }
    if (came.kind == Kind::BACK) give_back(socket, *watched);
    came_.push_back(std::move(came));
}

void FeedSockets::write() noexcept {
    for (;;) {
        const std::lock_guard lock(mutex_);
        if (answers_.empty()) return;
        const Answer answer = std::move(answers_.front());
        answers_.pop_front();
        try {
            write(answer);
        } catch (const std::exception&) {
            ::shutdown(answer.socket, SHUT_RDWR);
        }
    }
}

void FeedSockets::write(const Answer& answer) {
    Watched* const watched = find(answer.socket, answer.number);
    if (watched == nullptr || watched->is_back) return;
    std::string unsent = send(answer);
    watched->waits = false;
    if (!unsent.empty()) {
        give_back(answer.socket, *watched);
        came_.push_back({answer.socket, answer.number, Kind::UNSENT, std::move(unsent)});
    } else if (std::exchange(watched->is_put_off, false)) {
        control(EPOLL_CTL_MOD, answer.socket, answer.number, LOOKED_FOR);
    }
}

// What the system does not take of an answer.
std::string FeedSockets::send(const Answer& answer) {
    std::string data = *answer.head;
    (data += last_lines(answer.body.size(), false, time(nullptr))) += answer.body;
    const size_t size = data.size();
    std::string unsent = send_all(answer.socket, std::move(data));
    sent_bytes_ += size - unsent.size();
    return unsent;
}

void FeedSockets::tell() {
    const std::lock_guard lock(mutex_);
    if (came_.empty() || std::exchange(is_told_, true)) return;
    note(told_);
}

void bind_feed_sockets(nb::module_& m) {
    m.def(
        "cut_change",
        [](const nb::bytes& request) -> nb::object {
            CutChange cut{};
            std::string form;
            const std::string_view sent(request.c_str(), request.size());
            if (!cut_change(sent, cut, form)) return nb::none();
            return nb::make_tuple(bytes_of(form), bytes_of(sent.substr(cut.name_at, cut.name_size)), bytes_of(sent.substr(cut.body_at)));
        },
        nb::arg("request"), "(form, name, body) of a put or an update as the thread of feeds takes it; None: it is none.");
    nb::class_<FeedSockets>(m, "FeedSockets")
        .def(nb::init<size_t, size_t>(), nb::arg("most_bytes"), nb::arg("most_forms"))
        .def_prop_ro("fd", &FeedSockets::fd, "Can be read when there is something to take.")
        .def("learn", &FeedSockets::learn, nb::arg("request"), nb::arg("form"),
             "Requests that differ from this one in name and body alone are taken as requests of that form from now on.")
        .def("watch", &FeedSockets::watch, nb::arg("socket"), nb::arg("line"), "Reads a socket from now on. Errors: OSError.")
        .def("unwatch", &FeedSockets::unwatch, nb::arg("socket"),
             "Reads it no more. (what has come and was not taken, what is left to be sent)")
        .def("answer", &FeedSockets::answer, nb::arg("sockets"), nb::arg("head"), nb::arg("bodies"),
             "Has answers written, whose heads begin so, to requests that were taken, and the next ones read.")
        .def("take", &FeedSockets::take,
             "([(form, lines, names, bodies)] of requests, [(line, what has come, what is left to be sent)] of sockets that go back, bytes"
             " that were read, bytes that were sent)")
        .def("close", &FeedSockets::close, "Watches nothing any more.")
        .def("__len__", &FeedSockets::size);
}

}  // namespace paperwasp
