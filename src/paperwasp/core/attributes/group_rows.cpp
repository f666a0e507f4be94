// Rows put into groups by their parent and a key: dense numbers in the order of the groups' first rows. The plain twin is in
// tests/oracles/grouping.py.
//
// Where parents times the span of the keys is not much more than there are rows, a table has a number for each pair; else the pairs are
// hashed. The hash has a secret of the process in it, so that nobody can feed values that all fall together; and the clock counts
// the slots that are looked at.
//
// Threads: any. The writer may store into a column whose values are counted.
#include "attributes/group_rows.hpp"

#include "arrays.hpp"
#include "clock.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <random>
#include <stdexcept>
#include <vector>

namespace paperwasp {
namespace {

constexpr size_t BLOCK_ROWS = 4096;        // between two looks at the clock
constexpr size_t AHEAD_ROWS = 32;          // whose places are fetched together
constexpr uint64_t SMALL_TABLE = 1 << 16;  // entries that are always worth a table
constexpr uint64_t TABLE_ROWS = 4;         // entries of a table for each row, at most
constexpr size_t LEAST_SLOTS = 1 << 12;
constexpr uint64_t LEAST_TALLIES = 1 << 8;  // values that are always counted in a table of them all
constexpr uint64_t ROWS_OF_TALLY = 2;       // rows for each value of such a table, at least

struct Found {
    std::unique_ptr<std::vector<uint32_t>> groups = std::make_unique<std::vector<uint32_t>>();
    std::unique_ptr<std::vector<uint32_t>> first = std::make_unique<std::vector<uint32_t>>();

    uint32_t add(size_t row) {
        first->push_back(static_cast<uint32_t>(row));
        return static_cast<uint32_t>(first->size());
    }
};

template <typename Key>
void by_table(const uint32_t* parents, const Key* keys, size_t rows, Key least, uint64_t span, uint64_t entries, Clock& clock,
              Found& found) {
    std::vector<uint32_t> numbers(entries);  // of a group, from 1; 0: none yet
    clock.spend(static_cast<int64_t>(entries / 4));
    for (size_t start = 0; start < rows; start += BLOCK_ROWS) {
        const size_t end = std::min(rows, start + BLOCK_ROWS);
        clock.spend(static_cast<int64_t>(2 * (end - start)));
        for (size_t row = start; row < end; ++row) {
            uint32_t& number = numbers[parents[row] * span + (static_cast<uint64_t>(keys[row]) - static_cast<uint64_t>(least))];
            if (number == 0) number = found.add(row);
            (*found.groups)[row] = number - 1;
        }
    }
}

struct Slot {
    uint64_t key;
    uint32_t parent;
    uint32_t number;  // of the group, from 1; 0: empty
};

class Slots {
  public:
    Slots() : slots_(LEAST_SLOTS) {}

    static uint64_t hash(uint64_t key, uint32_t parent) {
        uint64_t mixed = key ^ secret() ^ (uint64_t{parent} * 0x9E3779B97F4A7C15u);
        mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u;
        mixed = (mixed ^ (mixed >> 32)) * 0xD6E8FEB86659FD93u;
        return mixed ^ (mixed >> 32);
    }

    void fetch(uint64_t hash) const { __builtin_prefetch(&slots_[hash & (slots_.size() - 1)], 1); }

    // The slot of a pair, or the empty one where it belongs; adds how many were looked at.
    Slot& find(uint64_t hash, uint64_t key, uint32_t parent, int64_t& looked) {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash & mask;; at = (at + 1) & mask) {
            Slot& slot = slots_[at];
            ++looked;
            if (slot.number == 0 || (slot.key == key && slot.parent == parent)) return slot;
        }
    }

    // Makes room, so that another group leaves half of the slots empty.
    void grow(size_t groups, Clock& clock) {
        if (2 * groups < slots_.size()) return;
        std::vector<Slot> before(4 * slots_.size());
        before.swap(slots_);
        int64_t looked = static_cast<int64_t>(slots_.size());
        for (const Slot& slot : before) {
            if (slot.number) find(hash(slot.key, slot.parent), slot.key, slot.parent, looked) = slot;
        }
        clock.spend(looked);
    }

  private:
    static uint64_t secret() {
        static const uint64_t made = [] {
            std::random_device device;
            return (uint64_t{device()} << 32) | device();
        }();
        return made;
    }

