// Plan: a query that is compiled but for the values of each request, which fill its slots.
//
//     Plan (immutable, shared)  +  Snapshot  +  values of the slots  →  PlanRun (plan_run.hpp)  →  the answer's JSON
//
// A plan is of the class of queries that are words, of a user's text in one index or of a statement in any: any, all, the best of any
// (weakAnd), or next to each other; or the documents that are nearest to a vector; or either of both, or what is nearest with words that
// only rank. Other conditions only narrow the documents, as a bitmap.
// Hits are ranked by a sum of bm25 features of weight 1, by nativeRank, by closeness, or by an expression of bm25 and closeness, after
// which a global phase may rank the best again; and shown as documents are stored. Facets may be counted among matches of words. What is
// not of this class, or turns out to need more when its words are known, goes the general way, whose answer is the same: search/search.py
// is the specification.
//
// Its four records are made by search/plan/compiler.py (words and what is shown, what is near, what is ranked by), which hands
// them over by plan_records.cpp.
//
// Threads: a plan and its records never change.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "documents/page.hpp"
#include "plans/plan_facets.hpp"
#include "plans/plan_global.hpp"
#include "plans/plan_native.hpp"
#include "plans/plan_near.hpp"
#include "plans/plan_order.hpp"
#include "plans/plan_rank.hpp"

namespace paperwasp {

// The words that are looked for.
struct PlanWords {
    enum class Composite { ANY, ALL, WEAK, PHRASE, NEAR };

    std::vector<std::string> indexes;  // of each word, with its language; one: of all words; none: there are no words
    std::string phrase_index;          // of words next to each other
    Composite composite = Composite::ANY;
    uint32_t target_hits = 0;  // of a weakAnd
    size_t most_words = 0;
    size_t most_characters = 0;  // of a word
};

// A field that is ranked by.
struct PlanField {
    std::string name;
    double k1, b;
    double average_length;  // 0: the snapshot's
};

// What hits are ranked by: a sum of bm25 of the fields, unless one of the others is there; what is near alone, by closeness.
struct PlanRanking {
    std::vector<PlanField> fields;
    std::optional<NativeRank> native;
    std::optional<PlanExpression> expression;  // of bm25 of the fields, and of closeness
    std::optional<GlobalForm> global;          // ranks the best by the expression again
    std::optional<OrderForm> order;            // all hits have relevance 0
};

// What is shown of hits, and counted among all matches.
struct PlanShown {
    std::optional<PageForm> form;      // nothing: all hits are left
    std::vector<std::string> columns;  // for each key of the form that whose values are shown; none: they are in the rows
    std::vector<FacetRoot> facets;
    size_t most_groups = 0;  // of a facet
};

// How many threads share a run that takes long, where others have nothing else to do.
struct PlanThreads {
    size_t most = 0;            // 0: as many as there are
    uint64_t hits_of_each = 0;  // the fewest matches that a thread is given

    // The most for these matches; 0: any number.
    size_t most_for(uint64_t matches) const;
};

struct Plan {
    PlanWords words;
    std::optional<NearForm> near;  // in place of words, or beside them
    PlanRanking ranking;
    PlanShown shown;
    PlanThreads threads;
};

}  // namespace paperwasp
