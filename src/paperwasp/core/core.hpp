// Common ground of the kernels: array arguments as nanobind sees them, and one bind function for each file.
//
// Kernels are free functions over arrays that NumPy owns. They check the bounds of what they are given (an error is a Python
// ValueError), release the GIL where they have much to do (`is_much`), and never keep a pointer past their return unless their header says
// so.
//
// "With the interpreter's lock" says that a thread may touch Python's objects: it holds the lock, or, where Python has none, is one of its
// threads. It never says that no other thread runs meanwhile: what needs that has a lock of its own, or belongs to one thread. Lists and
// arrays that are handed over stay as they are while a kernel reads them, but for those of which its file says that a writer may store
// into them.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <optional>

#include "unlocked.hpp"

namespace paperwasp {

namespace nb = nanobind;

// A one-dimensional C-contiguous array that the kernel reads.
template <typename T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// A one-dimensional C-contiguous array that the kernel writes.
template <typename T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// An element of a list as such an array. As it is given: an array that had to be converted would go with the conversion. Throws ValueError
// for what is no such array.
template <typename T>
In<T> as_given(nb::handle array) {
    In<T> found;
    if (!nb::try_cast(array, found, false)) throw nb::value_error("a list has something else than the arrays that are asked for");
    return found;
}

// Work that is worth a release of the interpreter's lock, in steps of about a nanosecond. Getting the lock back costs a switch between
// threads: 20 to 60 µs of CPU time where another thread is busy, and a wait of up to Python's switch interval.
constexpr uint64_t MUCH_WORK = 100'000;

inline bool is_much(uint64_t steps) { return steps > MUCH_WORK; }

// Lets other Python threads run while a kernel does, if it has much to do.
class GilRelease {
  public:
    explicit GilRelease(bool much) {
        if (much) released_.emplace();
    }

  private:
    std::optional<Unlocked> released_;
};

}  // namespace paperwasp
