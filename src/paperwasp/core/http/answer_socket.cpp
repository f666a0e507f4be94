// Answers of HTTP/1.1 written by threads of the core: see answer_socket.hpp. The plain twin of their heads is http/http1.py.
#include "http/answer_socket.hpp"

#include <sys/socket.h>
#include <sys/uio.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <ctime>

#include <nanobind/stl/string.h>

#include "core.hpp"

namespace paperwasp {
namespace {

constexpr std::array<const char*, 7> DAYS = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
constexpr std::array<const char*, 12> MONTHS = {"Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};

}  // namespace

std::string last_lines(size_t body_bytes, bool closes, int64_t now) {
    const time_t seconds = static_cast<time_t>(now);
    tm at{};
    gmtime_r(&seconds, &at);
    char lines[160];
    const int size = std::snprintf(lines, sizeof lines, "%scontent-length: %zu\r\ndate: %s, %02d %s %04d %02d:%02d:%02d GMT\r\n\r\n",
                                   closes ? "connection: close\r\n" : "", body_bytes, DAYS[static_cast<size_t>(at.tm_wday)], at.tm_mday,
                                   MONTHS[static_cast<size_t>(at.tm_mon)], at.tm_year + 1900, at.tm_hour, at.tm_min, at.tm_sec);
    return {lines, static_cast<size_t>(size)};
}

std::string AnswerSocket::send(std::string_view head, std::string_view body, size_t& bytes) {
    const std::lock_guard lock(mutex_);
    std::string start(head);
    start += last_lines(body.size(), ends_soon_, time(nullptr));
    bytes = start.size() + body.size();
    if (socket_ < 0) return {};
    std::array<iovec, 2> parts{{{start.data(), start.size()}, {const_cast<char*>(body.data()), body.size()}}};
    msghdr message{};
    message.msg_iov = parts.data();
    message.msg_iovlen = parts.size();
    ssize_t sent = -1;
    do sent = sendmsg(socket_, &message, MSG_DONTWAIT | MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EWOULDBLOCK) return {};
        sent = 0;
    }
    const auto written = static_cast<size_t>(sent);
    if (written == bytes) return {};
    std::string rest = written < start.size() ? start.substr(written) : std::string();
    rest += body.substr(written < start.size() ? 0 : written - start.size());
    return rest;
}

void AnswerSocket::close() {
    const std::lock_guard lock(mutex_);
    socket_ = -1;
}

void AnswerSocket::end_soon() {
    const std::lock_guard lock(mutex_);
    ends_soon_ = true;
}

void bind_answer_socket(nb::module_& m) {
    nb::class_<AnswerSocket>(m, "AnswerSocket")
        .def(nb::init<int>(), nb::arg("socket"))
        .def(
            "send",
            [](AnswerSocket& self, const nb::bytes& head, const nb::bytes& body) {
                size_t bytes = 0;
                const std::string rest = self.send({head.c_str(), head.size()}, {body.c_str(), body.size()}, bytes);
                return nb::bytes(rest.data(), rest.size());
            },
            nb::arg("head"), nb::arg("body"), "Writes an answer with these first lines of its head; what the system does not take now.")
        .def("close", &AnswerSocket::close, "Nothing is written from now on.")
        .def("end_soon", &AnswerSocket::end_soon, "Answers say from now on that the connection ends with them.");
    m.def(
        "last_lines",
        [](size_t body_bytes, bool closes, int64_t now) {
            const std::string lines = last_lines(body_bytes, closes, now);
            return nb::bytes(lines.data(), lines.size());
        },
        nb::arg("body_bytes"), nb::arg("closes"), nb::arg("now"), "The last lines of an answer's head.");
}

}  // namespace paperwasp
