// PlanPool: threads of the core that run plans, and never take the interpreter's lock.
//
// The event loop gives runs to the pool, and is told through a file descriptor that some are done; it takes all of these at once. So a
// query costs the loop a place in two queues, and no two threads fight for the lock. Runs that take little time come before those that take
// long. What takes long has all threads where there are two, and leaves one free where there are more; the loop runs some of the rest as
// well, where more waits than the threads are about to take (`help`).
//
// Threads: `submit`, `take` and the destructor are called with the interpreter's lock; the queues have a lock of their own. Objects of
// Python are counted up and down by the callers only.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <thread>
#include <vector>

#include "core.hpp"
#include "plan.hpp"

namespace paperwasp {

class PlanPool {
  public:
    // A run that is expected to take more than this takes long.
    PlanPool(size_t threads, uint64_t long_ns);
    ~PlanPool();
    PlanPool(const PlanPool&) = delete;
    PlanPool& operator=(const PlanPool&) = delete;

    // Can be read when there are finished runs to take.
    int fd() const { return ends_[0]; }

    // Has a run run. It is given back, with its token, by `take`.
    void submit(nb::object run, nb::object token);

    // Runs one that waits and takes little time, on the calling thread, if the threads will not come to it soon. False: they will.
    bool help();

    // The tokens of the runs that have finished.
    nb::list take();

    // Runs that are not finished.
    size_t busy() const;

  private:
    struct Job {
        PlanRun* run;
        nb::object run_object, token;
    };

    void work();
    void end();
    Job* next();  // nullptr: nothing may run now

    const uint64_t long_ns_;
    mutable std::mutex mutex_;
    std::condition_variable came_;
    std::deque<Job*> short_, long_;  // that wait
    std::vector<Job*> finished_;
    size_t running_ = 0, running_long_ = 0;  // on the threads
    size_t helped_ = 0;                      // that others run
    bool ends_soon_ = false;
    bool is_told_ = false;    // whether the pipe has a byte, which says that runs have finished
    int ends_[2] = {-1, -1};  // of a pipe
    std::vector<std::thread> threads_;
};

}  // namespace paperwasp
