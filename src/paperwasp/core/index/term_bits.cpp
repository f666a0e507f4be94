// The bits of documents that have a term: see term_bits.hpp.
#include "index/term_bits.hpp"

#include <algorithm>
#include <mutex>
#include <utility>

#include "clones.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t NEAR = 8;          // words of 32 bits that a block of documents may reach over for its bits to be gathered word by word
constexpr uint32_t SOME_BLOCKS = 16;  // the clock is told before each block whose number is a multiple of this

std::atomic<uint64_t> bytes_of_all{0}, worths_bytes_of_all{0};

// Of a full block of documents, the bits of the 32 that begin with `start`. A loop that vectorizes.
PAPERWASP_INLINE uint32_t bits_of(const uint32_t* documents, uint32_t start) {
    uint32_t bits = 0;
    for (uint32_t i = 0; i < BLOCK; ++i) {
        const uint32_t bit = documents[i] - start;  // beyond 31 too for those before `start`
        bits |= bit < 32 ? 1u << (bit & 31) : 0;
    }
    return bits;
}

}  // namespace

PAPERWASP_CLONES void join_bits(uint64_t* to, const uint64_t* from, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] |= from[i];
}

PAPERWASP_CLONES void meet_bits(uint64_t* to, const uint64_t* a, const uint64_t* b, size_t n) {
    for (size_t i = 0; i < n; ++i) to[i] = a[i] & b[i];
}

// Bits that lie far apart are set byte by byte: whoever sets a bit waits for the last store to the same place, and bytes are more places
// than words.
PAPERWASP_CLONES void set_bits(const uint32_t* documents, uint32_t count, uint32_t base, uint64_t* words) {
    const uint32_t first = (base + documents[0]) >> 5, last = (base + documents[count - 1]) >> 5;
    if (count == BLOCK && last - first < NEAR) {
        for (uint32_t at = first; at <= last; ++at) words[at >> 1] |= uint64_t{bits_of(documents, at * 32 - base)} << (at % 2 * 32);
        return;
    }
    auto* bytes = reinterpret_cast<uint8_t*>(words);
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t bit = base + documents[i];
        bytes[bit >> 3] |= static_cast<uint8_t>(1u << (bit & 7));
    }
}

void set_postings(const FieldIndex& field_index, uint32_t place, uint32_t base, uint64_t* words, Clock& clock) {
    for (Cursor cursor(field_index, place); !cursor.exhausted(); cursor.next_block()) {
        if (cursor.block() % SOME_BLOCKS == 0) clock.spend(SOME_BLOCKS * BLOCK);
        set_bits(cursor.documents(), cursor.count(), base, words);
    }
}

FrequentTerms::FrequentTerms(uint32_t base, uint32_t documents, size_t fields, uint64_t most_bytes, uint32_t least_documents,
                             uint64_t most_worths_bytes)
    : base_(base),
      documents_(documents),
      least_documents_(least_documents),
      fields_(fields),
      most_bytes_(most_bytes),
      most_worths_bytes_(most_worths_bytes),
      tables_(new std::atomic<Table*>[fields]()) {}

FrequentTerms::~FrequentTerms() {
    worths_bytes_of_all -= worths_bytes_;
    for (size_t field = 0; field < fields_; ++field) {
        const std::unique_ptr<Table> table(tables_[field].load());
        for (size_t i = 0; table != nullptr && i < table->places.size(); ++i)
            if (const std::unique_ptr<uint64_t[]> bitmap(table->bitmaps[i].load()); bitmap != nullptr) bytes_of_all -= bitmap_bytes();
    }
}

uint64_t FrequentTerms::bytes_kept() { return bytes_of_all; }

uint64_t FrequentTerms::worths_bytes_kept() { return worths_bytes_of_all; }

const uint8_t* FrequentTerms::find_worths(const WorthsKey& key) const {
    const std::shared_lock lock(worths_lock_);
    const auto found = worths_.find(key);
    return found != worths_.end() ? found->second.get() : nullptr;
}

