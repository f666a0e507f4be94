// Rows put into groups by their parent and a key: dense numbers in the order of the groups' first rows. The plain twin is in grouping.py.
//
// Where parents times the span of the keys is not much more than there are rows, a table has a number for each pair; else the pairs are
// hashed. The hash has a secret of the process in it, so that nobody can feed values that all fall together; and the clock is told how far
// rows are from where they hash to.
#include "arrays.hpp"
#include "clock.hpp"

#include <algorithm>
#include <array>
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
nb::tuple group_rows(In<uint32_t> parents, In<Key> keys) {
    const size_t rows = keys.shape(0);
    if (parents.shape(0) != rows) throw std::invalid_argument("a parent for each key");
    if (rows >= UINT32_MAX) throw std::invalid_argument("too many rows to group");
    Found found;
    {
        const GilRelease release(is_much(4 * rows));
        Clock clock;
        found.groups->resize(rows);
        clock.spend(static_cast<int64_t>(rows));
        const uint32_t* parent = parents.data();
        const Key* key = keys.data();
        if (rows > 0) {
            const uint64_t parents_count = uint64_t{*std::max_element(parent, parent + rows)} + 1;
            Key least = key[0], most = key[0];
            for (size_t row = 0; row < rows; ++row) {
                least = std::min(least, key[row]);
                most = std::max(most, key[row]);
            }
            const uint64_t last = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
            const uint64_t entries_limit = std::max<uint64_t>(SMALL_TABLE, TABLE_ROWS * rows);
            if (last < entries_limit && (last + 1) * parents_count <= entries_limit)
                by_table(parent, key, rows, least, last + 1, (last + 1) * parents_count, clock, found);
            else
                by_hash(parent, key, rows, clock, found);
        }
    }
    return nb::make_tuple(own(std::move(found.groups)), own(std::move(found.first)));
}

template <typename Key>
void bind_one(nb::module_& m) {
    m.def("group_rows", &group_rows<Key>, nb::arg("parents").noconvert(), nb::arg("keys").noconvert());
}

}  // namespace

void bind_group_rows(nb::module_& m) {
    bind_one<uint32_t>(m);
    bind_one<int64_t>(m);
}

}  // namespace paperwasp
