// What Python sees of the client's end of HTTP/2.
#include <nanobind/stl/pair.h>

#include "http/http2_client.hpp"

namespace paperwasp {

void bind_http2_client(nb::module_& m) {
    nb::class_<Http2Client>(m, "Http2Client", "The client's end of an HTTP/2 connection, without input and output.")
        .def(
            "__init__",
            [](Http2Client* self, uint32_t max_body_bytes, uint32_t max_buffered_bytes, uint32_t max_header_bytes,
               uint32_t max_control_frames, uint32_t max_continuations) {
                new (self) Http2Client(
                    Http2ClientLimits{max_body_bytes, max_buffered_bytes, max_header_bytes, max_control_frames, max_continuations});
            },
            nb::arg("max_body_bytes") = 1 << 22, nb::arg("max_buffered_bytes") = 1 << 26, nb::arg("max_header_bytes") = 1 << 16,
            nb::arg("max_control_frames") = 10'000, nb::arg("max_continuations") = 32)
        .def("add_head", &Http2Client::add_head, nb::arg("fields"),
             "The number of a head: fields that requests have in common, without :path and content-length. Raises "
             "ValueError for what HTTP/2 does not have.")
        .def("request", &Http2Client::request, nb::arg("head"), nb::arg("path"), nb::arg("body"),
             "Sends a request; gives its stream, or 0 where there is no room.")
        .def("receive", &Http2Client::receive, nb::arg("data"), "Takes what the server sent; gives events.")
        .def("take_output", &Http2Client::take_output, nb::arg("most_bytes") = 1 << 20,
             "What may be sent now, with about so much of bodies at most.")
        .def("reset", &Http2Client::reset, nb::arg("stream_id"), nb::arg("code"), "Gives a request up.")
        .def_prop_ro("room", &Http2Client::room, "How many requests more the server would take now.")
        .def_prop_ro("open_streams", &Http2Client::open_streams)
        .def_prop_ro("unsent_bytes", &Http2Client::unsent_bytes, "Of bodies that wait for windows.")
        .def_prop_ro("is_leaving", &Http2Client::is_leaving, "Whether no more requests are taken.")
        .def_prop_ro("failure", &Http2Client::failure);
}

}  // namespace paperwasp
