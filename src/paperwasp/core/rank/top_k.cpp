// The best k documents by a weighted sum of BM25 terms, without scoring all of them.
//
// any_of: block-max MaxScore (Turtle & Flood 1995; Ding & Suel 2011) over windows of documents. In each window the terms whose
// bounds together cannot reach the threshold are not essential: only the others' postings are accumulated (accumulators.hpp);
// documents that might still enter are completed by looking them up in the remaining terms. all_of: an intersection led by the rarest term
// that skips blocks whose bounds cannot enter.
//
// Scores decide in double precision, summed over each run of terms of one field and then over those; ties go to the lower lid. Pruning
// works in float with SLACK to spare, so the answer is the same as that of scoring everything. A bound stored with another average field
// length than today's is scaled by their ratio, which keeps it a bound: growing the average by r shrinks the length part of BM25's
// denominator by at most 1/r, and with it raises a weight by at most r.
//
// Reads immutable field indexes and bitmaps only; the GIL is released.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "arrays.hpp"
#include "clock.hpp"
#include "index/reader.hpp"
#include "rank/bm25_query.hpp"
#include "rank/top_k.hpp"

namespace paperwasp {
namespace {

// Terms are left out of accumulation while their bounds together are below this share of the threshold, not only while they are below all
// of it: adding a posting costs about 1 ns, completing a candidate 10 to 30. Measured on 200k abstracts, mean of short / long queries
// in us: 162 / 482 at 1, 123 / 265 at 0.6, 116 / 231 at 0.4, 123 / 267 at 0.2.
constexpr float ESSENTIAL_SHARE = 0.4f;
constexpr uint32_t DENSE_WINDOW = 4096;    // documents; its accumulators fit the first-level cache
constexpr uint32_t SPARSE_WINDOW = 65536;  // where postings are few

// Keeps the parts of the hot loop apart: inlined into one function they run out of registers (a fifth slower).
#define NOINLINE __attribute__((noinline))

// A filter that few documents pass, and the lid of the field index's first document. Tested for every posting, before it is scored; other
// filters are tested for candidates only. bitmap == nullptr: not such a filter.
struct Rare {
    const uint64_t* bitmap;
    uint32_t base;
};
constexpr uint64_t RARE_SHARE = 8;  // one document in so many
// Fewer accepted documents than this share of the postings are looked up in each list, one by one.
constexpr uint64_t POSTINGS_OF_CANDIDATE = 16;

// Adds the contributions of the current block's documents [from, to) that pass the filter.
void add_accepted(List& list, uint32_t from, uint32_t to, uint32_t low, const Rare& rare, Accumulators& window) {
    const uint32_t* documents = list.walk.documents();
    uint32_t picked[BLOCK], count = 0;
    for (uint32_t i = from; i < to; ++i) {
        picked[count] = i;
        count += accepts(rare.bitmap, rare.base + documents[i]);
    }
    if (count == 0) return;
    const uint32_t* frequencies = list.walk.frequencies();
    uint32_t accepted[BLOCK];
    float weights[BLOCK];
    for (uint32_t j = 0; j < count; ++j) {
        accepted[j] = documents[picked[j]];
        weights[j] = list.contribution(frequencies[picked[j]], accepted[j]);
    }
    window.add(accepted, weights, count, low);
}

// Adds the list's contributions to the documents of [low, high), except in blocks that cannot matter beside `others`.
NOINLINE void accumulate(List& list, uint32_t low, uint32_t high, float others, float threshold, const Rare& rare, Accumulators& window) {
    Cursor& cursor = list.walk;
    while (!cursor.exhausted()) {
        const uint32_t block = cursor.block();
        const bool ends = cursor.last_of(block) >= high - 1;
        if (list.bound_of(block) + others > threshold) {
            const uint32_t* documents = cursor.documents();
            const uint32_t n = cursor.count();
            uint32_t from = 0, to = n;
            if (documents[0] < low) from = count_below(documents, low);
            if (documents[n - 1] >= high) to = count_below(documents, high);
            if (rare.bitmap != nullptr)
                add_accepted(list, from, to, low, rare, window);
            else
                window.add(documents + from, list.contributions() + from, to - from, low);
        }
        if (ends) return;
        cursor.next_block();
    }
}

class AnyOf {
  public:
    AnyOf(const Query& query, const Segment& segment, SegmentLists& here, const uint64_t* accept, bool is_rare, Best& best,
          Accumulators& window, Clock& clock, uint32_t& searched)
        : terms_(query.terms),
          segment_(segment),
          here_(here),
          lists_(here.lists),
          order_(lists_.size()),
          below_(lists_.size() + 1),
          accept_(accept),
          rare_{is_rare ? accept : nullptr, segment.base},
          best_(best),
          window_(window),
          clock_(clock),
          searched_(searched) {
        std::iota(order_.begin(), order_.end(), 0u);
    }

