// Which documents a weakAnd finds (weak_and.hpp), as Vespa's WeakAndSearch finds them with one thread. Its twin and specification is
// tests/oracles/weak_and.py.
//
// Each child has a score, the same in all documents that it matches; a document scores the sum of those that match it. Documents are looked
// at in the order of their lids. One is a hit if it scores at least the threshold as it is then; the threshold is the least of the best
// `target` scores of hits so far, brought up to date after every ADJUST_HITS hits, and never below where it began.
//
// Works window by window. A child without which a document cannot reach the threshold is required: the bitmaps of those are intersected,
// the rarest first, and a long list is only looked up where few candidates are left. If no child is, children whose scores together stay
// below the threshold bring no candidates. So once the threshold is high, most postings are never decoded.
//
// A child is any number of posting lists and bitmaps, and matches what one of them has. Reads immutable field indexes and bitmaps only; the
// GIL is released for long lists.
#include "rank/weak_and.hpp"

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>
#include <optional>

#include <nanobind/stl/optional.h>

#include "clock.hpp"
#include "index/reader.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t WORDS = 64;           // of a window
constexpr uint32_t WINDOW = 64 * WORDS;  // documents
constexpr size_t ADJUST_HITS = 4;        // Vespa: DEFAULT_PARALLEL_WAND_SCORES_ADJUST_FREQUENCY
constexpr uint64_t DECODED_SHARE = 8;    // where one posting in so many documents is decoded, windows that nothing is in save nothing
constexpr uint64_t LOOK_UP_SHARE = 16;   // looking up a candidate costs as much as decoding so many postings

struct Span {
    uint32_t low, high;  // lids; low is a multiple of 64
    uint32_t words() const { return (high - low + 63) / 64; }
};

// The postings of a term in all segments.
class PostingList {
  public:
    PostingList(const Reader& reader, uint32_t field, uint32_t term, Clock& clock) {
        reader.for_each(field, term, [&](const Segment& segment, const FieldIndex& field_index, uint32_t place) {
            const uint64_t* kept = segment.kept_bits(field, place, clock);
            places_.push_back({segment.base, segment.base + segment.documents, kept, Cursor(field_index, place)});
            frequency_ += field_index.frequencies[place];
            if (kept == nullptr) decoded_ += field_index.frequencies[place];
        });
    }

    uint64_t frequency() const { return frequency_; }
    // Of those that have no bitmap.
    uint64_t decoded() const { return decoded_; }

    // Whether there may be postings in the span. False is certain.
    bool may_have(const Span& span) {
        skip_to(span.low);
        return at_ < places_.size() && places_[at_].base < span.high;
    }

    // Sets the bits of the span's documents. Returns how many postings were decoded.
    uint32_t fill(const Span& span, uint64_t* bits) {
        uint32_t decoded = 0;
        skip_to(span.low);
        for (size_t i = at_; i < places_.size() && places_[i].base < span.high; ++i) {
            Place& place = places_[i];
            if (place.kept != nullptr) {
                place.join(span, bits);
                continue;
            }
            const uint32_t low = std::max(place.base, span.low) - place.base, high = std::min(place.end, span.high) - place.base;
            // Added to a document, the bit of the window; it may wrap around.
            const uint32_t shift = place.base - span.low;
            Cursor& cursor = place.cursor;
            for (cursor.shallow_seek(low); !cursor.exhausted(); cursor.next_block()) {
                const uint32_t* documents = cursor.documents();
                const uint32_t n = cursor.count();
                const uint32_t from = documents[0] < low ? count_below(documents, low) : 0;
                const uint32_t to = documents[n - 1] >= high ? count_below(documents, high) : n;
                for (uint32_t k = from; k < to; ++k) {
                    const uint32_t bit = documents[k] + shift;
                    bits[bit >> 6] |= uint64_t{1} << (bit & 63);
                }
                decoded += n;
                if (cursor.last_of(cursor.block()) >= high - 1) break;
            }
        }
        return decoded;
    }

