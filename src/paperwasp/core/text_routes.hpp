// TextRoutes: the routes of requests that came before but for their text and vector, by all other bytes of them.
//
// A request of which only these are new says the same as the one before with all its header fields and parameters, whatever these are. So
// whoever has found out what one of them says, and that nothing but these matters, has found it out for all: until something changes
// that answers depend on. Whatever may do so calls `forget_routes`, which empties all tables of the process, so that they keep no view.
//
// Threads: all with the interpreter's lock, since routes are objects of Python. `begin`, `begin_known` and `put` are one event loop's; any
// thread forgets, and the table has a lock, under which nothing is freed and nothing of Python runs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <unordered_map>

#include "core.hpp"
#include "request_text.hpp"

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

    // The same of a request whose route is known. A null object: it is not, or the request goes the general way.
    nb::object begin_known(nb::bytes request, const nb::object& socket, nb::object asker, bool alone);

    // Keeps a route, unless something has changed since `changes` was as it is given here. head: the first lines of all answers.
    void put(const nb::bytes& rest, nb::object route, nb::bytes head, uint64_t changes);

    struct Entry {
        nb::object route;  // null: none was found yet
        nb::object head;
        uint32_t missed = 0;  // how often that was so
    };
    using Table = std::unordered_map<std::string, Entry>;

    // What was known, for the caller to free.
    Table forget();
    size_t size() const;

  private:
    nb::object begin_by(const Entry& entry, OwnValues values, nb::bytes request, const nb::object& socket, nb::object asker, bool alone);

    const size_t most_;
    std::string rest_;
    mutable std::mutex mutex_;
    Table table_;
};

// A number that grows with each `forget_routes`.
uint64_t route_changes();
void forget_routes();

}  // namespace paperwasp
