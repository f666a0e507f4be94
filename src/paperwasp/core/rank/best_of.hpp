// The best of hits with scores that come one after another, without sorting those that are not among them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace paperwasp {

struct ScoredHit {
    double rank;  // the score; of NaN, which is worse than any number, -infinity
    double score;
    uint32_t lid;
    // Whether a is the better hit.
    friend bool operator<(const ScoredHit& a, const ScoredHit& b) { return a.rank != b.rank ? a.rank > b.rank : a.lid < b.lid; }
};

// Of twice as many as wanted the worse half goes, and the last that stays is the bound from then on.
class BestOf {
  public:
    // Of `hits` at most. Both are 1 at least.
    BestOf(size_t wanted, size_t hits) : wanted_(std::min(wanted, hits)) { best_.reserve(std::min(hits, 2 * wanted_)); }

    void add(uint32_t lid, double score) {
        const ScoredHit hit{std::isnan(score) ? -std::numeric_limits<double>::infinity() : score, score, lid};
        if (bound_ < hit) return;
        best_.push_back(hit);
        if (best_.size() >= 2 * wanted_) cut();
    }

    // Best first; of equal scores the lower lid first. Nothing is added afterwards.
    std::vector<ScoredHit> sorted() {
        cut();
        std::sort(best_.begin(), best_.end());
        return std::move(best_);
    }

  private:
    void cut() {
        if (best_.size() <= wanted_) return;
        std::nth_element(best_.begin(), best_.begin() + static_cast<std::ptrdiff_t>(wanted_ - 1), best_.end());
        best_.resize(wanted_);
        bound_ = best_.back();
    }

    const size_t wanted_;
    std::vector<ScoredHit> best_;
    ScoredHit bound_{-std::numeric_limits<double>::infinity(), 0, std::numeric_limits<uint32_t>::max()};
};

}  // namespace paperwasp
