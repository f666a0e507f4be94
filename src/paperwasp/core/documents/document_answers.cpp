// The answers to changes of documents that are done: `{"pathId":"…","id":"…"}` for each of many whose paths, and whose ids, begin alike.
//
// Threads: nothing is kept.
#include <string>
#include <string_view>

#include "core.hpp"

namespace paperwasp {
namespace {

// As JSON has it between the quotes: all is ASCII without control characters.
void append_escaped(std::string_view text, std::string& to) {
    for (const char c : text) {
        if (c == '"' || c == '\\') to += '\\';
        to += c;
    }
}

std::string_view ascii(nb::handle text) {
    Py_ssize_t size = 0;
    const char* bytes = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (bytes == nullptr) nb::raise_python_error();
    for (Py_ssize_t i = 0; i < size; ++i)
        if (bytes[i] < ' ' || bytes[i] > '~') throw nb::value_error("not of printable ASCII");
    return {bytes, static_cast<size_t>(size)};
}

nb::list document_answers(const nb::str& path_start, const nb::str& id_start, const nb::list& names) {
    std::string path = "{\"pathId\":\"", id = "\",\"id\":\"", answer, name;
    append_escaped(ascii(path_start), path);
    append_escaped(ascii(id_start), id);
    nb::list answers;
    for (const nb::handle each : names) {
        name.clear();
        append_escaped(ascii(each), name);
        (((((answer = path) += name) += id) += name) += "\"}");
        answers.append(nb::bytes(answer.data(), answer.size()));
    }
    return answers;
}

}  // namespace

void bind_document_answers(nb::module_& m) {
    m.def("document_answers", &document_answers, nb::arg("path_start"), nb::arg("id_start"), nb::arg("names"),
          "The JSON of the answer to each change that is done. Raises ValueError for what is not of printable ASCII.");
}

}  // namespace paperwasp