    std::vector<Slot> slots_;
};

template <typename Key>
void by_hash(const uint32_t* parents, const Key* keys, size_t rows, Clock& clock, Found& found) {
    Slots slots;
    std::array<uint64_t, AHEAD_ROWS> hashes;
    for (size_t start = 0; start < rows; start += AHEAD_ROWS) {
        const size_t count = std::min(rows - start, AHEAD_ROWS);
        slots.grow(found.first->size() + count, clock);
        for (size_t i = 0; i < count; ++i) {
            hashes[i] = Slots::hash(static_cast<uint64_t>(keys[start + i]), parents[start + i]);
            slots.fetch(hashes[i]);
        }
        int64_t looked = static_cast<int64_t>(8 * count);
        for (size_t i = 0; i < count; ++i) {
            const size_t row = start + i;
            const uint64_t key = static_cast<uint64_t>(keys[row]);
            Slot& slot = slots.find(hashes[i], key, parents[row], looked);
            if (slot.number == 0) slot = {key, parents[row], found.add(row)};
            (*found.groups)[row] = slot.number - 1;
        }
        clock.spend(looked);
    }
}

template <typename Key>
void number_rows(const uint32_t* parents, const Key* keys, size_t rows, Clock& clock, Found& found) {
    found.groups->resize(rows);
    clock.spend(static_cast<int64_t>(rows));
    if (rows == 0) return;
    const uint64_t parents_count = uint64_t{*std::max_element(parents, parents + rows)} + 1;
    Key least = keys[0], most = keys[0];
    for (size_t row = 0; row < rows; ++row) {
        least = std::min(least, keys[row]);
        most = std::max(most, keys[row]);
    }
    const uint64_t last = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    const uint64_t entries_limit = std::max<uint64_t>(SMALL_TABLE, TABLE_ROWS * rows);
    if (last < entries_limit && (last + 1) * parents_count <= entries_limit)
        by_table(parents, keys, rows, least, last + 1, (last + 1) * parents_count, clock, found);
    else
        by_hash(parents, keys, rows, clock, found);
}

template <typename Key>
nb::tuple group_rows(In<uint32_t> parents, In<Key> keys) {
    const size_t rows = keys.shape(0);
    if (parents.shape(0) != rows) throw std::invalid_argument("a parent for each key");
    if (rows >= UINT32_MAX) throw std::invalid_argument("too many rows to group");
    Found found;
    {
        const GilRelease release(is_much(4 * rows));
        Clock clock;
        number_rows(parents.data(), keys.data(), rows, clock, found);
    }
    return nb::make_tuple(own(std::move(found.groups)), own(std::move(found.first)));
}

// The distinct values that a column has in some rows, in the order in which they are met, each with how many of these rows have it, and the
// best of their relevances with the first of them that has it.
template <typename Key>
struct Counted {
    std::unique_ptr<std::vector<Key>> values = std::make_unique<std::vector<Key>>();
    std::unique_ptr<std::vector<int64_t>> counts = std::make_unique<std::vector<int64_t>>();
    std::unique_ptr<std::vector<double>> best = std::make_unique<std::vector<double>>();
    std::unique_ptr<std::vector<uint32_t>> best_rows = std::make_unique<std::vector<uint32_t>>();

