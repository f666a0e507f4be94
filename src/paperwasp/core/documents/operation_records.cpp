// The order and the payloads of log records: operations as bytes, docs/internals/formats/operations.md. content/log/records.py reads them.
//
// `operation_records` takes entries (`content.log.records.Entry`, or plain changes) in the order of the log and makes one payload of each
// run that is of one partition:
//
//     version u8 · count u32 · for each: kind u8 · flags u8 · id size u16 · body size u32 · time u64 · global id 12 bytes · id · body
//
// where a body begins with the time that is required, then with the size of the condition and the condition, where there are any.
// The interpreter's lock is held: what is read are Python's objects.
#include <cstring>
#include <limits>
#include <string_view>
#include <vector>

#include "core.hpp"
#include "documents/plain_change.hpp"

namespace paperwasp {
namespace {

constexpr uint8_t PUT = 1, UPDATE = 2;
constexpr uint8_t CREATE = 1, CONDITIONAL = 2, REQUIRED_TIME = 4;
constexpr size_t GID_BYTES = 12, START_BYTES = 5, ENTRY_BYTES = 16 + GID_BYTES;

std::string_view bytes_of(nb::handle value) {
    char* at = nullptr;
    Py_ssize_t size = 0;
    if (PyBytes_AsStringAndSize(value.ptr(), &at, &size) != 0) throw nb::python_error();
    return {at, static_cast<size_t>(size)};
}

std::string_view text_of(nb::handle value) {
    Py_ssize_t size = 0;
    const char* at = PyUnicode_AsUTF8AndSize(value.ptr(), &size);
    if (at == nullptr) throw nb::python_error();
    return {at, static_cast<size_t>(size)};
}

// What an entry's parts are called, as objects: looking an attribute up by them makes none.
struct Names {
    nb::object kind = name("kind"), id = name("id"), gid = name("gid"), time = name("timestamp_us"), body = name("body"),
               create = name("create"), condition = name("condition"), required = name("required_us");

    static nb::object name(const char* text) { return nb::steal(PyUnicode_InternFromString(text)); }
};

nb::object part(nb::handle of, const nb::object& name) {
    PyObject* found = PyObject_GetAttr(of.ptr(), name.ptr());
    if (found == nullptr) throw nb::python_error();
    return nb::steal(found);
}

// The parts of one entry; `id`, `gid`, `body` and `condition` are of objects that are kept meanwhile, or of a change in the list.
struct Entry {
    nb::object gid_object, id_object, body_object, condition_object;
    std::string_view gid, id, body, condition;
    uint64_t time_us, required_us;
    uint8_t kind, flags;

    explicit Entry(const PlainChange& change)
        : gid(change.gid.data(), change.gid.size()),
          id(change.id),
          body(change.values.json),
          time_us(change.timestamp_us),
          required_us(0),
          kind(change.is_update ? UPDATE : PUT),
          flags(0) {}

    Entry(nb::handle from, const Names& names)
        : gid_object(part(from, names.gid)),
          id_object(part(from, names.id)),
          body_object(part(from, names.body)),
          condition_object(part(from, names.condition)),
          gid(bytes_of(gid_object)),
          id(text_of(id_object)),
          body(bytes_of(body_object)),
          time_us(nb::cast<uint64_t>(part(from, names.time))),
          required_us(nb::cast<uint64_t>(part(from, names.required))),
          kind(static_cast<uint8_t>(PyLong_AsLong(part(from, names.kind).ptr()))),
          flags(part(from, names.create).is(nb::handle(Py_True)) ? CREATE : 0) {
        if (gid.size() != GID_BYTES) throw nb::value_error("a global id of another size");
        if (required_us != 0) flags |= REQUIRED_TIME;
        if (condition_object.is_none()) return;
        flags |= CONDITIONAL;
        condition = text_of(condition_object);
    }

    size_t body_bytes() const { return body.size() + (flags & CONDITIONAL ? 4 + condition.size() : 0) + (flags & REQUIRED_TIME ? 8 : 0); }
};

// Writes numbers and bytes behind each other, in the machine's order, which is the format's.
class Writing {
  public:
    explicit Writing(char* at) : at_(at) {}

    template <typename T>
    void number(T value) {
        std::memcpy(at_, &value, sizeof(T));
        at_ += sizeof(T);
    }

    void bytes(std::string_view value) {
        std::memcpy(at_, value.data(), value.size());
        at_ += value.size();
    }

    void entry(const Entry& entry) {
        number(entry.kind);
        number(entry.flags);
        number(static_cast<uint16_t>(entry.id.size()));
        number(static_cast<uint32_t>(entry.body_bytes()));
        number(entry.time_us);
        bytes(entry.gid);
        bytes(entry.id);
        if (entry.flags & REQUIRED_TIME) number(entry.required_us);
        if (entry.flags & CONDITIONAL) {
            number(static_cast<uint32_t>(entry.condition.size()));
            bytes(entry.condition);
        }
        bytes(entry.body);
    }

