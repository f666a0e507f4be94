// Reading and writing a socket that does not block, without letting the interpreter's lock go: http/loop_socket.py.
//
// Such a call takes some microseconds. Whoever lets the lock go for that waits for it afterwards, and while another thread computes
// that is hundreds of times as long.
//
// Errors: OSError, as of Python's sockets; BlockingIOError where nothing has come, or nothing more is taken.
#include <sys/socket.h>

#include <cerrno>

#include <nanobind/nanobind.h>

#include "core.hpp"
#include "http/system_error.hpp"

namespace paperwasp {
namespace {

// A view of the bytes of a Python object.
class Bytes {
  public:
    Bytes(nb::handle object, int flags) {
        if (PyObject_GetBuffer(object.ptr(), &view_, flags) != 0) throw nb::python_error();
    }
    ~Bytes() { PyBuffer_Release(&view_); }
    Bytes(const Bytes&) = delete;
    Bytes& operator=(const Bytes&) = delete;

    void* data() const { return view_.buf; }
    size_t size() const { return static_cast<size_t>(view_.len); }

  private:
    Py_buffer view_{};
};

// What a call of the system returned, made again where a signal interrupted it.
template <typename Call>
size_t result_of(Call call) {
    ssize_t result = -1;
    do result = call();
    while (result < 0 && errno == EINTR && PyErr_CheckSignals() == 0);
    if (PyErr_Occurred()) throw nb::python_error();
    if (result < 0) raise_system_error();
    return static_cast<size_t>(result);
}

size_t receive_into(int socket, nb::handle buffer) {
    const Bytes to(buffer, PyBUF_WRITABLE);
    return result_of([&] { return ::recv(socket, to.data(), to.size(), MSG_DONTWAIT); });
}

size_t send(int socket, nb::handle data) {
    const Bytes from(data, PyBUF_SIMPLE);
    return result_of([&] { return ::send(socket, from.data(), from.size(), MSG_DONTWAIT | MSG_NOSIGNAL); });
}

}  // namespace

void bind_loop_socket(nb::module_& m) {
    m.def("receive_into", &receive_into, nb::arg("socket"), nb::arg("buffer"), "Reads what has come; gives the bytes, 0 at the end.");
    m.def("send", &send, nb::arg("socket"), nb::arg("data"), "Writes what the system takes; gives the bytes.");
}

}  // namespace paperwasp