const uint8_t* FrequentTerms::keep_worths(const WorthsKey& key, std::unique_ptr<uint8_t[]>& worths, size_t bytes) {
    if (documents_ < least_documents_) return nullptr;
    const std::unique_lock lock(worths_lock_);
    if (const auto found = worths_.find(key); found != worths_.end()) return found->second.get();
    if ((worths_bytes_of_all += bytes) > most_worths_bytes_) {
        worths_bytes_of_all -= bytes;
        return nullptr;
    }
    worths_bytes_ += bytes;
    return worths_.emplace(key, std::move(worths)).first->second.get();
}

const FrequentTerms::Table& FrequentTerms::table_of(const FieldIndex& field_index, uint32_t field) {
    if (const Table* known = tables_[field].load(std::memory_order_acquire)) return *known;
    auto table = std::make_unique<Table>();
    for (uint32_t place = 0; place < field_index.header->terms; ++place)
        if (is_frequent(field_index.frequencies[place])) table->places.push_back(place);
    table->bitmaps.reset(new std::atomic<uint64_t*>[table->places.size()]());
    Table* other = nullptr;
    if (tables_[field].compare_exchange_strong(other, table.get())) return *table.release();
    return *other;
}

std::atomic<uint64_t*>* FrequentTerms::slot_of(const FieldIndex& field_index, uint32_t field, uint32_t place) {
    if (documents_ < least_documents_ || field >= fields_ || !is_frequent(field_index.frequencies[place])) return nullptr;
    const Table& table = table_of(field_index, field);
    const auto at = std::lower_bound(table.places.begin(), table.places.end(), place);
    if (at == table.places.end() || *at != place) return nullptr;
    return &table.bitmaps[static_cast<size_t>(at - table.places.begin())];
}

const uint64_t* FrequentTerms::find(const FieldIndex& field_index, uint32_t field, uint32_t place, Clock& clock) {
    std::atomic<uint64_t*>* slot = slot_of(field_index, field, place);
    if (slot == nullptr) return nullptr;
    const uint64_t* kept = slot->load(std::memory_order_acquire);
    return kept != nullptr ? kept : make(*slot, field_index, place, clock);
}

uint64_t FrequentTerms::steps_of(const FieldIndex& field_index, uint32_t field, uint32_t place) {
    const std::atomic<uint64_t*>* slot = slot_of(field_index, field, place);
    const bool is_kept = slot != nullptr && slot->load(std::memory_order_relaxed) != nullptr;
    return is_kept ? words_of_lids(base_, documents_) / 4 : field_index.frequencies[place];
}

const uint64_t* FrequentTerms::make(std::atomic<uint64_t*>& kept, const FieldIndex& field_index, uint32_t place, Clock& clock) {
    // Counted while it is made, so that several threads together do not exceed the limit.
    struct Counted {
        uint64_t bytes;
        bool is_within;
        bool stays = false;
        Counted(uint64_t size, uint64_t most) : bytes(size), is_within((bytes_of_all += size) <= most) {}
        ~Counted() {
            if (!stays) bytes_of_all -= bytes;
        }
    } counted(bitmap_bytes(), most_bytes_);
    if (!counted.is_within) return nullptr;
    std::unique_ptr<uint64_t[]> bitmap(new uint64_t[words_of_lids(base_, documents_)]());
    set_postings(field_index, place, base_ & 63, bitmap.get(), clock);
    uint64_t* other = nullptr;
    if (!kept.compare_exchange_strong(other, bitmap.get())) return other;
    counted.stays = true;
    return bitmap.release();
}

void bind_term_bits(nb::module_& m) {
    nb::class_<FrequentTerms>(m, "FrequentTerms")
        .def(nb::init<uint32_t, uint32_t, size_t, uint64_t, uint32_t, uint64_t>(), nb::arg("base"), nb::arg("documents"), nb::arg("fields"),
             nb::arg("most_bytes"), nb::arg("least_documents"), nb::arg("most_worths_bytes") = 0)
        .def_static("worths_bytes_kept", &FrequentTerms::worths_bytes_kept, "Bytes of the worths of all terms of the process.")
        .def_static("bytes_kept", &FrequentTerms::bytes_kept, "Bytes of the bitmaps of all frequent terms of the process.");
}

}  // namespace paperwasp
