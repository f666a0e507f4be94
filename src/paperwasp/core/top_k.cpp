// The best k documents by a weighted sum of BM25 terms, without scoring all of them.
//
// any_of: block-max MaxScore (Turtle & Flood 1995; Ding & Suel 2011) over windows of documents. In each window the terms whose
// bounds together cannot reach the threshold are not essential: only the others' postings are accumulated (accumulators.hpp);
// documents that might still enter are completed by looking them up in the remaining terms. all_of: an intersection led by the rarest term
// that skips blocks whose bounds cannot enter.
//
// Scores decide in double precision, summed over each run of terms of one field and then over those; ties go to the lower lid. Pruning works in float with SLACK
// to spare, so the answer is the same as that of scoring everything. A bound stored with another average field length than today's is
// scaled by their ratio, which keeps it a bound: growing the average by r shrinks the length part of BM25's denominator by at most 1/r, and with
// it raises a weight by at most r.
//
// Reads immutable segments and bitmaps only; the GIL is released.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <optional>

#include <nanobind/stl/optional.h>

#include "accumulators.hpp"
#include "arrays.hpp"
#include "clock.hpp"
#include "reader.hpp"

namespace paperwasp {
namespace {

constexpr float SLACK = 4e-6f;
// Terms are left out of accumulation while their bounds together are below this share of the threshold, not only while they are below all
// of it: adding a posting costs about 1 ns, completing a candidate 10 to 30. Measured on 200k abstracts, mean of short / long queries
// in us: 162 / 482 at 1, 123 / 265 at 0.6, 116 / 231 at 0.4, 123 / 267 at 0.2.
constexpr float ESSENTIAL_SHARE = 0.4f;
constexpr uint32_t DENSE_WINDOW = 4096;    // documents; its accumulators fit the first-level cache
constexpr uint32_t SPARSE_WINDOW = 65536;  // where postings are few

// Keeps the parts of the hot loop apart: inlined into one function they run out of registers (a fifth slower).
#define NOINLINE __attribute__((noinline))

// One term of the query: `weight` (its idf and whatever the rank profile multiplies it with) times BM25's saturation.
struct QueryTerm {
    uint32_t field, term;
    double weight, k1, b, average_length;

    double score(uint32_t frequency, uint32_t length) const {
        const double f = frequency;
        return f * (weight * (k1 + 1)) / (f + (k1 * (1 - b) + k1 * b * (length / average_length)));
    }
};

// Adds up each field's terms, then the fields: as a sum of bm25 features does.
class Sum {
  public:
    void add(const QueryTerm& term, double score) {
        if (term.field != field_) {
            fields_ += terms_;
            terms_ = 0;
            field_ = term.field;
        }
        terms_ += score;
    }
    double total() const { return fields_ + terms_; }

  private:
    uint32_t field_ = NO_INDEX;
    double fields_ = 0, terms_ = 0;
};

struct Scored {
    double score;
    uint32_t lid;
    // Whether a is the better hit.
    friend bool operator<(const Scored& a, const Scored& b) { return a.score != b.score ? a.score > b.score : a.lid < b.lid; }
};

// The best `capacity` hits so far; the worst of them on top.
class Best {
  public:
    Best(uint32_t capacity, double floor) : capacity_(capacity), floor_(floor) { update(); }

    // What a float upper bound must exceed to be worth completing.
    float threshold() const { return threshold_; }

    void add(double score, uint32_t lid) {
        const Scored hit{score, lid};
        if (heap_.size() < capacity_) {
            heap_.push_back(hit);
            std::push_heap(heap_.begin(), heap_.end());
            if (heap_.size() == capacity_) update();
        } else if (hit < heap_.front()) {
            std::pop_heap(heap_.begin(), heap_.end());
            heap_.back() = hit;
            std::push_heap(heap_.begin(), heap_.end());
            update();
        }
    }

    std::vector<Scored> sorted() {
        std::sort(heap_.begin(), heap_.end());
        return std::move(heap_);
    }

  private:
    void update() {
        const double least = heap_.size() == capacity_ ? std::max(floor_, heap_.front().score) : floor_;
        threshold_ = least <= 0 ? -1.0f : static_cast<float>(least) * (1 - SLACK);
    }

