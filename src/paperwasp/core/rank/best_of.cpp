// The best of hits with scores, without sorting those that are not among them. The plain twin is in tests/oracles/best_of.py.
#include "rank/best_of.hpp"

#include <stdexcept>

#include "arrays.hpp"
#include "clock.hpp"

namespace paperwasp {
namespace {

constexpr size_t BLOCK_HITS = 16'384;  // between two looks at the clock

nb::tuple best_of(In<uint32_t> lids, In<double> scores, size_t wanted) {
    const size_t hits = lids.shape(0);
    if (scores.shape(0) != hits) throw std::invalid_argument("a score for each hit");
    auto best_lids = std::make_unique<std::vector<uint32_t>>();
    auto best_scores = std::make_unique<std::vector<double>>();
    if (hits > 0 && wanted > 0) {
        const GilRelease release(is_much(4 * hits));
        Clock clock;
        BestOf best(wanted, hits);
        for (size_t start = 0; start < hits; start += BLOCK_HITS) {
            const size_t end = std::min(hits, start + BLOCK_HITS);
            clock.spend(static_cast<int64_t>(4 * (end - start)));
            for (size_t place = start; place < end; ++place) best.add(lids.data()[place], scores.data()[place]);
        }
        for (const ScoredHit& hit : best.sorted()) {
            best_lids->push_back(hit.lid);
            best_scores->push_back(hit.score);
        }
    }
    return nb::make_tuple(own(std::move(best_lids)), own(std::move(best_scores)));
}

}  // namespace

void bind_best_of(nb::module_& m) {
    m.def("best_of", &best_of, nb::arg("lids").noconvert(), nb::arg("scores").noconvert(), nb::arg("wanted"));
}

}  // namespace paperwasp
