// How much processor time threads spend without the interpreter's lock, which tells how long they have it: an instrument.
//
// Two clocks are read for each release, which is 0.5 µs on a machine and up to 6 µs on some virtual ones: only while it is asked for.
// Otherwise a release costs one more read of a flag.
//
// Threads: any.
#pragma once

#include <nanobind/nanobind.h>

#include <atomic>
#include <cstdint>

namespace paperwasp {

struct UnlockedCount {
    std::atomic<bool> is_counting{false};
    std::atomic<int64_t> spent_ns{0};
};

UnlockedCount& unlocked_count();

// Processor time of the calling thread.
int64_t thread_ns();

// Counts the processor time of this thread as long as it exists. A thread that never has the lock makes one for each task.
class UnlockedTime {
  public:
    UnlockedTime() : begun_ns_(unlocked_count().is_counting.load(std::memory_order_relaxed) ? thread_ns() : NOT_COUNTED) {}
    ~UnlockedTime() {
        if (begun_ns_ != NOT_COUNTED) unlocked_count().spent_ns.fetch_add(thread_ns() - begun_ns_, std::memory_order_relaxed);
    }
    UnlockedTime(const UnlockedTime&) = delete;
    UnlockedTime& operator=(const UnlockedTime&) = delete;

  private:
    static constexpr int64_t NOT_COUNTED = -1;
    const int64_t begun_ns_;
};

// Releases the lock as long as it exists. The time is counted before the lock is asked for again.
class Unlocked {
    nanobind::gil_scoped_release released_;
    UnlockedTime time_;
};

}  // namespace paperwasp
