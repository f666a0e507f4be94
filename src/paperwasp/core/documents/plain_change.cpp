// PlainChange for Python: what it says of itself, and what a run of puts becomes in the columns by row and in the document store.
//
// Threads: as `PlainChange`; the interpreter's lock is held, since what is made or read are Python's objects.
#include "documents/plain_change.hpp"

#include <nanobind/stl/string.h>

#include <cstring>
#include <limits>
#include <memory>
#include <vector>

#include "arrays.hpp"

namespace paperwasp {
namespace {

nb::object or_error(PyObject* made) {
    if (made == nullptr) throw nb::python_error();
    return nb::steal(made);
}

nb::object string_of(std::string_view text, bool is_ascii) {
    const auto size = static_cast<Py_ssize_t>(text.size());
    if (!is_ascii || size == 0) return or_error(PyUnicode_DecodeUTF8(text.data(), size, nullptr));
    nb::object made = or_error(PyUnicode_New(size, 127));
    std::memcpy(PyUnicode_1BYTE_DATA(made.ptr()), text.data(), text.size());
    return made;
}

nb::bytes bytes_of(std::string_view bytes) { return nb::bytes(bytes.data(), bytes.size()); }

nb::bytes gid_of(const PlainChange& change) { return nb::bytes(change.gid.data(), change.gid.size()); }

// The value of a field, None where the change has none. Names of fields are mostly the same objects.
nb::object get(const PlainChange& change, nb::str name) {
    for (const PlainValue& value : change.values.values) {
        if (value.field->name.is(name)) return change.values.object(value);
    }
    const PlainField* const field = change.type->find(name.c_str(), 0);
    for (const PlainValue& value : change.values.values) {
        if (value.field == field) return change.values.object(value);
    }
    return nb::none();
}

// The value of the document store: docs/internals/formats/document-store.md.
nb::object stored(const PlainChange& put, uint8_t form, uint32_t lid) {
    constexpr size_t HEADER_BYTES = 1 + 8 + 4 + 2;
    const std::string &id = put.id, &json = put.values.json;
    nb::object made = or_error(PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(HEADER_BYTES + id.size() + json.size())));
    char* at = PyBytes_AS_STRING(made.ptr());
    const auto write = [&at](const void* from, size_t size) {
        std::memcpy(at, from, size);
        at += size;
    };
    const auto id_size = static_cast<uint16_t>(id.size());
    write(&form, 1);
    write(&put.timestamp_us, 8);
    write(&lid, 4);
    write(&id_size, 2);
    write(id.data(), id.size());
    write(json.data(), json.size());
    return made;
}

// Of puts that get lids from `first_lid` on: (global ids behind each other, times, sizes of their JSON, and by global id what the document
// store keeps, in the form of that number).
nb::tuple rows_of(const nb::list& puts, uint32_t first_lid, uint8_t form) {
    auto times = std::make_unique<std::vector<uint64_t>>();
    auto sizes = std::make_unique<std::vector<uint32_t>>();
    std::string gids;
    nb::list values;
    for (nb::handle each : puts) {
        const PlainChange* put = plain_change_of(each);
        if (put == nullptr) throw nb::value_error("rows are of plain changes");
        gids.append(put->gid.data(), put->gid.size());
        values.append(nb::make_tuple(gid_of(*put), stored(*put, form, first_lid + static_cast<uint32_t>(sizes->size()))));
        times->push_back(put->timestamp_us);
        sizes->push_back(static_cast<uint32_t>(put->values.json.size()));
    }
    return nb::make_tuple(bytes_of(gids), own(std::move(times)), own(std::move(sizes)), values);
}

}  // namespace

const PlainField* PlainType::find(std::string_view key, size_t likely) const {
    if (likely < fields.size() && fields[likely].key == key) return &fields[likely];
    const auto found = places.find(std::string(key));
    return found == places.end() ? nullptr : &fields[found->second];
}

nb::object PlainValues::object(const PlainValue& value) const {
    switch (value.field->kind) {
        case PlainKind::TEXT:
            return string_of(view(value.text), value.text.is_ascii);
        case PlainKind::WHOLE:
            return or_error(PyLong_FromLongLong(value.whole));
        case PlainKind::TRUTH:
            return nb::bool_(value.truth);
        case PlainKind::DOUBLE:
        case PlainKind::SINGLE:
            return or_error(PyFloat_FromDouble(value.number));
        case PlainKind::TEXTS: {
            nb::list found;
            for (uint32_t i = 0; i < value.many.count; ++i) {
                const PlainText& text = texts[value.many.begin + i];
                found.append(string_of(view(text), text.is_ascii));
            }
            return found;
        }
        default:
            return cells[value.cells];
    }
}

nb::dict PlainValues::dict() const {
    nb::dict found;
    for (const PlainValue& value : values) found[value.field->name] = object(value);
    return found;
}

const PlainChange* plain_change_of(nb::handle object) {
    return nb::isinstance<PlainChange>(object) ? nb::inst_ptr<PlainChange>(object) : nullptr;
}

std::optional<std::vector<std::string_view>> ascii_texts_of(const nb::list& puts, std::string_view name) {
    std::vector<std::string_view> texts;
    texts.reserve(puts.size());
    const PlainType* type = nullptr;
    const PlainField* field = nullptr;
    for (nb::handle each : puts) {
        const PlainChange* const put = plain_change_of(each);
        if (put == nullptr) throw nb::value_error("texts are of plain changes");
        if (put->type.get() != type) {
            type = put->type.get();
            field = type->find(name, 0);
        }
        std::string_view text;
        for (const PlainValue& value : put->values.values) {
            if (value.field != field) continue;
            if (field->kind != PlainKind::TEXT || !value.text.is_ascii) return std::nullopt;
            text = put->values.view(value.text);
        }
        texts.push_back(text);
    }
    return texts;
}

void bind_plain_change(nb::module_& m) {
    nb::class_<PlainChange>(m, "PlainChange", "A put or an update of plain fields: see plain_change.hpp.")
        .def_prop_ro("id", [](const PlainChange& change) { return string_of(change.id, true); })
        .def_prop_ro("gid", &gid_of)
        .def_prop_ro("document_type", [](const PlainChange& change) { return change.type->name; })
        .def_prop_ro("read_as", [](const PlainChange& change) { return change.type->read_as; })
        .def_ro("is_update", &PlainChange::is_update)
        .def_rw("timestamp_us", &PlainChange::timestamp_us)
        .def_prop_ro("body", [](const PlainChange& change) { return bytes_of(change.values.json); })
        .def_prop_ro("body_bytes", [](const PlainChange& change) { return change.values.json.size(); })
        .def_prop_ro("fields", [](const PlainChange& change) { return change.values.dict(); })
        .def("get", &get, nb::arg("name"));
    m.def("rows_of", &rows_of, nb::arg("puts"), nb::arg("first_lid"), nb::arg("form"));
}

}  // namespace paperwasp
