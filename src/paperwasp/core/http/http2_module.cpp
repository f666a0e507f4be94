// What Python sees of HTTP/2: Http2Connection, the heads of answers, and HPACK alone, for its tests.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>

#include "http/http2.hpp"

namespace paperwasp {
namespace {

nb::bytes as_bytes(const std::string& text) { return nb::bytes(text.data(), text.size()); }

// The fields of a block. Throws ValueError for one that is damaged.
nb::list decode_block(HpackDecoder& decoder, const nb::bytes& block) {
    nb::list fields;
    decoder.begin(static_cast<const uint8_t*>(block.data()), block.size());
    while (true) {
        switch (decoder.next()) {
            case HpackDecoder::Step::FIELD:
                fields.append(nb::make_tuple(as_bytes(decoder.field().name), as_bytes(decoder.field().value)));
                break;
            case HpackDecoder::Step::END:
                return fields;
            case HpackDecoder::Step::DAMAGED:
                throw nb::value_error("the block is damaged");
        }
    }
}

// The entries that the blocks have added, the newest first.
nb::list entries_of(HpackDecoder& decoder) {
    nb::list entries;
    for (uint32_t number = 0; number < decoder.table().count(); ++number) {
        const HpackEntry& entry = decoder.table().at(number);
        entries.append(nb::make_tuple(as_bytes(entry.name), as_bytes(entry.value)));
    }
    return entries;
}

// Answers a stream of each connection.
size_t respond_all(const nb::list& connections, const nb::list& stream_ids, const nb::bytes& block, const nb::list& bodies) {
    if (stream_ids.size() != connections.size() || bodies.size() != connections.size())
        throw nb::value_error("as many streams and bodies as connections");
    size_t answered = 0;
    for (size_t i = 0; i < bodies.size(); ++i) {
        auto& connection = nb::cast<Http2Connection&>(connections[i]);
        if (connection.respond(nb::cast<uint32_t>(stream_ids[i]), block, nb::cast<nb::bytes>(bodies[i]), true)) ++answered;
    }
    return answered;
}

}  // namespace

void bind_http2(nb::module_& m) {
    nb::class_<HpackDecoder>(m, "HpackDecoder", "Decodes the blocks of headers of a connection, in their order.")
        .def(nb::init<>())
        .def("decode", &decode_block, nb::arg("block"), "The fields of a block, as (name, value). Raises ValueError where it is damaged.")
        .def("entries", &entries_of, "The fields in the table of the connection, the newest first.")
        .def_prop_ro("table_bytes", [](HpackDecoder& decoder) { return decoder.table().size_bytes(); });

    m.def("http2_header_block", &http2_header_block, nb::arg("status"), nb::arg("headers"),
          "The head of an answer, good for every connection; without a status where it is 0. Raises ValueError for "
          "what HTTP/2 does not have.");

    m.def("http2_respond_all", &respond_all, nb::arg("connections"), nb::arg("stream_ids"), nb::arg("block"), nb::arg("bodies"),
          "Answers a stream of each connection, which may come several times, with one head and a body each, whole. How many of them "
          "were still there.");

    nb::class_<Http2Connection>(m, "Http2Connection", "The server's end of an HTTP/2 connection, without input and output.")
        .def(
            "__init__",
            [](Http2Connection* self, uint32_t max_streams, uint32_t max_header_bytes, uint32_t stream_window, uint32_t connection_window,
               uint32_t max_frame_bytes, uint32_t max_resets, uint32_t max_control_frames, uint32_t max_continuations,
               uint32_t max_unread_bytes, std::string batch_start) {
                const Http2Limits limits{max_streams, max_header_bytes,   stream_window,     connection_window, max_frame_bytes,
                                         max_resets,  max_control_frames, max_continuations, max_unread_bytes};
                new (self) Http2Connection(limits, std::move(batch_start));
            },
            nb::arg("max_streams"), nb::arg("max_header_bytes"), nb::arg("stream_window"), nb::arg("connection_window"),
            nb::arg("max_frame_bytes") = SMALLEST_MAX_FRAME, nb::arg("max_resets") = 1000, nb::arg("max_control_frames") = 10'000,
            nb::arg("max_continuations") = 32, nb::arg("max_unread_bytes") = 65536, nb::arg("batch_start") = "")
        .def("upgrade", &Http2Connection::upgrade, nb::arg("settings"), "Begins with stream 1, whose request came over HTTP/1.1.")
        .def("receive", &Http2Connection::receive, nb::arg("data"), "Takes what the peer sent; gives events.")
        .def("inform", &Http2Connection::inform, nb::arg("stream_id"), nb::arg("block"), "Sends an interim answer.")
        .def("respond", &Http2Connection::respond, nb::arg("stream_id"), nb::arg("block"), nb::arg("body"), nb::arg("ends"),
             "Answers a stream. False: it is gone.")
        .def("send_data", &Http2Connection::send_data, nb::arg("stream_id"), nb::arg("data"), nb::arg("ends"),
             "Sends more of an answer. False: the stream is gone.")
        .def("take_output", &Http2Connection::take_output, nb::arg("most_bytes") = 1 << 20,
             "What may be sent now, with about so much of bodies at most.")
        .def("take_drained", &Http2Connection::take_drained, "The streams whose data has waited and is gone since the last call.")
        .def("consume", &Http2Connection::consume, nb::arg("stream_id"), nb::arg("size"),
             "So many bytes of a body are read: more may come.")
        .def("unsent_bytes", &Http2Connection::unsent_bytes, nb::arg("stream_id") = 0, "What waits of a stream, or of all (0).")
        .def("reset", &Http2Connection::reset, nb::arg("stream_id"), nb::arg("code"),
             "Ends a stream: at once, or by NO_ERROR when its answer is sent.")
        .def("go_away", &Http2Connection::go_away, nb::arg("code") = 0, "Takes no more streams; those that are open go on.")
        .def("refill_budgets", &Http2Connection::refill_budgets, "Forgets the resets and control frames so far.")
        .def_prop_ro("open_streams", &Http2Connection::open_streams)
        .def_prop_ro("is_over", &Http2Connection::is_over)
        .def_prop_ro("failure", &Http2Connection::failure);
}

}  // namespace paperwasp