    uint32_t capacity_;
    double floor_;  // at least `capacity_` documents score this much
    float threshold_;
    std::vector<Scored> heap_;
};

// One term of the query in one segment.
struct List {
    const QueryTerm* query;
    const uint16_t* lengths;
    Cursor walk;   // accumulates
    Cursor probe;  // completes candidates
    float scale;   // from stored weight to a bound on the contribution
    bool stored;   // whether stored weights apply (default k1 and b)
    Saturation saturation;
    float bound;  // in the current window

    List(const QueryTerm& term, const Segment& segment, uint32_t place)
        : query(&term), lengths(segment.field_lengths), walk(segment, place), probe(segment, place) {
        stored = static_cast<float>(term.k1) == DEFAULT_K1 && static_cast<float>(term.b) == DEFAULT_B;
        const double drift = std::max(1.0, term.average_length / segment.header->average_length);
        scale = static_cast<float>(stored ? term.weight * drift : term.weight * (term.k1 + 1)) * (1 + SLACK);
        saturation = {static_cast<float>(term.weight * (term.k1 + 1)), static_cast<float>(term.k1 * (1 - term.b)),
                      static_cast<float>(term.k1 * term.b / term.average_length)};
        bound = 0;
    }

    float bound_of(uint32_t block) const { return stored ? scale * walk.weight_of(block) : scale; }
    float bound_of_term() const { return stored ? scale * walk.max_weight() : scale; }

    float contribution(uint32_t frequency, uint32_t document) const { return saturation.weight(frequency, lengths[document]); }

    // Of each document of the current block.
    const float* contributions() {
        if (weighed_ != walk.block()) {
            const uint32_t* documents = walk.documents();
            uint32_t found[BLOCK] = {};
            for (uint32_t i = 0, n = walk.count(); i < n; ++i) found[i] = lengths[documents[i]];
            saturation.weigh(walk.frequencies(), found, contributions_);
            weighed_ = walk.block();
        }
        return contributions_;
    }

    // Moves to the window [low, high) and sets `bound` to the largest contribution of any of its documents.
    void enter(uint32_t low, uint32_t high) {
        walk.shallow_seek(low);
        float most = 0;
        for (uint32_t b = walk.block(); b < walk.block_count(); ++b) {
            most = std::max(most, bound_of(b));
            if (walk.last_of(b) >= high - 1) break;
        }
        bound = most;
    }

  private:
    uint32_t weighed_ = NO_INDEX;  // the block of contributions_
    float contributions_[BLOCK];
};

// A filter that few documents pass, and the lid of the segment's first document. Tested for every posting, before it is scored; other
// filters are tested for candidates only. bitmap == nullptr: not such a filter.
struct Rare {
    const uint64_t* bitmap;
    uint32_t base;
};
constexpr uint64_t RARE_SHARE = 8;  // one document in so many

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
    AnyOf(const Part& part, std::vector<List> lists, const uint64_t* accept, bool is_rare, Best& best, Accumulators& window, Clock& clock,
          uint32_t& searched)
        : part_(part),
          lists_(std::move(lists)),
          order_(lists_.size()),
          below_(lists_.size() + 1),
          accept_(accept),
          rare_{is_rare ? accept : nullptr, part.base},
          best_(best),
          window_(window),
          clock_(clock),
          searched_(searched) {
        std::iota(order_.begin(), order_.end(), 0u);
    }

