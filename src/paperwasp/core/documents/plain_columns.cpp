// Plain changes and the columns of single numbers: updates that change rows in place, and the numbers that a run of puts appends.
//
// A column is an array of NumPy, of the type of its field; what stands for no value in it is the least integer of the type, or NaN, and
// below 0 of a truth value. Rows are given by lid; NO_LID says of an update that there is no such document.
//
// Threads: the writer of the columns alone. Whoever reads a row meanwhile finds the old number or the new one: each is stored at once.
// The interpreter's lock stays where it is: a change takes some 20 ns, and getting the lock back takes longer than most batches.
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "core.hpp"
#include "documents/plain_change.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t NO_LID = 0xFFFFFFFFu;

using AnyArray = nb::ndarray<nb::ndim<1>, nb::c_contig, nb::device::cpu>;

const PlainChange& change_at(const nb::list& changes, size_t place) {
    const PlainChange* const change = plain_change_of(changes[place]);
    if (change == nullptr) throw nb::value_error("columns are filled from plain changes");
    return *change;
}

// Calls `with` with a null pointer to the type of a column's numbers. Throws ValueError for an array of other things.
template <typename With>
auto with_type(const AnyArray& array, With with) {
    const nb::dlpack::dtype type = array.dtype();
    if (type == nb::dtype<int8_t>()) return with(static_cast<int8_t*>(nullptr));
    if (type == nb::dtype<int32_t>()) return with(static_cast<int32_t*>(nullptr));
    if (type == nb::dtype<int64_t>()) return with(static_cast<int64_t*>(nullptr));
    if (type == nb::dtype<float>()) return with(static_cast<float*>(nullptr));
    if (type == nb::dtype<double>()) return with(static_cast<double*>(nullptr));
    throw nb::value_error("a column of other numbers");
}

// A column as changes see it.
class NumberColumn {
  public:
    NumberColumn(const PlainField* field, const AnyArray& array) : field_(field), at_(array.data()), size_(array.size()) {
        if (field != nullptr && (field->kind < PlainKind::WHOLE || field->kind > PlainKind::SINGLE))
            throw nb::value_error("a field that has no numbers");
        store_ = with_type(array, [](auto* type) { return &store_as<std::remove_pointer_t<decltype(type)>>; });
    }

    const PlainField* field() const { return field_; }
    size_t size() const { return size_; }

    // Whether the column keeps a value otherwise than it keeps none.
    static bool is_kept(const PlainValue& value) {
        switch (value.field->kind) {
            case PlainKind::TRUTH:
                return true;
            case PlainKind::WHOLE:
                return value.whole != value.field->low;
            case PlainKind::DOUBLE:
            case PlainKind::SINGLE:
                return value.number == value.number;
            default:
                return false;
        }
    }

    void store(size_t row, const PlainValue& value) const { store_(at_, row, value); }

  private:
    template <typename T>
    static void store_as(void* at, size_t row, const PlainValue& value) {
        const PlainKind kind = value.field->kind;
        T number = kind == PlainKind::TRUTH   ? static_cast<T>(value.truth)
                   : kind == PlainKind::WHOLE ? static_cast<T>(value.whole)
                                              : static_cast<T>(value.number);
        __atomic_store(static_cast<T*>(at) + row, &number, __ATOMIC_RELAXED);
    }

    const PlainField* field_;
    void* at_;
    size_t size_;
    void (*store_)(void* at, size_t row, const PlainValue& value);
};

const NumberColumn* column_of(const std::vector<NumberColumn>& columns, const PlainField* field) {
    for (const NumberColumn& column : columns)
        if (column.field() == field) return &column;
    return nullptr;
}

