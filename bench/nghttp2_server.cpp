// The server's end of HTTP/2 by nghttp2, as a kernel of the core would use it: bytes in, requests as Python's objects out, answers as
// bytes. It does what Http2Connection does where nothing goes wrong, but for batches: what http2_kernels.py compares the two by.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nghttp2/nghttp2.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace nb = nanobind;

namespace {

// Names of headers that have come before: one string of Python's for each.
nb::object name_of(const uint8_t* name, size_t size) {
    static auto* names = new std::unordered_map<std::string_view, PyObject*>();
    const std::string_view text(reinterpret_cast<const char*>(name), size);
    if (const auto found = names->find(text); found != names->end()) return nb::borrow(found->second);
    nb::object made = nb::steal(PyUnicode_DecodeLatin1(text.data(), static_cast<Py_ssize_t>(size), nullptr));
    if (names->size() < 1000) names->emplace(*new std::string(text), nb::object(made).release().ptr());
    return made;
}

nb::object latin1(const uint8_t* text, size_t size) {
    return nb::steal(PyUnicode_DecodeLatin1(reinterpret_cast<const char*>(text), static_cast<Py_ssize_t>(size), nullptr));
}

struct Stream {
    nb::object method, scheme, authority, path, query = nb::str("");
    nb::dict headers;
    std::string body;
    nb::bytes answer;
    size_t sent = 0;
};

struct Fields {
    std::vector<std::string> texts;
    std::vector<nghttp2_nv> pairs;
};

class Nghttp2Server {
  public:
    Nghttp2Server(uint32_t max_streams, int32_t stream_window, int32_t connection_window) {
        nghttp2_session_callbacks* callbacks;
        nghttp2_session_callbacks_new(&callbacks);
        nghttp2_session_callbacks_set_on_begin_headers_callback(callbacks, begin_headers);
        nghttp2_session_callbacks_set_on_header_callback(callbacks, header);
        nghttp2_session_callbacks_set_on_data_chunk_recv_callback(callbacks, data);
        nghttp2_session_callbacks_set_on_frame_recv_callback(callbacks, frame);
        nghttp2_session_callbacks_set_on_stream_close_callback(callbacks, close);
        nghttp2_session_server_new(&session_, callbacks, this);
        nghttp2_session_callbacks_del(callbacks);
        const nghttp2_settings_entry settings[] = {{NGHTTP2_SETTINGS_MAX_CONCURRENT_STREAMS, max_streams},
                                                   {NGHTTP2_SETTINGS_INITIAL_WINDOW_SIZE, static_cast<uint32_t>(stream_window)}};
        nghttp2_submit_settings(session_, NGHTTP2_FLAG_NONE, settings, 2);
        nghttp2_session_set_local_window_size(session_, NGHTTP2_FLAG_NONE, 0, connection_window);
    }
    ~Nghttp2Server() { nghttp2_session_del(session_); }
    Nghttp2Server(const Nghttp2Server&) = delete;
    Nghttp2Server& operator=(const Nghttp2Server&) = delete;

    nb::list receive(const nb::bytes& data) {
        events_ = nb::list();
        const auto read = nghttp2_session_mem_recv(session_, reinterpret_cast<const uint8_t*>(data.c_str()), data.size());
        if (read != static_cast<ssize_t>(data.size())) throw std::runtime_error(nghttp2_strerror(static_cast<int>(read)));
        return std::move(events_);
    }

    void respond(int32_t stream_id, const Fields& fields, nb::bytes body) {
        Stream& stream = *streams_.at(stream_id);
        stream.answer = std::move(body);
        nghttp2_data_provider provider{{0}, more};
        provider.source.ptr = &stream;
        nghttp2_submit_response(session_, stream_id, fields.pairs.data(), fields.pairs.size(), &provider);
    }

    nb::bytes take_output() {
        output_.clear();
        const uint8_t* piece;
        for (ssize_t size; (size = nghttp2_session_mem_send(session_, &piece)) > 0;)
            output_.append(reinterpret_cast<const char*>(piece), static_cast<size_t>(size));
        return nb::bytes(output_.data(), output_.size());
    }

  private:
    static Nghttp2Server& self(void* given) { return *static_cast<Nghttp2Server*>(given); }

