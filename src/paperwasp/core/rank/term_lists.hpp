// What a search for the best documents by BM25 is made of: the terms of a query, the hits so far, and a term's posting list in one segment.
//
// Scores are in double precision, bounds in single precision with SLACK to spare: what a bound leaves out cannot be among the best.
#pragma once

#include <algorithm>
#include <cstdint>
#include <utility>
#include <vector>

#include "index/field_index.hpp"
#include "rank/accumulators.hpp"

namespace paperwasp {

constexpr float SLACK = 4e-6f;

// One term of the query: `weight` (its idf and whatever the rank profile multiplies it with) times BM25's saturation.
struct QueryTerm {
    uint32_t field, term;
    double weight, k1, b, average_length;

    // Whether the other reads the same posting list, and differs in its weight at most.
    bool reads_as(const QueryTerm& other) const {
        return field == other.field && term == other.term && k1 == other.k1 && b == other.b && average_length == other.average_length;
    }

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

// The documents of one segment that have a term.
struct List {
    const uint16_t* lengths;
    Cursor walk;   // accumulates
    Cursor probe;  // completes candidates
    float scale;   // from stored weight to a bound on the contribution
    bool stored;   // whether stored weights apply (default k1 and b)
    Saturation saturation;
    float bound;           // in the current window
    const uint64_t* kept;  // the bitmap of its documents, from the word of the segment's first document on; or nullptr
    uint32_t first_bit;    // of the first document in that word

    List(const QueryTerm& term, const FieldIndex& field_index, uint32_t place, const uint64_t* kept, uint32_t first_bit)
        : List(term, field_index, std::max(1.0, term.average_length / field_index.header->average_length), kept, first_bit, field_index,
               place) {}
    // Of postings whose weights are computed with the average length of the query. They must outlive the list.
    List(const QueryTerm& term, const FieldIndex& field_index, const PlainPostings& postings)
        : List(term, field_index, 1, nullptr, 0, postings) {}

    // False is certain, and true too where a bitmap is kept.
    bool may_have(uint32_t document) const {
        const uint32_t bit = first_bit + document;
        return kept == nullptr || (kept[bit >> 6] >> (bit & 63) & 1) != 0;
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
    // drift: how much larger a weight may be than the stored one. postings: what a cursor is made of.
    template <typename... Postings>
    List(const QueryTerm& term, const FieldIndex& field_index, double drift, const uint64_t* kept, uint32_t first_bit,
         const Postings&... postings)
        : lengths(field_index.field_lengths), walk(postings...), probe(postings...), bound(0), kept(kept), first_bit(first_bit) {
        stored = static_cast<float>(term.k1) == DEFAULT_K1 && static_cast<float>(term.b) == DEFAULT_B;
        scale = static_cast<float>(stored ? term.weight * drift : term.weight * (term.k1 + 1)) * (1 + SLACK);
        saturation = {static_cast<float>(term.weight * (term.k1 + 1)), static_cast<float>(term.k1 * (1 - term.b)),
                      static_cast<float>(term.k1 * term.b / term.average_length)};
    }

    uint32_t weighed_ = NO_INDEX;  // the block of contributions_
    float contributions_[BLOCK];
};

}  // namespace paperwasp