// The changes that stand from `first` on and are alike: puts, or updates, read as one document type. An update has no other fields than the
// first one.
nb::list alike_from(const nb::list& entries, size_t first) {
    if (first >= entries.size()) throw nb::value_error("no such entry");
    const PlainChange& model = change_at(entries, first);
    const auto has = [&model](const PlainValue& value) {
        return std::any_of(model.values.values.begin(), model.values.values.end(),
                           [&value](const PlainValue& other) { return other.field == value.field; });
    };
    nb::list found;
    for (size_t i = first; i < entries.size(); ++i) {
        const PlainChange* const change = plain_change_of(entries[i]);
        if (change == nullptr || change->type != model.type || change->is_update != model.is_update) break;
        const std::vector<PlainValue>& values = change->values.values;
        if (model.is_update && !std::all_of(values.begin(), values.end(), has)) break;
        found.append(entries[i]);
    }
    return found;
}

// The global ids of changes, behind each other.
nb::bytes gids_of(const nb::list& changes) {
    std::string gids;
    gids.reserve(changes.size() * 12);
    for (size_t i = 0; i < changes.size(); ++i) {
        const PlainChange& change = change_at(changes, i);
        gids.append(change.gid.data(), change.gid.size());
    }
    return nb::bytes(gids.data(), gids.size());
}

// Changes the rows of updates in their order, and notes that and when they were changed; an update without a row changes nothing. Columns
// are given by the names of their fields. Ends before the first update that has a field without a column, or a value that its column
// keeps as it keeps none. Returns how many updates come before that.
size_t set_in_place(const nb::list& updates, In<uint32_t> lids, const std::vector<std::pair<std::string, AnyArray>>& columns,
                    Out<uint8_t> changed, Out<uint64_t> timestamps) {
    if (lids.size() != updates.size()) throw nb::value_error("one lid for each update");
    std::vector<NumberColumn> targets;
    const PlainType* type = nullptr;
    for (size_t i = 0; i < updates.size(); ++i) {
        const PlainChange& update = change_at(updates, i);
        if (update.type.get() != type) {
            type = update.type.get();
            targets.clear();
            for (const auto& [name, array] : columns)
                if (const PlainField* field = type->find(name, 0)) targets.emplace_back(field, array);
        }
        const uint32_t lid = lids.data()[i];
        if (lid == NO_LID) continue;
        if (lid >= changed.size() || lid >= timestamps.size()) throw nb::value_error("no such row");
        for (const PlainValue& value : update.values.values) {
            const NumberColumn* const column = column_of(targets, value.field);
            if (column == nullptr || !NumberColumn::is_kept(value)) return i;
            if (lid >= column->size()) throw nb::value_error("no such row of a column");
        }
        for (const PlainValue& value : update.values.values) column_of(targets, value.field)->store(lid, value);
        __atomic_store_n(changed.data() + lid, uint8_t{1}, __ATOMIC_RELAXED);
        __atomic_store_n(timestamps.data() + lid, update.timestamp_us, __ATOMIC_RELAXED);
    }
    return updates.size();
}

// Writes the numbers that puts have in a field to rows from `first` on. Rows of puts that have none are left as they are.
void put_numbers(const nb::list& puts, const std::string& name, const AnyArray& rows, size_t first) {
    if (first > rows.size() || puts.size() > rows.size() - first) throw nb::value_error("no such rows");
    NumberColumn column(nullptr, rows);
    const PlainType* type = nullptr;
    for (size_t i = 0; i < puts.size(); ++i) {
        const PlainChange& put = change_at(puts, i);
        if (put.type.get() != type) {
            type = put.type.get();
            column = NumberColumn(type->find(name, 0), rows);
        }
        for (const PlainValue& value : put.values.values)
            if (value.field == column.field()) column.store(first + i, value);
    }
}

}  // namespace

void bind_plain_columns(nb::module_& m) {
    m.def("alike_from", &alike_from, nb::arg("entries"), nb::arg("first"));
    m.def("gids_of", &gids_of, nb::arg("changes"));
    m.def("set_in_place", &set_in_place, nb::arg("updates"), nb::arg("lids"), nb::arg("columns").noconvert(),
          nb::arg("changed").noconvert(), nb::arg("timestamps").noconvert());
    m.def("put_numbers", &put_numbers, nb::arg("puts"), nb::arg("name"), nb::arg("rows").noconvert(), nb::arg("first"));
}

}  // namespace paperwasp
