// Comparing the occurrences of words: see phrase.hpp.
#include "index/phrase.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t PAD = 0xFFFFFFFFu;  // no key: positions are shorter
constexpr uint32_t AT_ONCE = 8;        // keys written for a document, most of which have a word less often

u32x4 load(const uint32_t* from) {
    u32x4 row;
    std::memcpy(&row, from, sizeof row);
    return row;
}

// Which of the rising numbers a[0..size) are among b too: those of the first few, how many of which is returned, have something else than 0
// in `found`. Four are compared with four, and then come the next of what ended first: by sums, as a branch could not be predicted.
size_t compare(const uint32_t* a, size_t size, const uint32_t* b, size_t other_size, int32_t* found) {
    i32x4 row = {0, 0, 0, 0};
    size_t i = 0, j = 0;
    while (i < size && j < other_size) {
        const u32x4 four = load(a + i), with = load(b + j);
        row |= (four == with) | (four == PAPERWASP_LANES(with, with, 1, 2, 3, 0)) | (four == PAPERWASP_LANES(with, with, 2, 3, 0, 1)) |
               (four == PAPERWASP_LANES(with, with, 3, 0, 1, 2));
        std::memcpy(found + i, &row, sizeof row);
        const int64_t further = int64_t{a[i + 3]} - int64_t{b[j + 3]};
        const auto stays = static_cast<int32_t>(-further >> 63);  // -1 while a's last is above
        row &= i32x4{stays, stays, stays, stays};
        i += static_cast<size_t>(4 + 4 * int64_t{stays});
        j += static_cast<size_t>(4 + 4 * (further >> 63));
    }
    std::memcpy(found + i, &row, sizeof row);
    return std::min(size, i + 4);
}

}  // namespace

bool Occurrences::read(Cursor& cursor, uint32_t word, uint32_t low, uint32_t high) {
    size_ = 0;
    cursor.shallow_seek(low);
    for (const uint32_t first = cursor.block(); !cursor.exhausted(); cursor.next_block()) {
        if (!fits(cursor)) {
            cursor.return_to(first);
            return false;
        }
        append_block(cursor, word, low, high);
        if (cursor.last_of(cursor.block()) >= high) break;
    }
    return true;
}

void Occurrences::append_block(Cursor& cursor, uint32_t word, uint32_t low, uint32_t high) {
    const uint32_t* documents = cursor.documents();
    const uint32_t* starts = cursor.occurrence_starts();
    const uint32_t from = count_below(documents, low), to = count_below(documents, high + 1);
    if (from >= to) return;
    const size_t first = starts[from], count = starts[to] - first, in_block = starts[cursor.count()];
    if (positions_.size() < in_block + RUN_GROUP) positions_.resize(2 * in_block + RUN_GROUP);
    cursor.block_positions(positions_.data());
    if (keys_.size() < size_ + count + AT_ONCE) keys_.resize(2 * (size_ + count + AT_ONCE));
    uint32_t* keys = keys_.data() + size_;
    for (uint32_t i = from; i < to; ++i) {
        const uint32_t key = ((documents[i] - low) << START_BITS) + START_BASE - word;
        uint32_t* of_document = keys + (starts[i] - first);
        for (uint32_t k = 0; k < AT_ONCE; ++k) of_document[k] = key;  // what is too much is overwritten by the next document
        for (uint32_t k = AT_ONCE; k < starts[i + 1] - starts[i]; ++k) of_document[k] = key;
    }
    const uint32_t* positions = positions_.data() + first;
    for (size_t k = 0; k < count; ++k) keys[k] += positions[k];
    size_ += count;
}

void Occurrences::pad(uint32_t with) {
    if (keys_.size() < size_ + 4) keys_.resize(size_ + 4);
    std::fill_n(keys_.begin() + static_cast<ptrdiff_t>(size_), 4, with);
}

void Occurrences::intersect(Occurrences& other) {
    pad(PAD);
    other.pad(PAD - 1);
    if (found_.size() < size_ + 8) found_.resize(2 * size_ + 8);
    const size_t looked_at = compare(keys_.data(), size_, other.keys_.data(), other.size_, found_.data());
    uint32_t* keys = keys_.data();
    const int32_t* found = found_.data();
    size_t kept = 0;
    for (size_t i = 0; i < looked_at; ++i) {
        keys[kept] = keys[i];
        kept += found[i] != 0;
    }
    size_ = kept;
}

}  // namespace paperwasp
