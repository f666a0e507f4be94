// Ranking by an expression in plans: what the expression of a rank profile is computed of, and its program. The matches of a query are all
// scored, as search/first_phase.py does.
#pragma once

#include <cstddef>
#include <vector>

#include "rank_program.hpp"

namespace paperwasp {

// A feature that an expression is computed of.
struct PlanFeature {
    enum class Kind { BM25, CLOSENESS, RAW_SCORE, CONSTANT };

    Kind kind;
    size_t field;  // of BM25, among the plan's
    double value;  // of CONSTANT
};

struct PlanExpression {
    std::vector<PlanFeature> features;
    RankProgram program;  // checked
};

}  // namespace paperwasp
