// The groups of a run of a plan: counted among its matches, and written into its answer (plan_facets.hpp).
#include <algorithm>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "plans/plan_run.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t FACET_STEPS = 10;  // about how many nanoseconds a match takes for each facet

}  // namespace

// Of all matches, as many as there are where words are independent of each other.
uint64_t PlanRun::expected_facets_ns() const {
    const Reader& reader = *snapshot_.reader;
    const double documents = static_cast<double>(std::max<uint64_t>(snapshot_.documents, 1));
    double share = all_ ? 1 : 0;
    for (const Child& child : children_) {
        double of_child = 0;
        for (const WordMatch* match : child.matches) of_child += static_cast<double>(reader.frequency(match->field, match->terms[0]));
        share = all_ ? share * (of_child / documents) : share + of_child / documents;
    }
    return static_cast<uint64_t>(std::min(share, 1.0) * documents) * FACET_STEPS * columns_.size();
}

// Finds the groups of all matches, none of which scores more than the best hit, if there is one. False: it is not done.
bool PlanRun::find_groups(WordFinder& finder, const std::vector<Scored>& hits) {
    const Reader& reader = *snapshot_.reader;
    std::vector<NativeFound> given;
    const std::vector<const NativeFound*> found = native_ ? native_found(finder, given) : std::vector<const NativeFound*>();
    std::vector<ScoredTerm> terms;
    for (const Term& term : terms_) terms.push_back({term.term, term.match == nullptr ? nullptr : &finder.term(*term.match, term.whole)});
    const ScoreLids score = [&](const std::vector<uint32_t>& some, std::vector<double>& scores) {
        Clock clock;
        if (native_)
            score_by_native_rank(reader, *native_, found, some, scores, clock);
        else
            score_by_bm25(reader, terms, some, scores, clock);
    };
    const double highest = hits.empty() ? std::numeric_limits<double>::infinity() : hits.front().score;
    Matches matches(matches_.data(), matches_.size(), plan_.threads.most_for(total_), highest, score);
    auto column = columns_.begin();
    for (const FacetRoot& root : plan_.shown.facets)
        for (const FacetList& list : root.lists) {
            FacetGroups& groups = groups_.emplace_back();
            if (!find_facet(list, **column++, matches, groups)) return false;
            if (groups.first.size() > plan_.shown.most_groups) return false;
        }
    return true;
}

// Writes the groups as children of the answer. False: it cannot.
bool PlanRun::write_groups() {
    const SnapshotColumn* const* columns = columns_.data();
    const FacetGroups* groups = groups_.data();
    for (const FacetRoot& root : plan_.shown.facets) {
        if (&root != &plan_.shown.facets.front()) answer_ += ',';
        if (!append_facets(root, columns, groups, answer_)) return false;
        columns += root.lists.size();
        groups += root.lists.size();
    }
    return true;
}

}  // namespace paperwasp