  private:
    char* at_;
};

void check_partitions(uint32_t partitions) {
    if (partitions == 0 || (partitions & (partitions - 1)) != 0) throw nb::value_error("partitions are a power of two");
}

// A partition is the low bits of a global id's first byte.
uint32_t partition_of(std::string_view gid, uint32_t partitions) { return static_cast<uint8_t>(gid[0]) & (partitions - 1); }

// (partition, payload) of each run of entries.
nb::list operation_records(const nb::list& entries, uint8_t version, uint32_t partitions) {
    check_partitions(partitions);
    const Names names;
    nb::list records;
    std::vector<Entry> run;
    size_t size = START_BYTES;
    uint32_t partition = 0;
    const auto end_run = [&] {
        if (run.empty()) return;
        PyObject* made = PyBytes_FromStringAndSize(nullptr, static_cast<Py_ssize_t>(size));
        if (made == nullptr) throw nb::python_error();
        const nb::object payload = nb::steal(made);
        Writing writing(PyBytes_AS_STRING(made));
        writing.number(version);
        writing.number(static_cast<uint32_t>(run.size()));
        for (const Entry& entry : run) writing.entry(entry);
        records.append(nb::make_tuple(partition, payload));
        run.clear();
        size = START_BYTES;
    };
    for (nb::handle each : entries) {
        const PlainChange* const change = plain_change_of(each);
        Entry entry = change != nullptr ? Entry(*change) : Entry(each, names);
        if (entry.id.size() > std::numeric_limits<uint16_t>::max()) throw nb::value_error("an id that is too long");
        const uint32_t of = partition_of(entry.gid, partitions);
        if (of != partition) end_run();
        partition = of;
        if (entry.body_bytes() > std::numeric_limits<uint32_t>::max()) throw nb::value_error("a body that is too long");
        size += ENTRY_BYTES + entry.id.size() + entry.body_bytes();
        run.push_back(std::move(entry));
    }
    end_run();
    return records;
}

// The operation of what waits for the writer: (operation, reply, size in bytes).
nb::handle operation_of(nb::handle waiting) {
    if (!PyTuple_Check(waiting.ptr()) || PyTuple_GET_SIZE(waiting.ptr()) != 3) throw nb::value_error("what waits has three parts");
    return PyTuple_GET_ITEM(waiting.ptr(), 0);
}

// The document types that the operations of a batch were read as, one that comes again right away once; None where one is no plain change.
nb::object read_as_of(const nb::list& batch) {
    nb::list found;
    const PlainType* last = nullptr;
    for (nb::handle waiting : batch) {
        const PlainChange* const change = plain_change_of(operation_of(waiting));
        if (change == nullptr) return nb::none();
        if (change->type.get() == last) continue;
        last = change->type.get();
        found.append(last->read_as);
    }
    return found;
}

// (operations, replies) of a batch of plain changes in the order of the log: by partition, then as they came. Gives the changes their
// times, a microsecond apart, in the order in which they came.
nb::tuple in_order_of_log(const nb::list& batch, uint64_t first_us, uint32_t partitions) {
    check_partitions(partitions);
    std::vector<std::vector<nb::handle>> by_partition(partitions);
    for (nb::handle waiting : batch) {
        const nb::handle operation = operation_of(waiting);
        if (plain_change_of(operation) == nullptr) throw nb::value_error("a batch of plain changes has something else");
        PlainChange& change = *nb::inst_ptr<PlainChange>(operation);
        change.timestamp_us = first_us++;
        by_partition[partition_of({change.gid.data(), change.gid.size()}, partitions)].push_back(waiting);
    }
    nb::list operations, replies;
    for (const std::vector<nb::handle>& partition : by_partition) {
        for (const nb::handle waiting : partition) {
            operations.append(nb::handle(PyTuple_GET_ITEM(waiting.ptr(), 0)));
            replies.append(nb::handle(PyTuple_GET_ITEM(waiting.ptr(), 1)));
        }
    }
    return nb::make_tuple(operations, replies);
}

}  // namespace

void bind_operation_records(nb::module_& m) {
    m.def("read_as_of", &read_as_of, nb::arg("batch"));
    m.def("in_order_of_log", &in_order_of_log, nb::arg("batch"), nb::arg("first_us"), nb::arg("partitions"));
    m.def("operation_records", &operation_records, nb::arg("entries"), nb::arg("version"), nb::arg("partitions"));
}

}  // namespace paperwasp