    // Lids are asked for in rising order.
    bool has(uint32_t lid) {
        skip_to(lid);
        if (at_ == places_.size() || places_[at_].base > lid) return false;
        if (places_[at_].kept != nullptr) return places_[at_].has(lid);
        return places_[at_].cursor.find(lid - places_[at_].base) != NO_INDEX;
    }

  private:
    struct Place {
        uint32_t base, end;
        const uint64_t* kept;  // its documents, from the word of the first lid on; nullptr: they are decoded
        Cursor cursor;

        bool has(uint32_t lid) const { return (kept[(lid >> 6) - (base >> 6)] >> (lid & 63) & 1) != 0; }

        // Sets the bits of the span's documents.
        void join(const Span& span, uint64_t* bits) const {
            const uint32_t first = std::max(base, span.low) >> 6, last = (std::min(end, span.high) - 1) >> 6;
            join_bits(bits + (first - (span.low >> 6)), kept + (first - (base >> 6)), last - first + 1);
        }
    };

    void skip_to(uint32_t lid) {
        while (at_ < places_.size() && places_[at_].end <= lid) ++at_;
    }

    std::vector<Place> places_;
    size_t at_ = 0;
    uint64_t frequency_ = 0, decoded_ = 0;
};

struct Child {
    int64_t score = 0;
    std::vector<PostingList> lists;
    std::vector<const uint64_t*> bitmaps;
    uint64_t postings = 0, decoded = 0;  // decoded: those of which no bitmap is kept
    bool is_filled = false;              // whether `bits` are those of the current window
    uint64_t bits[WORDS];

    bool may_have(const Span& span) {
        if (!bitmaps.empty()) return true;
        bool may = false;
        for (PostingList& list : lists) may |= list.may_have(span);
        return may;
    }

    uint32_t fill(const Span& span) {
        uint32_t decoded = WORDS;
        std::fill(bits, bits + span.words(), 0);
        for (const uint64_t* bitmap : bitmaps)
            for (uint32_t w = 0; w < span.words(); ++w) bits[w] |= bitmap[span.low / 64 + w];
        for (PostingList& list : lists) decoded += list.fill(span, bits);
        is_filled = true;
        return decoded;
    }

    bool has(uint32_t lid) {
        for (const uint64_t* bitmap : bitmaps)
            if (accepts(bitmap, lid)) return true;
        for (PostingList& list : lists)
            if (list.has(lid)) return true;
        return false;
    }
};

// The threshold, and the scores that it is made of.
class Threshold {
  public:
    // `most_hits`: there cannot be more. A target that is not below it is never reached.
    Threshold(int64_t least, uint32_t target, uint64_t most_hits) : value_(least), target_(target), rises_(target <= most_hits) {}

    int64_t value() const { return value_; }

    // Whether another hit with this score, and those after it, change nothing.
    bool is_settled(int64_t score) const { return !rises_ || (waiting_ == 0 && best_.size() == target_ && best_.front() >= score); }

    void add(int64_t score) {
        if (!rises_) return;
        latest_[waiting_++] = score;
        if (waiting_ < ADJUST_HITS) return;
        for (size_t i = 0; i < waiting_; ++i) keep(latest_[i]);
        waiting_ = 0;
        if (best_.size() == target_) value_ = std::max(value_, best_.front());
    }

    // As many hits with a score that is settled.
    void add_settled(int64_t score, uint64_t count) {
        for (count %= ADJUST_HITS; count > 0; --count) add(score);
    }

  private:
    void keep(int64_t score) {
        if (best_.size() < target_) {
            best_.push_back(score);
        } else if (best_.front() < score) {
            std::pop_heap(best_.begin(), best_.end(), std::greater<>());
            best_.back() = score;
        } else {
            return;
        }
        std::push_heap(best_.begin(), best_.end(), std::greater<>());
    }

