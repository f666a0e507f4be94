// The strings of a column: see column_strings.hpp.
#include "attributes/column_strings.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t FIRST_SURROGATE = 0xD800, LAST_SURROGATE = 0xDFFF;

void append_utf8(uint32_t character, std::string& to) {
    if (character < 0x80) {
        to += static_cast<char>(character);
    } else if (character < 0x800) {
        to += static_cast<char>(0xC0 | character >> 6);
        to += static_cast<char>(0x80 | (character & 0x3F));
    } else if (character < 0x10000) {
        to += static_cast<char>(0xE0 | character >> 12);
        to += static_cast<char>(0x80 | (character >> 6 & 0x3F));
        to += static_cast<char>(0x80 | (character & 0x3F));
    } else {
        to += static_cast<char>(0xF0 | character >> 18);
        to += static_cast<char>(0x80 | (character >> 12 & 0x3F));
        to += static_cast<char>(0x80 | (character >> 6 & 0x3F));
        to += static_cast<char>(0x80 | (character & 0x3F));
    }
}

}  // namespace

ColumnStrings::~ColumnStrings() {
    for (size_t code = 0; code < count_; ++code) {
        const size_t piece = piece_of(code);
        Py_DECREF(pieces_[piece][code - begin_of(piece)]);
    }
}

void ColumnStrings::extend() {
    const std::lock_guard lock(mutex_);
    for (size_t code = count_, end = strings_.size(); code < end; ++code) {
        const size_t piece = piece_of(code);
        if (!pieces_[piece]) pieces_[piece] = std::make_unique<PyObject*[]>(FIRST << piece);
        const nb::object string = strings_[code];
        if (!PyUnicode_Check(string.ptr())) throw nb::type_error("a column of strings has strings");
        pieces_[piece][code - begin_of(piece)] = nb::object(string).release().ptr();
        count_.store(code + 1, std::memory_order_release);
    }
}

std::optional<std::string_view> ColumnStrings::text(uint64_t code, std::string& buffer) const {
    if (code >= count_.load(std::memory_order_acquire)) return std::nullopt;
    const size_t piece = piece_of(code);
    PyObject* const string = pieces_[piece][code - begin_of(piece)];
    const auto size = static_cast<size_t>(PyUnicode_GET_LENGTH(string));
    const void* const data = PyUnicode_DATA(string);
    if (PyUnicode_IS_ASCII(string)) return std::string_view(static_cast<const char*>(data), size);
    const auto kind = PyUnicode_KIND(string);
    buffer.clear();
    for (size_t i = 0; i < size; ++i) {
        const uint32_t character = PyUnicode_READ(kind, data, i);
        if (character >= FIRST_SURROGATE && character <= LAST_SURROGATE) return std::nullopt;
        append_utf8(character, buffer);
    }
    return buffer;
}

void bind_column_strings(nb::module_& m) {
    nb::class_<ColumnStrings>(m, "ColumnStrings")
        .def(nb::init<nb::list>(), nb::arg("strings"))
        .def("extend", &ColumnStrings::extend, "Notes the strings that the list has more: it only grows.")
        .def(
            "text",
            [](const ColumnStrings& self, uint64_t code) -> nb::object {
                std::string buffer;
                const std::optional<std::string_view> found = self.text(code, buffer);
                return found ? nb::object(nb::bytes(found->data(), found->size())) : nb::none();
            },
            nb::arg("code"), "The text of a code in UTF-8; None: it is not noted yet, or has surrogates.");
}

}  // namespace paperwasp
