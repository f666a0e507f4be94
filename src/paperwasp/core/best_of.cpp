// The best of hits with scores, without sorting those that are not among them. The plain twin is in best_of.py.
#include "arrays.hpp"
#include "clock.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace paperwasp {
namespace {

constexpr size_t BLOCK_HITS = 16'384;  // between two looks at the clock

struct ScoredHit {
    double rank;
    uint32_t lid;
    size_t place;
    // Whether a is the better hit.
    friend bool operator<(const ScoredHit& a, const ScoredHit& b) { return a.rank != b.rank ? a.rank > b.rank : a.lid < b.lid; }
};

// Of twice as many as wanted the worse half goes, and the last that stays is the bound from then on.
std::vector<ScoredHit> best_hits(const uint32_t* lids, const double* scores, size_t hits, size_t wanted, Clock& clock) {
    std::vector<ScoredHit> best;
    best.reserve(std::min(hits, 2 * wanted));
    ScoredHit bound{-std::numeric_limits<double>::infinity(), std::numeric_limits<uint32_t>::max(), 0};
    const auto cut = [&] {
        if (best.size() <= wanted) return;
        std::nth_element(best.begin(), best.begin() + static_cast<std::ptrdiff_t>(wanted - 1), best.end());
        best.resize(wanted);
        bound = best.back();
    };
    for (size_t start = 0; start < hits; start += BLOCK_HITS) {
        const size_t end = std::min(hits, start + BLOCK_HITS);
        clock.spend(static_cast<int64_t>(4 * (end - start)));
        for (size_t place = start; place < end; ++place) {
            const ScoredHit hit{std::isnan(scores[place]) ? -std::numeric_limits<double>::infinity() : scores[place], lids[place], place};
            if (bound < hit) continue;
            best.push_back(hit);
            if (best.size() >= 2 * wanted) cut();
        }
    }
    cut();
    std::sort(best.begin(), best.end());
    return best;
}

nb::tuple best_of(In<uint32_t> lids, In<double> scores, size_t wanted) {
    const size_t hits = lids.shape(0);
    if (scores.shape(0) != hits) throw std::invalid_argument("a score for each hit");
    auto best_lids = std::make_unique<std::vector<uint32_t>>();
    auto best_scores = std::make_unique<std::vector<double>>();
    if (hits > 0 && wanted > 0) {
        const GilRelease release(is_much(4 * hits));
        Clock clock;
        for (const ScoredHit& hit : best_hits(lids.data(), scores.data(), hits, std::min(wanted, hits), clock)) {
            best_lids->push_back(hit.lid);
            best_scores->push_back(scores.data()[hit.place]);
        }
    }
    return nb::make_tuple(own(std::move(best_lids)), own(std::move(best_scores)));
}

}  // namespace

void bind_best_of(nb::module_& m) {
    m.def("best_of", &best_of, nb::arg("lids").noconvert(), nb::arg("scores").noconvert(), nb::arg("wanted"));
}

}  // namespace paperwasp
