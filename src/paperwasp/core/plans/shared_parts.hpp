// Parts of one piece of work, which threads take that have nothing else to do.
//
//     a run of a plan, on a thread of a pool → share_parts → ThreadLender::lend → idle threads of the pool: SharedParts::help
//                                                 ↳ takes parts as well, until none is left and nobody works on one
//
// Threads: any thread may help. Who shares work waits until nobody works on it any more, so parts may use what is on its stack; they are
// run several at once, in any order.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>

namespace paperwasp {

using RunPart = std::function<void(size_t number)>;

class SharedParts {
  public:
    // Of parts first to count - 1. end_ns: when the time for them is over, on the monotonic clock; 0: never.
    SharedParts(size_t first, size_t count, const RunPart& part, int64_t end_ns)
        : count_(count), part_(part), end_ns_(end_ns), next_(first) {}

    // Runs parts until none is left, or the thread has something else to do, which it is asked between two. Called late, when all is done,
    // it does nothing.
    void help(const std::function<bool()>& is_wanted);

    // Runs the parts that are left, and waits for those that others run. Throws what one of them has thrown, after which no other begins.
    void finish();

  private:
    // False: none was left.
    bool run_next();

    const size_t count_;
    const RunPart& part_;
    const int64_t end_ns_;
    std::atomic<size_t> next_;
    std::mutex mutex_;
    std::condition_variable changed_;
    size_t helping_ = 0;
    bool is_closed_ = false;
    std::exception_ptr error_;
};

// Who has threads that may help.
class ThreadLender {
  public:
    // Has as many threads help as have nothing to do now, `most` at most. Returns how many.
    virtual size_t lend(const std::shared_ptr<SharedParts>& work, size_t most) = 0;

    const uint64_t thread_ns;  // what each thread is to have to do

  protected:
    explicit ThreadLender(uint64_t thread_ns) : thread_ns(thread_ns) {}
    ~ThreadLender() = default;
};

// Whoever lends threads to work that is shared by the calling thread, from now on; nullptr: nobody.
void lend_to_this_thread(ThreadLender* lender);

// Runs part(0) to part(count - 1), in order on this thread until it is seen that the others take long: then threads help that have nothing
// else to do. most: threads that work, this one among them; 0: any number. least_ns: what all parts surely take. Throws what a part throws.
void share_parts(size_t count, size_t most, uint64_t least_ns, const RunPart& part);

}  // namespace paperwasp