    void run() {
        uint64_t postings = 0;
        for (const List& list : lists_) postings += list.walk.frequency();
        const uint32_t size = postings * 32 < segment_.documents ? SPARSE_WINDOW : DENSE_WINDOW;
        for (uint32_t low = 0; low < segment_.documents;) {
            const uint32_t high = low + std::min(size, segment_.documents - low);
            run_window(low, high);
            low = high;
            searched_ = segment_.base + high;
        }
    }

  private:
    void run_window(uint32_t low, uint32_t high) {
        clock_.spend(static_cast<int64_t>(16 * lists_.size()));
        for (List& list : lists_) list.enter(low, high);
        std::sort(order_.begin(), order_.end(), [&](uint32_t a, uint32_t b) { return lists_[a].bound < lists_[b].bound; });
        below_[0] = 0;
        for (size_t i = 0; i < order_.size(); ++i) below_[i + 1] = below_[i] + lists_[order_[i]].bound;
        const float threshold = best_.threshold();
        const float total = below_.back();
        if (total <= threshold || total == 0) return;
        first_ = 0;
        while (below_[first_ + 1] <= ESSENTIAL_SHARE * threshold) ++first_;
        window_.begin(high - low);
        for (size_t i = order_.size(); i-- > first_;) {
            List& list = lists_[order_[i]];
            if (list.bound == 0) continue;
            const uint32_t block = list.walk.block();
            accumulate(list, low, high, total - list.bound, threshold, rare_, window_);
            clock_.spend(int64_t{BLOCK} * (list.walk.block() - block));
        }
        // Not above zero is no document at all: a threshold below zero stands for "none yet".
        window_.drain([&] { return std::max(best_.threshold() - below_[first_], 0.0f); },
                      [&](uint32_t at, float score) { complete(low + at, score); });
    }

    // Adds what the terms that are not essential contribute, as long as the document may still enter.
    NOINLINE void complete(uint32_t document, float score) {
        if (!accepts(accept_, segment_.base + document)) return;
        for (size_t i = first_; i-- > 0;) {
            if (score + below_[i + 1] <= best_.threshold()) return;
            List& list = lists_[order_[i]];
            if (!list.may_have(document)) continue;
            list.probe.shallow_seek(document);
            if (list.probe.exhausted()) continue;
            if (score + below_[i] + list.bound_of(list.probe.block()) <= best_.threshold()) return;
            const uint32_t at = list.probe.find(document);
            if (at != NO_INDEX) score += list.contribution(list.probe.frequencies()[at], document);
        }
        if (score <= best_.threshold()) return;
        if (searched_ > 0) searched_ = segment_.base + document;  // before the end of the first window there is no answer
        clock_.spend(static_cast<int64_t>(16 * lists_.size()));
        best_.add(here_.score(terms_, document), segment_.base + document);
    }

    const std::vector<QueryTerm>& terms_;
    const Segment& segment_;
    SegmentLists& here_;
    std::vector<List>& lists_;
    std::vector<uint32_t> order_;  // by rising bound in the window
    std::vector<float> below_;     // below_[i]: bounds of order_[0..i) together
    size_t first_ = 0;             // order_[first_..] are essential
    const uint64_t* accept_;
    Rare rare_;
    Best& best_;
    Accumulators& window_;
    Clock& clock_;
    uint32_t& searched_;  // documents below this lid are done; it is right whenever the time is over
};

// A bitmap of some documents of a segment, from the word of its first document on. nullptr: all of them.
struct SegmentBits {
    const uint64_t* words;
    uint32_t first;  // the bit of document 0

