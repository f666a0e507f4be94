// One phrase in one field index: the documents that have its words next to each other, in order, and where it starts in them.
//
// The rarest word leads. Where the others are not much more frequent, its blocks are compared with theirs as a whole: every occurrence
// becomes a number that says the document and where the phrase would start, these numbers rise, and the phrase stands where all words have
// the same. Otherwise the others are looked up in the documents that the leading word has, and positions are read of documents that have
// all words.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "index/field_index.hpp"

namespace paperwasp {

// Where a phrase was found.
struct PhraseFinds {
    std::vector<uint32_t>&lids, &offsets, &starts;  // of lid i: starts[offsets[i]..offsets[i + 1])

    void add(uint32_t lid, uint32_t start) {
        if (lids.empty() || lids.back() != lid) {
            lids.push_back(lid);
            offsets.push_back(offsets.back());
        }
        ++offsets.back();
        starts.push_back(start);
    }
};

// The occurrences of words in a run of documents. Key: document less the first of the run, then where the phrase would start, counted from
// START_BASE before the document.
class Occurrences {
  public:
    static constexpr uint32_t START_BITS = 16, START_BASE = 64;
    static constexpr uint32_t MOST_DOCUMENTS = 1u << 16, MOST_IN_BLOCK = 1u << 14;

    // Whether all positions of the cursor's block fit.
    static bool fits(Cursor& cursor) {
        return cursor.position_width() < START_BITS && cursor.occurrence_starts()[cursor.count()] <= MOST_IN_BLOCK;
    }

    // Those of the documents [low, high], which are fewer than MOST_DOCUMENTS, of word number `word`. Moves the cursor to the block of
    // `high`. False: a block does not fit; the cursor is at that of `low` then.
    bool read(Cursor& cursor, uint32_t word, uint32_t low, uint32_t high);

    // Keeps those that the other has too.
    void intersect(Occurrences& other);

    size_t size() const { return size_; }

    // Calls visit(document, start).
    template <typename Visit>
    void for_each(uint32_t low, Visit visit) const {
        for (size_t i = 0; i < size_; ++i) visit(low + (keys_[i] >> START_BITS), (keys_[i] & ((1u << START_BITS) - 1)) - START_BASE);
    }

  private:
    void pad(uint32_t with);
    void append_block(Cursor& cursor, uint32_t word, uint32_t low, uint32_t high);

