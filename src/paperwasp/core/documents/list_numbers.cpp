// The numbers of a decoded JSON array, looked at and converted in one pass: NumPy looks at each twice. The plain twin is in
// tests/oracles/list_numbers.py.
//
// Threads: nobody changes the list meanwhile. It is of a document that was just decoded, which only its thread has.
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

// False: `item` is not exactly a float or an int, or it is an int that no double is large enough for.
bool read_number(PyObject* item, double& number) {
    if (PyFloat_CheckExact(item)) {
        number = PyFloat_AS_DOUBLE(item);
        return true;
    }
    if (!PyLong_CheckExact(item)) return false;
    number = PyLong_AsDouble(item);
    if (number != -1.0 || PyErr_Occurred() == nullptr) return true;
    PyErr_Clear();
    return false;
}

nb::object list_numbers(const nb::list& values, size_t count) {
    if (values.size() != count) return nb::none();
    auto numbers = std::make_unique<std::vector<double>>(count);
    for (size_t i = 0; i < count; ++i) {
        if (!read_number(PyList_GET_ITEM(values.ptr(), static_cast<Py_ssize_t>(i)), (*numbers)[i])) return nb::none();
    }
    return own(std::move(numbers));
}

}  // namespace

void bind_list_numbers(nb::module_& m) {
    m.def("list_numbers", &list_numbers, nb::arg("values"), nb::arg("count"),
          "The numbers of a list as doubles; None where it has not exactly `count` items, or one that is neither a float nor an int, or"
          " too large for a double. Twin: tests.oracles.list_numbers.list_numbers");
}

}  // namespace paperwasp