    bool has(uint32_t document) const { return accepts(words, first + document); }
};

// The accepted documents of a segment that all lists have of which a bitmap is kept.
SegmentBits accepted_by_all(const Segment& segment, const std::vector<List>& lists, const uint64_t* accept, std::vector<uint64_t>& words) {
    const size_t n = words_of_lids(segment.base, segment.documents);
    const uint64_t* given = accept != nullptr ? accept + (segment.base >> 6) : nullptr;
    const uint64_t* joined = given;
    for (const List& list : lists) {
        if (list.kept == nullptr) continue;
        if (joined == given) words.resize(n);
        if (joined == nullptr)
            std::copy(list.kept, list.kept + n, words.begin());
        else
            meet_bits(words.data(), joined, list.kept, n);
        joined = words.data();
    }
    return {joined, segment.base & 63};
}

// Intersects; adds to `matches` how many documents are accepted. With `count`, all are looked at; otherwise only those that may enter.
// Documents below `searched` are done.
void all_of(const Query& query, const Segment& segment, SegmentLists& here, const uint64_t* accept, bool count, Best& best, Clock& clock,
            uint64_t& matches, uint32_t& searched) {
    std::vector<List>& lists = here.lists;
    thread_local std::vector<uint64_t> words;
    const SegmentBits accepted = accepted_by_all(segment, lists, accept, words);
    if (count && std::all_of(lists.begin(), lists.end(), [](const List& list) { return list.kept != nullptr; })) {
        matches += count_bits(accepted.words, accepted.words, words_of_lids(segment.base, segment.documents));
        count = false;
    }
    std::vector<uint32_t> order(lists.size());
    std::iota(order.begin(), order.end(), 0u);
    std::sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return lists[a].walk.frequency() < lists[b].walk.frequency(); });
    std::vector<uint32_t> places(lists.size());
    List& lead = lists[order[0]];
    std::vector<float> rest(lists.size() + 1, 0.0f);  // rest[j]: bounds of order[j..] together
    for (size_t j = order.size(); j-- > 1;) rest[j] = rest[j + 1] + lists[order[j]].bound_of_term();
    const float others = rest[1];
    for (; !lead.walk.exhausted(); lead.walk.next_block()) {
        size_t finds = BLOCK;
        const bool hopeless = lead.bound_of(lead.walk.block()) + others <= best.threshold();
        if (hopeless && !count) continue;
        const uint32_t* documents = lead.walk.documents();
        const uint32_t n = lead.walk.count();
        for (uint32_t i = 0; i < n; ++i) {
            const uint32_t document = documents[i];
            if (!accepted.has(document)) continue;
            float bound = hopeless ? 0 : lead.contribution(lead.walk.frequencies()[i], document);
            bool may_enter = !hopeless && bound + others > best.threshold();
            places[order[0]] = i;
            size_t j = 1;
            for (float most = bound; j < order.size() && (count || may_enter); ++j) {
                List& list = lists[order[j]];
                if (!may_enter && list.kept != nullptr) continue;  // it has the document, as `accepted` says
                list.walk.shallow_seek(document);
                if (list.walk.exhausted()) return;
                if (may_enter) {
                    most += list.bound_of(list.walk.block());
                    may_enter = most + rest[j + 1] > best.threshold();
                    if (!may_enter && (!count || list.kept != nullptr)) continue;
                }
                places[order[j]] = list.walk.find(document);
                if (places[order[j]] == NO_INDEX) break;
            }
            finds += j;
            if (j < order.size()) continue;
            if (count) ++matches;
            if (!may_enter) continue;
            for (j = 1; j < order.size(); ++j)
                bound += lists[order[j]].contribution(lists[order[j]].walk.frequencies()[places[order[j]]], document);
            if (bound <= best.threshold()) continue;
            Sum exact;
            for (size_t t = 0; t < query.terms.size(); ++t) {
                List& list = lists[here.of_term[t]];
                exact.add(query.terms[t], query.terms[t].score(list.walk.frequencies()[places[here.of_term[t]]], list.lengths[document]));
            }
            best.add(exact.total(), segment.base + document);
        }
        searched = segment.base + lead.walk.last_of(lead.walk.block()) + 1;
        clock.spend(static_cast<int64_t>(8 * finds));
    }
}