    int64_t value_;
    uint32_t target_;
    bool rises_;
    int64_t latest_[ADJUST_HITS];
    size_t waiting_ = 0;
    std::vector<int64_t> best_;  // a heap, the least in front
};

class WeakAnd {
  public:
    WeakAnd(std::vector<Child>& children, const uint64_t* accept, uint32_t limit, Threshold& threshold, Clock& clock, uint64_t* selected)
        : children_(children), accept_(accept), limit_(limit), threshold_(threshold), clock_(clock), selected_(selected) {}

    uint64_t run() {
        if (meets_bitmaps()) return meet();
        for (uint64_t low = 0; low < limit_; low += WINDOW)
            run_window({static_cast<uint32_t>(low), static_cast<uint32_t>(std::min<uint64_t>(low + WINDOW, limit_))});
        return hits_;
    }

  private:
    // Whether documents must match all children, and there are bitmaps of most.
    bool meets_bitmaps() const {
        int64_t total = 0;
        uint64_t decoded = 0;
        for (const Child& child : children_) {
            total += child.score;
            decoded += child.decoded;
        }
        if (decoded * DECODED_SHARE > limit_) return false;
        const auto is_required = [&](const Child& child) { return total - child.score < threshold_.value(); };
        return !children_.empty() && total >= threshold_.value() && std::all_of(children_.begin(), children_.end(), is_required);
    }

    // The accepted documents of all children, which have the same score: none of them raises the threshold above it.
    uint64_t meet() {
        const Span all{0, limit_};
        std::vector<uint64_t> found(accept_, accept_ + (size_t{limit_} + 63) / 64), any(found.size());
        for (Child& child : children_) {
            clock_.spend(static_cast<int64_t>(found.size() * (child.lists.size() + child.bitmaps.size() + 1) / 4));
            std::fill(any.begin(), any.end(), 0);
            for (const uint64_t* bitmap : child.bitmaps) join_bits(any.data(), bitmap, any.size());
            for (PostingList& list : child.lists) clock_.spend(list.fill(all, any.data()));
            meet_bits(found.data(), found.data(), any.data(), found.size());
        }
        if (selected_ != nullptr) join_bits(selected_, found.data(), found.size());
        return count_bits(found.data(), found.data(), found.size());
    }

    void run_window(const Span& span) {
        clock_.spend(static_cast<int64_t>(WORDS + 8 * children_.size()));
        int64_t total = 0;
        present_.clear();
        for (Child& child : children_) {
            child.is_filled = false;
            if (!child.may_have(span)) continue;
            present_.push_back(&child);
            total += child.score;
        }
        if (total < threshold_.value()) return;
        const auto is_required = [&](const Child* child) { return total - child->score < threshold_.value(); };
        const auto others = std::partition(present_.begin(), present_.end(), is_required);
        required_ = static_cast<size_t>(others - present_.begin());
        std::sort(present_.begin(), others, [](const Child* a, const Child* b) { return a->postings < b->postings; });
        std::sort(others, present_.end(), [](const Child* a, const Child* b) { return a->score < b->score; });
        if (required_ > 0 ? !intersect(span) : !unite(span)) return;
        if (required_ == present_.size())
            take_all(span, total);
        else
            take_some(span);
    }

    void fill(Child& child, const Span& span) {
        if (!child.is_filled) clock_.spend(child.fill(span));
    }

    // Whether it is cheaper to look the candidates up than to decode what the child has in a window.
    bool is_long(const Child& child, uint64_t candidates) const { return candidates * LOOK_UP_SHARE * limit_ < child.decoded * WINDOW; }

