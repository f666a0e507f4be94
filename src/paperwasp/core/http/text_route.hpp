// TextRoute: all of a request but the user's text and the vector, as one view answers it. RoutedText: a request that goes by it.
//
//     bytes of a request → TextRoutes (text_routes.hpp) → TextRoute + values → RoutedText → a thread: prepare(), run() → the socket
//
// What is general about such requests was found out when the route was made; nothing of it is asked for again. A request that the route
// does not answer in full, since its text says more than words, its vector is no such, a word of it is new in the view, time is over, or a
// hit has no row, is left to Python: `is_sent` is false then.
//
// Threads: a route never changes. A routed text is used by one thread at a time, any, and freed with the interpreter's lock; the run that
// `prepare` makes reads what the route keeps alive.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "http/answer_socket.hpp"
#include "http/request_text.hpp"
#include "plans/plan_near.hpp"
#include "plans/plan_pool.hpp"
#include "plans/plan_run.hpp"
#include "text/word_set.hpp"

namespace paperwasp {

struct TextRoute {
    const Plan* plan = nullptr;
    const Snapshot* snapshot = nullptr;
    const RowFiles* rows = nullptr;
    uint32_t hits = 0, offset = 0;
    int64_t timeout_ns = 0;
    double soft_share = 1;               // of the time: until then documents are searched
    std::optional<In<uint64_t>> accept;  // the documents that are looked among
    double attribute = 0;                // what nativeAttributeMatch is of each of them
    std::optional<NearSearch> near;      // of a plan for what is near
    const WordSet* foreign = nullptr;    // a text with words of it may be in another language than the plan's
    bool keeps_long = false;             // whether answers that take long are kept, which is the general way's to do
    PlanPool* pool = nullptr;
    size_t most_waiting = 0;  // in the pool
    nb::object answers;       // whoever answers otherwise, for Python alone
    std::vector<nb::object> owners;
};

// A route as Python has it, and the first lines of all answers. Made and freed with the interpreter's lock.
struct FoundRoute {
    FoundRoute(nb::object given, nb::bytes first_lines, bool gzip);

    nb::object object;
    const TextRoute& route;
    const std::string head;
    const bool waits_for_gzip;  // whether answers are compressed before they are sent, which is for Python to do
};

// Where a request came from. Made and freed with the interpreter's lock.
struct Client {
    Client(nb::object given_socket, nb::object given_asker)
        : asker(std::move(given_asker)), socket_object(std::move(given_socket)), socket(nb::cast<AnswerSocket&>(socket_object)) {}

    nb::object asker;  // for Python alone: who has sent the request
    nb::object socket_object;
    AnswerSocket& socket;
};

class RoutedText : public PoolWork {
  public:
    RoutedText(std::shared_ptr<const FoundRoute> route, std::shared_ptr<const Client> client, OwnValues values, std::string request);

    // Finds out what it will take.
    void prepare() noexcept override;
    uint64_t expected_ns() const override { return run_ ? run_->expected_ns() : 0; }
    // Answers the request, and writes the answer, unless it is to be compressed.
    void run() noexcept override;
    // Writes this in place of the answer: the same, compressed.
    void send(std::string_view body);
    int64_t last_ns() const override { return begun_ns_ + route_.timeout_ns; }

    // Whether the answer was written.
    bool is_sent() const { return is_sent_; }
    // Whether it waits for `send`.
    bool waits_for_gzip() const { return found_->waits_for_gzip && !is_sent_ && has_answer(); }
    const std::string& answer() const { return run_->answer(); }
    // Whether the plan has run: with or without an answer.
    bool has_run() const { return has_run_; }
    // Whether it was left because it takes long: its answer may be kept.
    bool takes_long() const { return takes_long_; }
    // Of an answer that was written: what the system did not take, and the size of its body and of all of it.
    const std::string& unsent() const { return unsent_; }
    size_t body_bytes() const { return body_bytes_; }
    size_t sent_bytes() const { return sent_bytes_; }
    uint64_t total() const { return run_->total(); }
    uint32_t shown() const { return run_->shown(); }
    int64_t writing_ns() const { return run_->writing_ns(); }
    // When it came, and how long it took until it was answered.
    int64_t begun_ns() const { return begun_ns_; }
    int64_t elapsed_ns() const { return ended_ns_ - begun_ns_; }

    // The run of an answer that was not written, for Python to go on with; nullptr: there is none.
    std::unique_ptr<PlanRun> take_run();

    const FoundRoute& route() const { return *found_; }
    const Client& client() const { return *client_; }
    const OwnValues& values() const { return values_; }
    const std::string& request() const { return request_; }

    bool is_here = false;        // whether it was answered, or left, where it came, and is not with the pool
    bool is_worth_help = false;  // whether so much waited for the threads when it was added that the event loop is to help

  private:
    bool prepare_run();
    bool has_answer() const { return run_ && run_->is_answered() && run_->left().empty(); }

    const std::shared_ptr<const FoundRoute> found_;
    const std::shared_ptr<const Client> client_;
    const TextRoute& route_;
    const OwnValues values_;
    const std::string request_;
    const int64_t begun_ns_;
    int64_t ended_ns_ = 0;
    std::unique_ptr<PlanRun> run_;
    bool has_run_ = false, takes_long_ = false, is_sent_ = false;
    std::string unsent_;
    size_t body_bytes_ = 0, sent_bytes_ = 0;
};

}  // namespace paperwasp
