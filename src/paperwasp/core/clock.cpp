// When the work of a thread ends: see clock.hpp.
#include "clock.hpp"

#include <ctime>

#include "core.hpp"

namespace paperwasp {

TimeOfThread& time_of_thread() {
    thread_local TimeOfThread time;
    return time;
}

int64_t monotonic_ns() {
    timespec now{};
    clock_gettime(CLOCK_MONOTONIC, &now);
    return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

void Clock::look() {
    time_.left = LOOK_STEPS;
    if (time_.end_ns == 0 || monotonic_ns() <= time_.end_ns) return;
    time_.left = 0;  // the next call ends as well
    throw OutOfTime();
}

namespace {

void end_work_at(int64_t monotonic_ns) { time_of_thread() = TimeOfThread{monotonic_ns, LOOK_STEPS}; }

// For what takes long and is no kernel.
void check_time() { Clock().spend(LOOK_STEPS); }

}  // namespace

void bind_clock(nb::module_& m) {
    nb::exception<OutOfTime>(m, "OutOfTime");
    m.def("end_work_at", &end_work_at, nb::arg("monotonic_ns"), "From then on kernels that this thread calls raise OutOfTime; 0: never.");
    m.def("check_time", &check_time, "Raises OutOfTime if the time of this thread is over.");
}

}  // namespace paperwasp
