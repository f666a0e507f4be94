// TextRoutes: the routes of requests that came before but for their text and vector, by all other bytes of them.
//
// A request of which only these are new says the same as the one before with all its header fields and parameters, whatever these are. So
// whoever has found out what one of them says, and that nothing but these matters, has found it out for all: until something changes
// that answers depend on. Whatever may do so calls `forget_routes`, which empties all tables of the process, so that they keep no view.
//
// Threads: `begin` and `put` are one event loop's, with the interpreter's lock. Any thread forgets, with it, and any finds routes, without
// it. The table has a lock, under which nothing is freed and nothing of Python runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>

#include "core.hpp"
#include "http/request_text.hpp"
#include "http/text_route.hpp"

namespace paperwasp {

class TextRoutes {
  public:
    // The most requests that are kept.
    explicit TextRoutes(size_t most);
    ~TextRoutes();
    TextRoutes(const TextRoutes&) = delete;
    TextRoutes& operator=(const TextRoutes&) = delete;

    // Begins to answer a request: here, where it is `alone` and takes little time, or by the threads of its pool, which give it back as a
    // RoutedText. Bytes: its route is not known; `put` it by them. None: it has neither plain text nor vector, or goes the general way.
    nb::object begin(nb::bytes request, const nb::object& socket, nb::object asker, bool alone);

    // The route of a request, and its own values; nullptr: none is known. rest: memory for the other bytes of it. Whoever frees what is
    // returned has the interpreter's lock.
    std::shared_ptr<const FoundRoute> find(std::string_view request, std::string& rest, OwnValues& values) const;

    // Keeps a route, unless something has changed since `changes` was as it is given here. head: the first lines of all answers.
    // gzip: whether answers are to be compressed before they are sent.
    void put(const nb::bytes& rest, nb::object route, nb::bytes head, bool gzip, uint64_t changes);

    struct Entry {
        std::shared_ptr<const FoundRoute> route;  // nullptr: none was found yet
        uint32_t missed = 0;                      // how often that was so
    };
    using Table = std::unordered_map<std::string, Entry>;

    // What was known, for the caller to free.
    Table forget();
    size_t size() const;

  private:
    const size_t most_;
    std::string rest_;
    mutable std::mutex mutex_;
    Table table_;
};

// A number that grows with each `forget_routes`.
uint64_t route_changes();
void forget_routes();

}  // namespace paperwasp