    void run() {
        uint64_t postings = 0;
        for (const List& list : lists_) postings += list.walk.frequency();
        const uint32_t size = postings * 32 < part_.documents ? SPARSE_WINDOW : DENSE_WINDOW;
        for (uint32_t low = 0; low < part_.documents;) {
            const uint32_t high = low + std::min(size, part_.documents - low);
            run_window(low, high);
            low = high;
            searched_ = part_.base + high;
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
        window_.drain([&] { return std::max(best_.threshold() - below_[first_], 0.0f); }, [&](uint32_t at, float score) { complete(low + at, score); });
    }

    // Adds what the terms that are not essential contribute, as long as the document may still enter.
    NOINLINE void complete(uint32_t document, float score) {
        if (!accepts(accept_, part_.base + document)) return;
        for (size_t i = first_; i-- > 0;) {
            if (score + below_[i + 1] <= best_.threshold()) return;
            List& list = lists_[order_[i]];
            list.probe.shallow_seek(document);
            if (list.probe.exhausted()) continue;
            if (score + below_[i] + list.bound_of(list.probe.block()) <= best_.threshold()) return;
            const uint32_t at = list.probe.find(document);
            if (at != NO_INDEX) score += list.contribution(list.probe.frequencies()[at], document);
        }
        if (score <= best_.threshold()) return;
        if (searched_ > 0) searched_ = part_.base + document;  // before the end of the first window there is no answer
        clock_.spend(static_cast<int64_t>(16 * lists_.size()));
        Sum exact;
        for (List& list : lists_) {
            const uint32_t at = list.probe.find(document);
            if (at != NO_INDEX) exact.add(*list.query, list.query->score(list.probe.frequencies()[at], list.lengths[document]));
        }
        best_.add(exact.total(), part_.base + document);
    }

    const Part& part_;
    std::vector<List> lists_;       // in the order of the query
    std::vector<uint32_t> order_;   // by rising bound in the window
    std::vector<float> below_;      // below_[i]: bounds of order_[0..i) together
    size_t first_ = 0;              // order_[first_..] are essential
    const uint64_t* accept_;
    Rare rare_;
    Best& best_;
    Accumulators& window_;
    Clock& clock_;
    uint32_t& searched_;  // documents below this lid are done; it is right whenever the time is over
};

// Intersects; adds to `found` how many documents are accepted. With `count`, all are looked at; otherwise only those that may enter.
// Documents below `searched` are done.
void all_of(const Part& part, std::vector<List>& lists, const uint64_t* accept, bool count, Best& best, Clock& clock, uint64_t& found,
            uint32_t& searched) {
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
            if (!accepts(accept, part.base + document)) continue;
            float bound = hopeless ? 0 : lead.contribution(lead.walk.frequencies()[i], document);
            if (!count && bound + others <= best.threshold()) continue;
            places[order[0]] = i;
            size_t j = 1;
            for (float most = bound; j < order.size(); ++j) {
                List& list = lists[order[j]];
                list.walk.shallow_seek(document);
                if (list.walk.exhausted()) return;
                if (!count) {
                    most += list.bound_of(list.walk.block());
                    if (most + rest[j + 1] <= best.threshold()) break;
                }
                places[order[j]] = list.walk.find(document);
                if (places[order[j]] == NO_INDEX) break;
            }
            finds += j;
            if (j < order.size()) continue;
            ++found;
            if (hopeless) continue;
            for (j = 1; j < order.size(); ++j) bound += lists[order[j]].contribution(lists[order[j]].walk.frequencies()[places[order[j]]], document);
            if (bound <= best.threshold()) continue;
            Sum exact;
            for (size_t t = 0; t < lists.size(); ++t)
                exact.add(*lists[t].query, lists[t].query->score(lists[t].walk.frequencies()[places[t]], lists[t].lengths[document]));
            best.add(exact.total(), part.base + document);
        }
        searched = part.base + lead.walk.last_of(lead.walk.block()) + 1;
        clock.spend(static_cast<int64_t>(8 * finds));
    }
}

// A score that at least `k` accepted documents reach: the k-th best of some term's champions.
double floor_of(const Reader& reader, const std::vector<QueryTerm>& terms, uint32_t k, const uint64_t* accept) {
    double floor = 0;
    std::vector<double> weights;
    for (const QueryTerm& term : terms) {
        if (static_cast<float>(term.k1) != DEFAULT_K1 || static_cast<float>(term.b) != DEFAULT_B) continue;
        weights.clear();
        reader.for_each(term.field, term.term, [&](const Part& part, const Segment& segment, uint32_t place) {
            const uint32_t start = segment.champion_starts[place];
            if (start == NO_INDEX) return;
            const double drift = std::min(1.0, term.average_length / segment.header->average_length);
            for (uint32_t i = start; i < start + CHAMPIONS; ++i)
                if (accepts(accept, part.base + segment.champion_docs[i])) weights.push_back(segment.champion_weights[i] * drift * term.weight);
        });
        if (weights.size() < k) continue;
        std::nth_element(weights.begin(), weights.begin() + (k - 1), weights.end(), std::greater<>());
        floor = std::max(floor, weights[k - 1]);
    }
    // A hair below: a document that has just this score must still enter.
    return floor * (1 - 2 * static_cast<double>(SLACK));
}