    // Candidates: the accepted documents that all required children match. False: there are none.
    bool intersect(const Span& span) {
        for (uint32_t w = 0; w < span.words(); ++w) candidates_[w] = accept_[span.low / 64 + w];
        for (size_t i = 0; i < required_; ++i) {
            Child& child = *present_[i];
            const uint64_t left = count(span);
            if (left == 0) return false;
            if (is_long(child, left)) {
                clock_.spend(static_cast<int64_t>(LOOK_UP_SHARE * left));
                for (uint32_t w = 0; w < span.words(); ++w)
                    for (uint64_t rest = candidates_[w]; rest != 0; rest &= rest - 1)
                        if (!child.has(span.low + 64 * w + lowest(rest))) candidates_[w] &= ~(rest & -rest);
            } else {
                fill(child, span);
                for (uint32_t w = 0; w < span.words(); ++w) candidates_[w] &= child.bits[w];
            }
        }
        return count(span) > 0;
    }

    // Candidates: the accepted documents that match a child beyond those whose scores together stay below the threshold.
    bool unite(const Span& span) {
        int64_t below = 0;
        size_t first = 0;
        while (first < present_.size() && below + present_[first]->score < threshold_.value()) below += present_[first++]->score;
        std::fill(candidates_, candidates_ + span.words(), 0);
        for (size_t i = first; i < present_.size(); ++i) {
            fill(*present_[i], span);
            for (uint32_t w = 0; w < span.words(); ++w) candidates_[w] |= present_[i]->bits[w];
        }
        for (uint32_t w = 0; w < span.words(); ++w) candidates_[w] &= accept_[span.low / 64 + w];
        return count(span) > 0;
    }

    // All candidates have this score.
    void take_all(const Span& span, int64_t score) {
        for (uint32_t w = 0; w < span.words(); ++w) {
            for (uint64_t rest = candidates_[w]; rest != 0; rest &= rest - 1) {
                if (score < threshold_.value()) return;
                if (threshold_.is_settled(score)) {
                    const auto left = static_cast<uint64_t>(__builtin_popcountll(rest));
                    threshold_.add_settled(score, left);
                    hits_ += left;
                    if (selected_ != nullptr) selected_[span.low / 64 + w] |= rest;
                    break;
                }
                take(span.low / 64 + w, rest & -rest, score);
            }
        }
    }

    // Sums up the scores of the candidates.
    void take_some(const Span& span) {
        int64_t in_all = 0, left_out = 0;
        filled_.clear();
        looked_up_.clear();
        const uint64_t candidates = count(span);
        for (size_t i = 0; i < present_.size(); ++i) {
            Child& child = *present_[i];
            if (i < required_) {
                in_all += child.score;
            } else if (!child.is_filled && is_long(child, candidates)) {
                looked_up_.push_back(&child);
                left_out += child.score;
            } else {
                fill(child, span);
                filled_.push_back(&child);
            }
        }
        clock_.spend(static_cast<int64_t>(candidates * (present_.size() + LOOK_UP_SHARE * looked_up_.size())));
        for (uint32_t w = 0; w < span.words(); ++w)
            for (uint64_t rest = candidates_[w]; rest != 0; rest &= rest - 1) {
                int64_t score = in_all;
                const uint32_t bit = lowest(rest);
                for (const Child* child : filled_) score += -static_cast<int64_t>(child->bits[w] >> bit & 1) & child->score;
                if (score + left_out < threshold_.value()) continue;
                for (Child* child : looked_up_)
                    if (child->has(span.low + 64 * w + bit)) score += child->score;
                if (score >= threshold_.value()) take(span.low / 64 + w, rest & -rest, score);
            }
    }

    void take(uint32_t word, uint64_t bit, int64_t score) {
        threshold_.add(score);
        ++hits_;
        if (selected_ != nullptr) selected_[word] |= bit;
    }

    static uint32_t lowest(uint64_t word) { return static_cast<uint32_t>(__builtin_ctzll(word)); }

    uint64_t count(const Span& span) const { return count_bits(candidates_, candidates_, span.words()); }

    std::vector<Child>& children_;
    const uint64_t* accept_;
    const uint32_t limit_;
    Threshold& threshold_;
    Clock& clock_;
    uint64_t* selected_;
    uint64_t hits_ = 0;
    size_t required_ = 0;
    std::vector<Child*> present_;  // in the window: the required ones, by rising frequency; then the others, by rising score
    std::vector<Child*> filled_, looked_up_;
    uint64_t candidates_[WORDS];
};

