// Processor time without the interpreter's lock: see unlocked.hpp.
#include "unlocked.hpp"

#include <ctime>

#include "core.hpp"

namespace paperwasp {

UnlockedCount& unlocked_count() {
    static UnlockedCount count;
    return count;
}

int64_t thread_ns() {
    timespec spent{};
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &spent);
    return int64_t{spent.tv_sec} * 1'000'000'000 + spent.tv_nsec;
}

namespace {

void count_unlocked(bool is_counting) { unlocked_count().is_counting.store(is_counting, std::memory_order_relaxed); }

int64_t unlocked_ns() { return unlocked_count().spent_ns.load(std::memory_order_relaxed); }

}  // namespace

void bind_unlocked(nb::module_& m) {
    m.def("count_unlocked", &count_unlocked, nb::arg("is_counting"), "Whether releases that begin from now on are counted.");
    m.def("unlocked_ns", &unlocked_ns, "Processor time of all threads in kernels without the lock, in counted releases that have ended.");
}

}  // namespace paperwasp