std::vector<List> lists_of(const Part& part, const std::vector<QueryTerm>& terms) {
    std::vector<List> lists;
    lists.reserve(terms.size());
    for (const QueryTerm& term : terms) {
        const Segment& segment = part.segments[term.field];
        if (segment.header == nullptr) continue;
        if (const uint32_t place = segment.find(term.term); place != NO_INDEX) lists.emplace_back(term, segment, place);
    }
    return lists;
}

nb::tuple top_k(const Reader& reader, In<uint32_t> fields, In<uint32_t> ids, In<double> weights, In<double> k1, In<double> b,
                In<double> average_lengths, uint32_t k, bool all, bool count, const std::optional<In<uint64_t>>& accept) {
    const size_t n = fields.size();
    if (ids.size() != n || weights.size() != n || k1.size() != n || b.size() != n || average_lengths.size() != n || k == 0)
        throw nb::value_error("arrays of terms must have one length, and k must be positive");
    if (accept && accept->size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    std::vector<QueryTerm> terms;
    for (size_t i = 0; i < n; ++i) {
        check_field(reader, fields.data()[i]);
        if (!(weights.data()[i] >= 0) || !(k1.data()[i] >= 0) || !(b.data()[i] >= 0 && b.data()[i] <= 1)) throw nb::value_error("weights must not be negative");
        const double average = average_lengths.data()[i];
        terms.push_back({fields.data()[i], ids.data()[i], weights.data()[i], k1.data()[i], b.data()[i], average > 0 ? average : 1});
    }
    auto scores = std::make_unique<std::vector<double>>();
    auto lids = std::make_unique<std::vector<uint32_t>>();
    uint64_t found = 0;
    uint32_t searched = 0;
    Clock clock;
    {
        nb::gil_scoped_release unlocked;
        const uint64_t* bitmap = accept ? accept->data() : nullptr;
        Best best(k, all || n == 0 ? 0 : floor_of(reader, terms, k, bitmap));
        thread_local Accumulators window(SPARSE_WINDOW);
        const bool is_rare = accept && count_bits(bitmap, bitmap, accept->size()) * RARE_SHARE < reader.limit();
        try {
            for (const Part& part : reader.parts) {
                std::vector<List> lists = lists_of(part, terms);
                if (!lists.empty() && !all)
                    AnyOf(part, std::move(lists), bitmap, is_rare, best, window, clock, searched).run();
                else if (lists.size() == n && n > 0)
                    all_of(part, lists, bitmap, count, best, clock, found, searched);
                searched = part.base + part.documents;
            }
        } catch (const OutOfTime&) {
            window = Accumulators(SPARSE_WINDOW);  // what was accumulated stands there
            if (searched == 0) throw;
        }
        for (const Scored& hit : best.sorted()) {
            scores->push_back(hit.score);
            lids->push_back(hit.lid);
        }
    }
    return nb::make_tuple(own(std::move(lids)), own(std::move(scores)), found, searched);
}

}  // namespace

void bind_top_k(nb::module_& m) {
    m.def("top_k", &top_k, nb::arg("reader"), nb::arg("fields"), nb::arg("terms"), nb::arg("weights"), nb::arg("k1"), nb::arg("b"),
          nb::arg("average_lengths"), nb::arg("k"), nb::arg("all"), nb::arg("count"), nb::arg("accept").none(),
          "The best k documents by sum of weight * BM25: (lids, scores, documents found where all terms are asked for and counted, the lid up\n"
          "to which documents were searched: the reader's limit, unless the time was over before).");
}

}  // namespace paperwasp