    static int begin_headers(nghttp2_session*, const nghttp2_frame* frame, void* given) {
        self(given).streams_.emplace(frame->hd.stream_id, std::make_unique<Stream>());
        return 0;
    }

    static int header(nghttp2_session*, const nghttp2_frame* frame, const uint8_t* name, size_t name_size, const uint8_t* value,
                      size_t size, uint8_t, void* given) {
        Stream& stream = *self(given).streams_.at(frame->hd.stream_id);
        if (name[0] != ':') {
            stream.headers[name_of(name, name_size)] = latin1(value, size);
        } else if (name[1] == 'm') {
            stream.method = name_of(value, size);
        } else if (name[1] == 's') {
            stream.scheme = name_of(value, size);
        } else if (name[1] == 'a') {
            stream.authority = name_of(value, size);
            stream.headers["host"] = stream.authority;
        } else {
            const auto* mark = static_cast<const uint8_t*>(std::memchr(value, '?', size));
            const size_t path = mark == nullptr ? size : static_cast<size_t>(mark - value);
            stream.path = latin1(value, path);
            if (mark != nullptr) stream.query = latin1(mark + 1, size - path - 1);
        }
        return 0;
    }

    static int data(nghttp2_session*, uint8_t, int32_t stream_id, const uint8_t* data, size_t size, void* given) {
        self(given).streams_.at(stream_id)->body.append(reinterpret_cast<const char*>(data), size);
        return 0;
    }

    static int frame(nghttp2_session*, const nghttp2_frame* frame, void* given) {
        const bool has_request = frame->hd.type == NGHTTP2_HEADERS || frame->hd.type == NGHTTP2_DATA;
        if (!has_request || (frame->hd.flags & NGHTTP2_FLAG_END_STREAM) == 0) return 0;
        Stream& stream = *self(given).streams_.at(frame->hd.stream_id);
        self(given).events_.append(nb::make_tuple("request", frame->hd.stream_id, stream.method, stream.scheme, stream.authority,
                                                  stream.path, stream.query, stream.headers,
                                                  nb::bytes(stream.body.data(), stream.body.size()), true));
        return 0;
    }

    static int close(nghttp2_session*, int32_t stream_id, uint32_t, void* given) {
        self(given).streams_.erase(stream_id);
        return 0;
    }

    static ssize_t more(nghttp2_session*, int32_t, uint8_t* to, size_t most, uint32_t* flags, nghttp2_data_source* source, void*) {
        Stream& stream = *static_cast<Stream*>(source->ptr);
        const size_t size = std::min(most, stream.answer.size() - stream.sent);
        std::memcpy(to, stream.answer.c_str() + stream.sent, size);
        stream.sent += size;
        if (stream.sent == stream.answer.size()) *flags |= NGHTTP2_DATA_FLAG_EOF;
        return static_cast<ssize_t>(size);
    }

    nghttp2_session* session_;
    std::unordered_map<int32_t, std::unique_ptr<Stream>> streams_;
    nb::list events_;
    std::string output_;
};

}  // namespace

NB_MODULE(nghttp2_server, m) {
    m.def("version", [] { return std::string(nghttp2_version(0)->version_str); });
    nb::class_<Fields>(m, "Fields").def("__init__", [](Fields* made, const nb::list& given) {
        new (made) Fields();
        for (const auto& pair : given)
            for (const auto& text : nb::borrow<nb::tuple>(pair)) {
                const auto bytes = nb::borrow<nb::bytes>(text);
                made->texts.emplace_back(bytes.c_str(), bytes.size());
            }
        for (size_t i = 0; i < made->texts.size(); i += 2) {
            auto *name = reinterpret_cast<uint8_t*>(made->texts[i].data()), *value = reinterpret_cast<uint8_t*>(made->texts[i + 1].data());
            made->pairs.push_back({name, value, made->texts[i].size(), made->texts[i + 1].size(),
                                   NGHTTP2_NV_FLAG_NO_COPY_NAME | NGHTTP2_NV_FLAG_NO_COPY_VALUE});
        }
    });
    nb::class_<Nghttp2Server>(m, "Nghttp2Server")
        .def(nb::init<uint32_t, int32_t, int32_t>())
        .def("receive", &Nghttp2Server::receive)
        .def("respond", &Nghttp2Server::respond)
        .def("take_output", &Nghttp2Server::take_output);
}