// Scores all accepted documents of a segment, one by one.
void score_accepted(const Query& query, const Segment& segment, SegmentLists& here, const uint64_t* accept, Best& best, Clock& clock) {
    const uint32_t end = segment.base + segment.documents;
    for (uint32_t lid = segment.base; lid < end;) {
        const uint64_t left = accept[lid >> 6] >> (lid & 63);
        if (left == 0) {
            lid = (lid | 63) + 1;
            continue;
        }
        lid += static_cast<uint32_t>(__builtin_ctzll(left));
        if (lid >= end) return;
        clock.spend(static_cast<int64_t>(16 * query.terms.size()));
        const uint32_t document = lid - segment.base;
        float most = 0;
        for (List& list : here.lists) {
            if (!list.may_have(document)) continue;
            list.probe.shallow_seek(document);
            if (!list.probe.exhausted()) most += list.bound_of(list.probe.block());
        }
        if (most > best.threshold() && most > 0)
            if (const double score = here.score(query.terms, document); score > 0) best.add(score, lid);
        ++lid;
    }
}

}  // namespace

BestHits find_best(const Reader& reader, const Query& query, uint32_t k, bool all, bool count, const Accepted& accept) {
    const uint64_t* bitmap = accept.bitmap;
    const bool is_empty = query.terms.empty();
    BestHits found;
    Clock clock;
    Best best(k, all || is_empty ? 0 : floor_of(reader, query, k, bitmap));
    thread_local Accumulators window(SPARSE_WINDOW);
    const uint64_t accepted = bitmap != nullptr ? count_bits(bitmap, bitmap, accept.words) : reader.limit();
    const bool is_rare = bitmap != nullptr && accepted * RARE_SHARE < reader.limit();
    const bool one_by_one = bitmap != nullptr && accepted * query.lists.size() * POSTINGS_OF_CANDIDATE < query.postings(reader);
    try {
        for (const Segment& segment : reader.segments) {
            SegmentLists here = query.in(segment, clock);
            if (!here.lists.empty() && !all && one_by_one)
                score_accepted(query, segment, here, bitmap, best, clock);
            else if (!here.lists.empty() && !all)
                AnyOf(query, segment, here, bitmap, is_rare, best, window, clock, found.searched).run();
            else if (all && !is_empty && here.lists.size() == query.lists.size())
                all_of(query, segment, here, bitmap, count, best, clock, found.matches, found.searched);
            found.searched = segment.base + segment.documents;
        }
    } catch (const OutOfTime&) {
        window = Accumulators(SPARSE_WINDOW);  // what was accumulated stands there
        if (found.searched == 0) throw;
    }
    found.hits = best.sorted();
    if (count && !all && found.searched == reader.limit()) found.matches = count_any(reader, query, accept, clock);
    return found;
}

namespace {

nb::tuple best(const Reader& reader, const std::vector<TermTuple>& terms, const std::vector<FoundTuple>& found, uint32_t k, bool all,
               bool count, const std::optional<In<uint64_t>>& accept) {
    if (k == 0) throw nb::value_error("k must be positive");
    if (accept && accept->size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    const std::vector<std::optional<Found>> found_of_terms = read_found(reader, terms.size(), found);
    const Query query = read_query(reader, terms, found_of_terms);
    BestHits hits;
    {
        const GilRelease unlocked(is_much(steps_of(reader, query, all, count)));
        hits = find_best(reader, query, k, all, count, accept ? Accepted{accept->data(), accept->size()} : Accepted());
    }
    auto scores = std::make_unique<std::vector<double>>();
    auto lids = std::make_unique<std::vector<uint32_t>>();
    for (const Scored& hit : hits.hits) {
        scores->push_back(hit.score);
        lids->push_back(hit.lid);
    }
    return nb::make_tuple(own(std::move(lids)), own(std::move(scores)), hits.matches, hits.searched);
}

}  // namespace

void bind_top_k(nb::module_& m) {
    m.def(
        "best", &best, nb::arg("reader"), nb::arg("terms"), nb::arg("found"), nb::arg("k"), nb::arg("all"), nb::arg("count"),
        nb::arg("accept").none(),
        "The best k documents by sum of weight * BM25, of those that have any or all of the terms: (lids, scores, how many such documents there\n"
        "are, the lid up to which documents were searched: the reader's limit, unless the time was over before).\n"
        "terms: (field, term, weight, k1, b, average length of the field) of each. found: of terms that are no words, such as phrases,\n"
        "(number among the terms, lids, offsets): document i has offsets[i + 1] - offsets[i] occurrences, at least one. Documents are counted if `count` says so and all were searched.");
}

}  // namespace paperwasp