uint64_t weak_and(const Reader& reader, In<int64_t> scores, In<uint32_t> owners, In<uint32_t> fields, In<uint32_t> terms,
                  In<uint32_t> bitmap_owners, const nb::list& bitmaps, In<uint64_t> accept, uint32_t target, int64_t threshold,
                  const std::optional<Out<uint64_t>>& selected) {
    const size_t lists = owners.size(), words = accept.size();
    if (fields.size() != lists || terms.size() != lists || bitmap_owners.size() != bitmaps.size())
        throw nb::value_error("each list needs a child, a field and a term; each bitmap a child");
    if (scores.size() > MOST_WEAK_CHILDREN || words > (uint64_t{1} << 26)) throw nb::value_error("too many children or documents");
    if (words * 64 < reader.limit() || (selected && selected->size() != words))
        throw nb::value_error("the bitmap does not cover all documents");
    std::vector<WeakChild> children(scores.size());
    for (size_t i = 0; i < children.size(); ++i) {
        children[i].score = scores.data()[i];
        if (children[i].score < 0 || children[i].score > MOST_WEAK_SCORE) throw nb::value_error("a score is below zero or too large");
    }
    const auto owner_of = [&](const In<uint32_t>& numbers, size_t i) -> WeakChild& {
        if (numbers.data()[i] >= children.size()) throw nb::value_error("no such child");
        return children[numbers.data()[i]];
    };
    uint64_t postings = 0;
    for (size_t i = 0; i < lists; ++i) {
        check_field(reader, fields.data()[i]);
        owner_of(owners, i).words.emplace_back(fields.data()[i], terms.data()[i]);
        postings += reader.frequency(fields.data()[i], terms.data()[i]);
    }
    for (size_t i = 0; i < bitmaps.size(); ++i) {
        const auto bitmap = as_given<uint64_t>(bitmaps[i]);
        if (bitmap.size() != words) throw nb::value_error("the bitmap does not cover all documents");
        owner_of(bitmap_owners, i).bitmaps.push_back(bitmap.data());
    }
    Clock clock;
    const GilRelease unlocked(is_much(postings + words));
    return find_weakly(reader, children, accept.data(), words, target, threshold, selected ? selected->data() : nullptr, clock);
}

}  // namespace

uint64_t find_weakly(const Reader& reader, const std::vector<WeakChild>& given, const uint64_t* accept, size_t words, uint32_t target,
                     int64_t threshold, uint64_t* selected, Clock& clock) {
    std::vector<Child> children(given.size());
    for (size_t i = 0; i < given.size(); ++i) {
        Child& child = children[i];
        child.score = given[i].score;
        child.bitmaps = given[i].bitmaps;
        for (const auto& [field, term] : given[i].words) {
            child.lists.emplace_back(reader, field, term, clock);
            child.postings += child.lists.back().frequency();
            child.decoded += child.lists.back().decoded();
        }
    }
    const auto limit = static_cast<uint32_t>(std::min<uint64_t>(words * 64, 0xFFFFFFFFu));
    Threshold bar(threshold, target, limit);
    return WeakAnd(children, accept, limit, bar, clock, selected).run();
}

void bind_weak_and(nb::module_& m) {
    m.def("weak_and", &weak_and, nb::arg("reader"), nb::arg("scores").noconvert(), nb::arg("owners").noconvert(),
          nb::arg("fields").noconvert(), nb::arg("terms").noconvert(), nb::arg("bitmap_owners").noconvert(), nb::arg("bitmaps"),
          nb::arg("accept").noconvert(), nb::arg("target"), nb::arg("threshold"), nb::arg("selected").noconvert().none(),
          "How many documents a weakAnd finds; their bits are set in `selected`. Twin: tests.oracles.weak_and.select_weakly.");
}

}  // namespace paperwasp