    void add(Key value, int64_t count, double relevance, uint32_t row) {
        values->push_back(value);
        counts->push_back(count);
        best->push_back(relevance);
        best_rows->push_back(row);
    }
};

// Of a value: what is looked up for a row stands together.
struct Tally {
    int64_t count;
    double best;
    uint32_t best_row;
};

// The same, where values are few and near each other: `span` values from `least` on. value: of each row.
template <typename Value, typename Key>
void count_by_table(const Value* value, const double* relevance, size_t rows, Value least, uint64_t span, Clock& clock,
                    Counted<Key>& found) {
    std::vector<Tally> tallies(span, Tally{0, -std::numeric_limits<double>::infinity(), 0});
    std::vector<Value> met;
    const auto tally_of = [&](Value each) -> Tally& {
        return tallies[static_cast<uint64_t>(static_cast<Key>(each)) - static_cast<uint64_t>(static_cast<Key>(least))];
    };
    for (size_t start = 0; start < rows; start += BLOCK_ROWS) {
        const size_t end = std::min(rows, start + BLOCK_ROWS);
        clock.spend(static_cast<int64_t>(3 * (end - start)));
        for (size_t row = start; row < end; ++row) {
            Tally& tally = tally_of(value[row]);
            if (tally.count++ == 0) {
                tally.best_row = static_cast<uint32_t>(row);
                met.push_back(value[row]);
            }
            if (relevance[row] > tally.best) {
                tally.best = relevance[row];
                tally.best_row = static_cast<uint32_t>(row);
            }
        }
    }
    for (const Value each : met) {
        const Tally& tally = tally_of(each);
        found.add(static_cast<Key>(each), tally.count, tally.best, tally.best_row);
    }
}

// The same of any values.
template <typename Value, typename Key>
void count_by_rows(const Value* value, const double* relevance, size_t rows, Clock& clock, Counted<Key>& counted) {
    clock.spend(static_cast<int64_t>(8 * rows));
    const std::vector<Key> keys(value, value + rows);
    Found found;
    number_rows(std::vector<uint32_t>(rows).data(), keys.data(), rows, clock, found);
    for (const uint32_t row : *found.first) counted.add(keys[row], 0, -std::numeric_limits<double>::infinity(), row);
    clock.spend(static_cast<int64_t>(4 * rows));
    for (size_t row = 0; row < rows; ++row) {
        const uint32_t group = (*found.groups)[row];
        ++(*counted.counts)[group];
        if (relevance[row] > (*counted.best)[group]) {
            (*counted.best)[group] = relevance[row];
            (*counted.best_rows)[group] = static_cast<uint32_t>(row);
        }
    }
}

template <typename Value, typename Key>
nb::tuple count_values(In<Value> column, In<uint32_t> lids, In<double> relevances) {
    const size_t rows = lids.shape(0);
    if (relevances.shape(0) != rows) throw std::invalid_argument("a relevance for each row");
    if (rows >= UINT32_MAX) throw std::invalid_argument("too many rows to group");
    Counted<Key> found;
    {
        const GilRelease release(is_much(4 * rows));
        Clock clock;
        clock.spend(static_cast<int64_t>(2 * rows));
        const uint32_t* lid = lids.data();
        const Value* value = column.data();
        if (rows > 0) {
            if (*std::max_element(lid, lid + rows) >= column.shape(0)) throw std::invalid_argument("a row beyond the column");
            std::vector<Value> values(rows);  // each is read once: the writer may change it meanwhile
            Value least = std::numeric_limits<Value>::max(), most = std::numeric_limits<Value>::min();
            for (size_t row = 0; row < rows; ++row) {
                values[row] = __atomic_load_n(value + lid[row], __ATOMIC_RELAXED);
                least = std::min(least, values[row]);
                most = std::max(most, values[row]);
            }
            const uint64_t last = static_cast<uint64_t>(static_cast<Key>(most)) - static_cast<uint64_t>(static_cast<Key>(least));
            if (last < std::max<uint64_t>(LEAST_TALLIES, rows / ROWS_OF_TALLY))
                count_by_table(values.data(), relevances.data(), rows, least, last + 1, clock, found);
            else
                count_by_rows(values.data(), relevances.data(), rows, clock, found);
        }
    }
    return nb::make_tuple(own(std::move(found.values)), own(std::move(found.counts)), own(std::move(found.best)),
                          own(std::move(found.best_rows)));
}

template <typename Value, typename Key>
void bind_count(nb::module_& m) {
    m.def("count_values", &count_values<Value, Key>, nb::arg("column").noconvert(), nb::arg("lids").noconvert(),
          nb::arg("relevances").noconvert());
}

template <typename Key>
void bind_one(nb::module_& m) {
    m.def("group_rows", &group_rows<Key>, nb::arg("parents").noconvert(), nb::arg("keys").noconvert());
}

}  // namespace

RowGroups group_keys(const std::vector<int64_t>& keys, Clock& clock) {
    Found found;
    number_rows(std::vector<uint32_t>(keys.size()).data(), keys.data(), keys.size(), clock, found);
    return {std::move(*found.groups), std::move(*found.first)};
}

void bind_group_rows(nb::module_& m) {
    bind_one<uint32_t>(m);
    bind_one<int64_t>(m);
    bind_count<uint32_t, uint32_t>(m);
    bind_count<int8_t, int64_t>(m);
    bind_count<int32_t, int64_t>(m);
    bind_count<int64_t, int64_t>(m);
}

}  // namespace paperwasp
