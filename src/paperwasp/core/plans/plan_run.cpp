// A run of a plan: finds the hits, ranks and counts them, and writes the answer. See plan_run.hpp.
#include "plans/plan_run.hpp"

#include <algorithm>
#include <cmath>

#include "clock.hpp"

namespace paperwasp {
namespace {

// Bounds the work of a thread while one query is answered: kernels look at it by their Clock.
class Until {
  public:
    explicit Until(int64_t end_ns) { set(end_ns); }
    ~Until() { set(0); }
    Until(const Until&) = delete;
    Until& operator=(const Until&) = delete;

    static void set(int64_t end_ns) { time_of_thread() = {end_ns, LOOK_STEPS}; }
};

}  // namespace

size_t PlanThreads::most_for(uint64_t matches) const {
    if (hits_of_each == 0) return most;
    const auto worth = static_cast<size_t>(std::max<uint64_t>((matches + hits_of_each - 1) / hits_of_each, 1));
    return most > 0 ? std::min(most, worth) : worth;
}

void PlanRun::run() noexcept {
    const Until until(match_end_ns_);
    try {
        search();
    } catch (...) {  // out of time or memory: search/search.py reports the error
        is_answered_ = false;
    }
}

void PlanRun::search() {
    std::vector<Scored> hits;
    WordFinder finder(snapshot_);
    // In an order, or by an expression, by closeness, by nativeRank, or by bm25.
    const bool is_done = plan_.ranking.order        ? find_ordered_hits(finder, hits)
                         : plan_.ranking.expression ? find_expressed_hits(finder, hits)
                         : near_                    ? find_near_hits(hits)
                         : native_                  ? find_native_hits(finder, hits)
                                                    : find_best_hits(finder, hits);
    if (!is_done || (plan_.ranking.global && !rank_globally(hits))) return;
    if (!std::all_of(hits.begin(), hits.end(), [](const Scored& hit) { return std::isfinite(hit.score); })) return;
    Until::set(end_ns_);
    if (!plan_.shown.facets.empty() && !find_groups(finder, hits)) return;
    const int64_t begun_ns = monotonic_ns();
    is_answered_ = write_hits(hits);
    writing_ns_ = monotonic_ns() - begun_ns;
}

}  // namespace paperwasp