    std::vector<uint32_t> keys_, positions_;  // longer than what they have
    std::vector<int32_t> found_;
    size_t size_ = 0;
};

class PhraseInField {
  public:
    // `places`: of the words, in the order of the phrase.
    PhraseInField(const FieldIndex& field_index, const std::vector<uint32_t>& places, Clock& clock)
        : clock_(clock), order_(places.size()), at_(places.size()) {
        for (uint32_t place : places) cursors_.emplace_back(field_index, place);
        for (uint32_t i = 0; i < order_.size(); ++i) order_[i] = i;
        std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return cursors_[a].frequency() < cursors_[b].frequency(); });
        alike_ = order_.size() < Occurrences::START_BASE && order_.size() > 1 &&
                 uint64_t{cursors_[order_[0]].frequency()} * ALIKE >= cursors_[order_.back()].frequency();
    }

    // Finds it in the documents that accepted(document) allows.
    template <typename Accepted>
    void run(Accepted accepted, uint32_t base, PhraseFinds& finds) {
        Cursor& lead = cursors_[order_[0]];
        for (; !lead.exhausted() && !ended_; lead.next_block()) {
            const uint32_t *documents = lead.documents(), n = lead.count();
            uint64_t these = 0;
            for (uint32_t i = 0; i < n; ++i) these |= uint64_t{accepted(documents[i])} << i;
            if (these == 0) continue;
            const bool compares = alike_ && __builtin_popcountll(these) >= COMPARED;
            if (!compares || !compare_block(accepted, base, finds)) look_up_block(these, base, finds);
        }
    }

  private:
    static constexpr int COMPARED = 8;       // accepted documents of a block, or more: fewer are looked up faster
    static constexpr uint32_t ALIKE = 4;     // as many times as frequent: then looking up is faster
    static constexpr uint32_t MARKS = 4096;  // positions below this are compared by a table; a power of two

    // The leading word's block with what the others have in the same documents. False: it cannot be done.
    template <typename Accepted>
    bool compare_block(Accepted accepted, uint32_t base, PhraseFinds& finds) {
        Cursor& lead = cursors_[order_[0]];
        const uint32_t *documents = lead.documents(), count = lead.count();
        const uint32_t low = documents[0], high = documents[count - 1];
        if (high - low >= Occurrences::MOST_DOCUMENTS || !Occurrences::fits(lead)) return false;
        leading_.read(lead, order_[0], low, high);
        for (size_t j = 1; j < order_.size() && leading_.size() > 0; ++j) {
            if (!following_.read(cursors_[order_[j]], order_[j], low, high)) return false;
            clock_.spend(static_cast<int64_t>(4 * (leading_.size() + following_.size())));
            leading_.intersect(following_);
        }
        leading_.for_each(low, [&](uint32_t document, uint32_t start) {
            if (accepted(document)) finds.add(base + document, start);
        });
        return true;
    }

    // Some documents of the leading word's block, one after the other.
    void look_up_block(uint64_t these, uint32_t base, PhraseFinds& finds) {
        const uint32_t* documents = cursors_[order_[0]].documents();
        size_t looked_up = BLOCK;
        for (; these != 0; these &= these - 1) {
            const auto i = static_cast<uint32_t>(__builtin_ctzll(these));
            at_[order_[0]] = i;
            size_t j = 1;
            for (; j < order_.size(); ++j) {
                at_[order_[j]] = cursors_[order_[j]].find(documents[i]);
                if (at_[order_[j]] == NO_INDEX) break;
            }
            looked_up += j;
            if (j == order_.size()) {
                for (size_t at = 0, count = starts(); at < count; ++at) finds.add(base + documents[i], starts_[at]);
            } else if (cursors_[order_[j]].exhausted()) {
                ended_ = true;
                return;
            }
        }
        clock_.spend(static_cast<int64_t>(8 * looked_up));
    }

    // Fills starts_ for the document that all cursors stand at; returns how many.
    size_t starts() {
        const uint32_t lead = order_[0];
        size_t count = read_positions(lead, starts_);
        const uint32_t* const first = starts_.data();
        const size_t before = static_cast<size_t>(std::lower_bound(first, first + count, lead) - first);
        count -= before;
        for (size_t i = 0; i < count; ++i) starts_[i] = starts_[before + i] - lead;
        for (size_t j = 1; j < order_.size() && count > 0; ++j) count = keep_followed_by(order_[j], count);
        return count;
    }

    size_t read_positions(uint32_t word, std::vector<uint32_t>& to) {
        const uint32_t count = cursors_[word].frequencies()[at_[word]];
        if (to.size() < count) to.resize(count);
        cursors_[word].positions(at_[word], to.data());
        return count;
    }

    // Keeps those of the first `count` starts that have this word in its place; returns how many. Both lists rise. Which of them is behind
    // cannot be predicted, so neither way has branches for it.
    size_t keep_followed_by(uint32_t word, size_t count) {
        const size_t size = read_positions(word, positions_);
        clock_.spend(static_cast<int64_t>(4 * (size + count)));
        if (size == 0) return 0;
        const uint64_t most = std::max(uint64_t{starts_[count - 1]} + word, uint64_t{positions_[size - 1]});
        return most < MARKS ? keep_marked(word, count, size) : keep_merged(word, count, size);
    }

    // Damaged positions, which may not rise, stay inside the table too.
    uint8_t& mark(uint32_t position) { return marks_[position % MARKS]; }

    size_t keep_marked(uint32_t word, size_t count, size_t size) {
        for (size_t i = 0; i < size; ++i) mark(positions_[i]) = 1;
        size_t kept = 0;
        for (size_t i = 0; i < count; ++i) {
            const uint32_t start = starts_[i];
            starts_[kept] = start;
            kept += mark(start + word);
        }
        for (size_t i = 0; i < size; ++i) mark(positions_[i]) = 0;
        return kept;
    }

    size_t keep_merged(uint32_t word, size_t count, size_t size) {
        size_t kept = 0;
        for (size_t i = 0, at = 0; i < count && at < size;) {
            const uint32_t start = starts_[i], position = positions_[at];
            const uint64_t wanted = uint64_t{start} + word;
            starts_[kept] = start;
            kept += wanted == position;
            i += wanted <= position;
            at += position <= wanted;
        }
        return kept;
    }

    Clock& clock_;
    std::vector<Cursor> cursors_;
    std::vector<uint32_t> order_, at_;  // words by rising frequency; where each is in its block
    bool alike_;                        // whether blocks are compared
    bool ended_ = false;
    Occurrences leading_, following_;
    std::vector<uint32_t> starts_, positions_;  // as long as was ever needed
    uint8_t marks_[MARKS] = {};                 // 1: the word stands there
};

}  // namespace paperwasp
