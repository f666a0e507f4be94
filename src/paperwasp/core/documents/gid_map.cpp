// Gid map: from global id (12 bytes) to lid, by open addressing with linear probing. NumPy owns the table.
//
// keys[slots * 12], lids[slots]; slots is a power of two; a slot with lid NONE is free. The eight last bytes of a gid are of an MD5, so
// they are their own hash. Removal moves later entries back, so there are no graves and probing stays short. At least one slot must be
// free: the caller grows the table (storage/documents/gid_map.py). Nothing here has
// a lock: only the writer's thread uses a table (storage/documents/gid_map.py), and the interpreter's lock is kept since a batch takes
// microseconds.
#include "core.hpp"

#include <cstring>
#include <stdexcept>

namespace paperwasp {
namespace {

constexpr size_t GID = 12;
constexpr uint32_t NONE = 0xFFFFFFFFu;

struct Table {
    uint8_t* keys;
    uint32_t* lids;
    size_t mask;

    Table(Out<uint8_t> k, Out<uint32_t> l) : keys(k.data()), lids(l.data()), mask(l.shape(0) - 1) {
        const size_t slots = l.shape(0);
        if (slots == 0 || (slots & mask) != 0 || k.shape(0) != slots * GID)
            throw std::invalid_argument("gid map: slots must be a power of two");
    }
    size_t home(const uint8_t* gid) const {
        uint64_t hash;
        std::memcpy(&hash, gid + 4, 8);
        return (hash ^ (hash >> 29)) & mask;
    }
    // The slot of this gid, or the free slot where it belongs.
    size_t find(const uint8_t* gid) const {
        size_t slot = home(gid);
        for (size_t probes = 0; lids[slot] != NONE && std::memcmp(keys + slot * GID, gid, GID) != 0; slot = (slot + 1) & mask)
            if (++probes > mask) throw std::invalid_argument("gid map: the table is full");
        return slot;
    }
    void erase(size_t slot) {
        for (size_t next = (slot + 1) & mask; lids[next] != NONE; next = (next + 1) & mask) {
            const size_t wanted = home(keys + next * GID);
            // Moves back what would no longer be found across the hole: its home is not between the hole and where it stands.
            if (((next - wanted) & mask) >= ((next - slot) & mask)) {
                std::memcpy(keys + slot * GID, keys + next * GID, GID);
                lids[slot] = lids[next];
                slot = next;
            }
        }
        lids[slot] = NONE;
    }
};

void check(In<uint8_t> gids, size_t count) {
    if (gids.shape(0) != count * GID) throw std::invalid_argument("gid map: 12 bytes for each gid");
}

// found[i]: the lid of gids[i], or NONE.
void gid_map_find(Out<uint8_t> keys, Out<uint32_t> lids, In<uint8_t> gids, Out<uint32_t> found) {
    const Table table(keys, lids);
    check(gids, found.shape(0));
    for (size_t i = 0; i < found.shape(0); ++i) found.data()[i] = table.lids[table.find(gids.data() + i * GID)];
}

// Maps gids[i] to new_lids[i], in order; previous[i] is the lid it had until then (perhaps of this batch), or NONE. Returns how many are
// new.
size_t gid_map_insert(Out<uint8_t> keys, Out<uint32_t> lids, In<uint8_t> gids, In<uint32_t> new_lids, Out<uint32_t> previous) {
    Table table(keys, lids);
    const size_t count = previous.shape(0);
    check(gids, count);
    if (new_lids.shape(0) != count) throw std::invalid_argument("gid map: one lid for each gid");
    size_t added = 0;
    for (size_t i = 0; i < count; ++i) {
        const uint8_t* gid = gids.data() + i * GID;
        const size_t slot = table.find(gid);
        previous.data()[i] = table.lids[slot];
        if (table.lids[slot] == NONE) {
            std::memcpy(table.keys + slot * GID, gid, GID);
            ++added;
        }
        table.lids[slot] = new_lids.data()[i];
    }
    return added;
}

// Forgets gids; previous[i] is the lid it had, or NONE. Returns how many there were.
size_t gid_map_remove(Out<uint8_t> keys, Out<uint32_t> lids, In<uint8_t> gids, Out<uint32_t> previous) {
    Table table(keys, lids);
    check(gids, previous.shape(0));
    size_t removed = 0;
    for (size_t i = 0; i < previous.shape(0); ++i) {
        const size_t slot = table.find(gids.data() + i * GID);
        previous.data()[i] = table.lids[slot];
        if (table.lids[slot] != NONE) {
            table.erase(slot);
            ++removed;
        }
    }
    return removed;
}

}  // namespace

void bind_gid_map(nb::module_& m) {
    m.def("gid_map_find", &gid_map_find, nb::arg("keys").noconvert(), nb::arg("lids").noconvert(), nb::arg("gids").noconvert(),
          nb::arg("found").noconvert());
    m.def("gid_map_insert", &gid_map_insert, nb::arg("keys").noconvert(), nb::arg("lids").noconvert(), nb::arg("gids").noconvert(),
          nb::arg("new_lids").noconvert(), nb::arg("previous").noconvert());
    m.def("gid_map_remove", &gid_map_remove, nb::arg("keys").noconvert(), nb::arg("lids").noconvert(), nb::arg("gids").noconvert(),
          nb::arg("previous").noconvert());
}

}  // namespace paperwasp
