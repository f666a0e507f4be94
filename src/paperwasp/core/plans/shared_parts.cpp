// Parts of one piece of work: see shared_parts.hpp.
#include "plans/shared_parts.hpp"

#include <algorithm>

#include "clock.hpp"

namespace paperwasp {
namespace {

ThreadLender*& lender_of_thread() {
    thread_local ThreadLender* lender = nullptr;
    return lender;
}

}  // namespace

bool SharedParts::run_next() {
    const size_t number = next_.fetch_add(1, std::memory_order_relaxed);
    if (number >= count_) return false;
    try {
        part_(number);
    } catch (...) {
        const std::lock_guard lock(mutex_);
        if (!error_) error_ = std::current_exception();
        next_.store(count_, std::memory_order_relaxed);
    }
    return true;
}

void SharedParts::help(const std::function<bool()>& is_wanted) {
    {
        const std::lock_guard lock(mutex_);
        if (is_closed_) return;
        ++helping_;
    }
    time_of_thread() = {end_ns_, LOOK_STEPS};
    while (run_next() && !is_wanted()) {
    }
    time_of_thread() = {0, LOOK_STEPS};
    const std::lock_guard lock(mutex_);
    if (--helping_ == 0) changed_.notify_one();
}

void SharedParts::finish() {
    while (run_next()) {
    }
    std::unique_lock lock(mutex_);
    is_closed_ = true;
    changed_.wait(lock, [this] { return helping_ == 0; });
    if (error_) std::rethrow_exception(error_);
}

void lend_to_this_thread(ThreadLender* lender) { lender_of_thread() = lender; }

void share_parts(size_t count, size_t most, uint64_t least_ns, const RunPart& part) {
    ThreadLender* const lender = lender_of_thread();
    const int64_t begun_ns = monotonic_ns();
    uint64_t left_ns = least_ns;
    for (size_t number = 0; number < count;) {
        const size_t left = count - number;
        const uint64_t worth = lender == nullptr ? 1 : left_ns / std::max<uint64_t>(lender->thread_ns, 1);
        const auto threads = static_cast<size_t>(std::min<uint64_t>({worth, left, most > 0 ? most : left}));
        if (threads > 1) {
            const auto work = std::make_shared<SharedParts>(number, count, part, time_of_thread().end_ns);
            if (lender->lend(work, threads - 1) > 0) {
                work->finish();
                return;
            }
        }
        part(number++);
        left_ns = static_cast<uint64_t>(monotonic_ns() - begun_ns) * (count - number) / number;
    }
}

}  // namespace paperwasp
