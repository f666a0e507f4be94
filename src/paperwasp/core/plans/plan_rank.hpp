// Ranking by an expression in plans: what the expression of a rank profile is computed of, and its program. The matches of a query are all
// scored, as search/phases/first_phase.py does.
//
// Threads: an expression never changes.
#pragma once

#include <cstddef>
#include <vector>

#include "rank/rank_program.hpp"

namespace paperwasp {

// A feature that an expression is computed of. RELEVANCE: the score that a hit has in the phase before.
struct PlanFeature {
    enum class Kind { BM25, CLOSENESS, RAW_SCORE, RELEVANCE, CONSTANT };

    Kind kind;
    size_t field;  // of BM25, among the plan's
    double value;  // of CONSTANT
};

struct PlanExpression {
    std::vector<PlanFeature> features;
    RankProgram program;  // checked
};

// The values of features for some documents.
struct FeatureColumns {
    std::vector<std::vector<double>> values;
    std::vector<RankColumn> columns;  // which point into them
};

}  // namespace paperwasp
