// A client of HTTP/1.1 that asks from several connections at once, each with the next request as soon as it has its answer: one thread,
// and so few microseconds a request that it is the server that is measured.
//
// client PORT CONNECTIONS [endless]
// Standard input: how many requests there are, then the length and the bytes of each; numbers have 32 bits, little-endian. `endless`: they
// are sent over and over until the end of standard input. Standard output: the nanoseconds of the whole, then those of each answer, in the
// order in which they came, as numbers of 64 bits. Ends with 1 and a message for an answer with another status than 200 or no length.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr size_t PIECE_BYTES = 1 << 18;

[[noreturn]] void fail(std::string_view what) {
    std::fprintf(stderr, "%.*s\n", static_cast<int>(std::min<size_t>(what.size(), 500)), what.data());
    std::exit(1);
}

int64_t now_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

uint32_t read_number() {
    uint32_t number = 0;
    if (std::fread(&number, sizeof number, 1, stdin) != 1) fail("standard input ends too early");
    return number;
}

std::vector<std::string> read_requests() {
    std::vector<std::string> requests(read_number());
    for (std::string& request : requests) {
        request.resize(read_number());
        if (std::fread(request.data(), 1, request.size(), stdin) != request.size()) fail("standard input ends too early");
    }
    return requests;
}

// Whether it is all of an answer. Fails unless the status is 200 and the length is told.
bool is_whole(std::string_view data) {
    const size_t end = data.find("\r\n\r\n");
    if (end == std::string_view::npos) return false;
    std::string head(data.substr(0, end + 2));
    std::transform(head.begin(), head.end(), head.begin(), [](unsigned char c) { return c >= 'A' && c <= 'Z' ? c + 32 : c; });
    constexpr std::string_view NAME = "\r\ncontent-length:";
    const size_t length = head.find(NAME);
    if (head.substr(0, head.find("\r\n")).find(" 200") == std::string::npos || length == std::string::npos) fail(data);
    return data.size() >= end + 4 + std::strtoull(head.c_str() + length + NAME.size(), nullptr, 10);
}

struct Connection {
    int socket;
    std::string data;
    int64_t begun_ns = 0;

    explicit Connection(uint16_t port) : socket(::socket(AF_INET, SOCK_STREAM, 0)) {
        sockaddr_in address{};
        address.sin_family = AF_INET;
        address.sin_port = htons(port);
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        if (connect(socket, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) fail("the server takes no connection");
        const int on = 1;
        setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }

    void ask(const std::string& request) {
        data.clear();
        begun_ns = now_ns();
        for (size_t sent = 0; sent < request.size();) {
            const ssize_t size = send(socket, request.data() + sent, request.size() - sent, MSG_NOSIGNAL);
            if (size <= 0) fail("the server has closed the connection");
            sent += static_cast<size_t>(size);
        }
    }

    // Takes the next bytes. Whether the answer is whole now.
    bool receive(std::vector<char>& piece) {
        const ssize_t size = recv(socket, piece.data(), piece.size(), 0);
        if (size <= 0) fail("the server has closed the connection after: " + data);
        data.append(piece.data(), static_cast<size_t>(size));
        return is_whole(data);
    }
};

void watch(int epoll, int file, uint32_t number) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.u32 = number;
    if (epoll_ctl(epoll, EPOLL_CTL_ADD, file, &event) != 0) fail("a file cannot be waited for");
}

std::vector<int64_t> taken_ns(const std::vector<std::string>& requests, std::vector<Connection>& connections, bool endless) {
    const auto input = static_cast<uint32_t>(connections.size());
    const int epoll = epoll_create1(0);
    std::vector<int64_t> taken;
    std::vector<char> piece(PIECE_BYTES);
    size_t asked = 0, waiting = connections.size();
    for (uint32_t number = 0; number < input; ++number) {
        watch(epoll, connections[number].socket, number);
        connections[number].ask(requests[asked++]);
    }
    if (endless) watch(epoll, STDIN_FILENO, input);
    std::vector<epoll_event> events(connections.size() + 1);
    while (waiting > 0) {
        const int count = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), -1);
        for (int i = 0; i < count; ++i) {
            const uint32_t number = events[static_cast<size_t>(i)].data.u32;
            if (number == input) {
                endless = false;
                asked = requests.size();
                epoll_ctl(epoll, EPOLL_CTL_DEL, STDIN_FILENO, nullptr);
                continue;
            }
            Connection& connection = connections[number];
            if (!connection.receive(piece)) continue;
            taken.push_back(now_ns() - connection.begun_ns);
            if (endless && asked == requests.size()) asked = 0;
            if (asked < requests.size())
                connection.ask(requests[asked++]);
            else
                --waiting;
        }
    }
    return taken;
}

}  // namespace

int main(int count, char** arguments) {
    if (count < 3) fail("client PORT CONNECTIONS [endless]");
    const std::vector<std::string> requests = read_requests();
    const size_t most = std::strtoull(arguments[2], nullptr, 10);
    if (requests.empty() || most == 0) fail("there is nothing to ask");
    std::vector<Connection> connections;
    for (size_t i = 0; i < std::min(most, requests.size()); ++i)
        connections.emplace_back(static_cast<uint16_t>(std::strtoul(arguments[1], nullptr, 10)));
    const int64_t begun_ns = now_ns();
    std::vector<int64_t> taken = taken_ns(requests, connections, count > 3 && std::string_view(arguments[3]) == "endless");
    taken.insert(taken.begin(), now_ns() - begun_ns);
    if (std::fwrite(taken.data(), sizeof(int64_t), taken.size(), stdout) != taken.size()) fail("standard output is closed");
    return 0;
}
