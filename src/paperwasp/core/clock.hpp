// The time that the work of a thread has: kernels end in the midst of it when it is over, by throwing OutOfTime (a Python exception).
//
// A thread that answers a query says when its work must end; a thread that says nothing has all the time there is. A kernel makes a Clock
// and tells it what it has done, in steps of about a nanosecond; the machine's clock is looked at when LOOK_STEPS are done. Steps are
// counted over all calls of the thread, so that many short calls end in time too. A Clock costs a subtraction each time it is told.
#pragma once

#include <cstdint>
#include <exception>

namespace paperwasp {

class OutOfTime : public std::exception {
  public:
    const char* what() const noexcept override { return "the time for this query is over"; }
};

constexpr int64_t LOOK_STEPS = 200'000;   // about how late a kernel sees that its time is over, in nanoseconds
constexpr int64_t BUDGET_STEPS = 20'000;  // the same of a budget
constexpr int64_t CALL_STEPS = 1000;      // what a call from Python costs, whatever it does

struct TimeOfThread {
    int64_t end_ns = 0;  // on the monotonic clock; 0: never
    int64_t left = LOOK_STEPS;
};

// Of the thread that asks.
TimeOfThread& time_of_thread();

// On the monotonic clock; what Python's time.monotonic_ns gives.
int64_t monotonic_ns();

class Clock {
  public:
    // Throws OutOfTime.
    Clock() : time_(time_of_thread()) { spend(CALL_STEPS); }

    // Throws OutOfTime if the time is over.
    void spend(int64_t steps) {
        if ((time_.left -= steps) < 0) look();
    }

  private:
    void look();

    TimeOfThread& time_;
};

// The clock of work that has a budget besides: when that is spent, the work ends with what it has found, and nothing is thrown.
class BudgetClock {
  public:
    // end_ns: on the monotonic clock; 0: there is no budget. Throws OutOfTime.
    explicit BudgetClock(int64_t end_ns) : end_ns_(end_ns) {}

    // False from the moment on when the budget is seen to be spent. Throws OutOfTime if the time of the thread is over.
    bool spend(int64_t steps) {
        clock_.spend(steps);
        if (end_ns_ != 0 && (left_ -= steps) < 0) look();
        return !is_spent_;
    }
    bool is_spent() const { return is_spent_; }

  private:
    void look() {
        left_ = BUDGET_STEPS;
        is_spent_ = is_spent_ || monotonic_ns() >= end_ns_;
    }

    Clock clock_;
    const int64_t end_ns_;
    int64_t left_ = 0;  // the first step looks
    bool is_spent_ = false;
};

}  // namespace paperwasp
