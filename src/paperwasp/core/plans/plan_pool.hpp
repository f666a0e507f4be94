// PlanPool: threads of the core that run plans, and never take the interpreter's lock.
//
// The event loop gives runs to the pool, and is told through a file descriptor that some are done; it takes all of these at once. So a
// query costs the loop a place in two queues, and no two threads fight for the lock. What takes little time comes before what takes
// long. What takes long has all threads where there are two, and leaves one free where there are more; the loop runs some of the rest as
// well, where more waits than the threads are about to take (`help`). What takes long has parts of it run by threads that have nothing
// else to do (shared_parts.hpp).
//
// Threads: `submit`, `add`, `take` and the destructor are called with the interpreter's lock; the queues have a lock of their own. Objects
// of Python are counted up and down by the callers only.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "core.hpp"
#include "plans/plan_run.hpp"
#include "plans/shared_parts.hpp"

namespace paperwasp {

// What a thread of the pool does. It is made and freed with the interpreter's lock; its methods need none.
// Threads: one at a time.
class PoolWork {
  public:
    virtual ~PoolWork() = default;
    // Finds out what it will take, before it is run.
    virtual void prepare() noexcept {}
    // About, once it is prepared.
    virtual uint64_t expected_ns() const = 0;
    virtual void run() noexcept = 0;
    // When nobody waits for it any more, on the monotonic clock.
    virtual int64_t last_ns() const { return std::numeric_limits<int64_t>::max(); }
};

class PlanPool final : private ThreadLender {
  public:
    // A run that is expected to take more than this takes long. most_of_run: threads that may share one; 0: any number. thread_ns:
    // what each of these is to have to do.
    PlanPool(size_t threads, uint64_t long_ns, size_t most_of_run, uint64_t thread_ns);
    ~PlanPool();
    PlanPool(const PlanPool&) = delete;
    PlanPool& operator=(const PlanPool&) = delete;

    // Can be read when there are finished runs to take.
    int fd() const { return ends_[0]; }

    // Starts a run. Its token is given back by `take`.
    void submit(nb::object run, nb::object token);

    // Starts work, which the object owns. It is given back by `take`. True: so much waits that `help` would take some of it.
    bool add(PoolWork& work, nb::object object, bool is_prepared = false);

    // Runs one that waits and takes little time, on the calling thread, if the threads will not come to it soon. False: they will.
    bool help();

    // The tokens of the runs that have finished, and the objects of other work.
    nb::list take();

    // Gives up what still waits and was to be done before this moment: it is given back as it is.
    void give_up(int64_t last_ns);

    // Runs that are not finished.
    size_t busy() const;

    // How many threads were asked to run parts of what others run.
    size_t lent() const;

    // What is expected to take more takes long.
    uint64_t long_ns() const { return long_ns_; }

  private:
    struct Job {
        PoolWork* work;
        nb::object object;                // is given back
        std::unique_ptr<PoolWork> owned;  // work that the object does not own
        bool is_prepared = false;
    };

    bool put(std::unique_ptr<Job> job);
    bool is_worth_help() const;
    std::deque<Job*>& queue_of(const Job& job) { return job.is_prepared && job.work->expected_ns() > long_ns_ ? long_ : short_; }
    bool prepare(Job* job, std::unique_lock<std::mutex>& lock);
    void finish(Job* job);
    void work();
    void end();
    Job* next();  // nullptr: nothing may run now
    bool may_run() const;
    size_t lend(const std::shared_ptr<SharedParts>& work, size_t most) override;

    const uint64_t long_ns_;
    const size_t most_helpers_;  // of one run
    mutable std::mutex mutex_;
    std::condition_variable came_;
    std::deque<Job*> short_, long_;  // that wait
    std::vector<Job*> finished_;
    std::deque<std::shared_ptr<SharedParts>> lent_;  // of which no thread has begun to run parts: one for each that is to help
    size_t running_ = 0, running_long_ = 0;          // on the threads
    size_t lent_count_ = 0;
    size_t helping_ = 0;  // threads that run parts of what others run
    size_t helped_ = 0;   // that others run
    bool ends_soon_ = false;
    bool is_told_ = false;    // whether the pipe has a byte, which says that runs have finished
    int ends_[2] = {-1, -1};  // of a pipe
    std::vector<std::thread> threads_;
};

}  // namespace paperwasp
