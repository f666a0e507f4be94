// The global phase in plans: the best hits of a plan are ranked again, by an expression of features of each of them, some of which become
// numbers of how it stands among all of them. search/phases/later_phases.py is the specification.
//
// Threads: a form never changes.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "plans/plan_rank.hpp"

namespace paperwasp {

// A feature of the global phase: the value of an expression, as it is, or what a normalizer makes of those of all hits.
struct GlobalFeature {
    enum class Kind { PLAIN, LINEAR, RECIPROCAL };

    Kind kind;
    double k;  // of RECIPROCAL
    PlanExpression input;
};

struct GlobalForm {
    size_t rerank_count;               // one hit at least
    std::optional<double> drop_limit;  // hits of this relevance or lower are dropped
    std::vector<GlobalFeature> features;
    RankProgram program;  // checked
};

// Makes of the values of hits, best first, what a normalizer says of them: ranking/global_phase.py has the same. Values are finite.
void normalize(const GlobalFeature& feature, std::vector<double>& values);

// Moves the scores of hits that are not ranked again where they would be above those that are. before: the scores of all hits, falling;
// scores: the new ones of the first hits, one at least. Adds those of the others.
void add_scores_below(const std::vector<double>& before, std::vector<double>& scores);

}  // namespace paperwasp
