// Failed calls of the operating system as Python's OSError.
#pragma once

#include <nanobind/nanobind.h>

namespace paperwasp {

// Throws an OSError of `errno`. Needs the interpreter's lock.
[[noreturn]] inline void raise_system_error() {
    PyErr_SetFromErrno(PyExc_OSError);
    throw nanobind::python_error();
}

}  // namespace paperwasp
