// Requests that are alike: what http2_batch.hpp declares.
#include "http/http2_batch.hpp"

#include <utility>

namespace paperwasp {
namespace {

// Paths are ASCII, which read_target sees to.
std::string_view ascii(const nb::object& text) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) nb::raise_python_error();
    return {bytes, static_cast<size_t>(size)};
}

bool are_equal(const nb::object& a, const nb::object& b) { return a.is(b) || PyUnicode_Compare(a.ptr(), b.ptr()) == 0; }

bool is_change(const nb::object& method) {
    return PyUnicode_CompareWithASCIIString(method.ptr(), "POST") == 0 || PyUnicode_CompareWithASCIIString(method.ptr(), "PUT") == 0;
}

nb::object word() {
    static PyObject* const batch = PyUnicode_InternFromString("batch");
    return nb::borrow(batch);
}

nb::str made(std::string_view text) { return nb::str(text.data(), text.size()); }

}  // namespace

bool Http2Batch::is_for(const RequestHead& head) const {
    if (start_.empty() || !is_change(head.method)) return false;
    const std::string_view path = ascii(head.path);
    return path.substr(0, start_.size()) == start_ && path.back() != '/';
}

bool Http2Batch::has_like(const RequestHead& head, std::string_view path_start) const {
    if (!is_begun_ || path_start != path_start_ || !are_equal(head.query, first_.query)) return false;
    if (!are_equal(head.method, first_.method) || !are_equal(head.scheme, first_.scheme) || !are_equal(head.authority, first_.authority))
        return false;
    const int are_same = PyObject_RichCompareBool(head.headers.ptr(), first_.headers.ptr(), Py_EQ);
    if (are_same < 0) nb::raise_python_error();
    return are_same == 1;
}

void Http2Batch::add(uint32_t stream, RequestHead& head, nb::bytes body, nb::list& events) {
    const std::string_view path = ascii(head.path);
    const size_t name_at = path.rfind('/') + 1;
    const std::string_view path_start = path.substr(0, name_at);
    const nb::str name = made(path.substr(name_at));
    const nb::object coding = head.coding.is_valid() ? head.coding : nb::none();
    if (!has_like(head, path_start)) {
        end(events);
        is_begun_ = true;
        path_start_ = path_start;
        std::swap(first_, head);
    }
    streams_.append(stream);
    names_.append(name);
    bodies_.append(std::move(body));
    codings_.append(coding);
}

void Http2Batch::end(nb::list& events) {
    if (!is_begun_) return;
    events.append(nb::make_tuple(word(), std::exchange(streams_, nb::list()), first_.method, first_.scheme, first_.authority,
                                 made(path_start_), first_.query, first_.headers, std::exchange(names_, nb::list()),
                                 std::exchange(bodies_, nb::list()), std::exchange(codings_, nb::list())));
    first_.begin(0);
    is_begun_ = false;
}

}  // namespace paperwasp
