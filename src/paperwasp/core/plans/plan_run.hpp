// PlanRun: a plan with its slots filled, for one snapshot. It is run once; by a thread of Python without the interpreter's
// lock, unless it is short.
//
//     who makes it       Plans.run_of of search/plan/runs.py, by plan_module.cpp; or RoutedText (http/text_route.hpp)
//     fill_terms, …      plan_terms.cpp: the words of a request become terms of the index, and its vector a search
//     run                plan_run.cpp: finds, ranks again, counts, writes
//       find_…_hits      plan_hits.cpp; by an expression: plan_rank.cpp
//       rank_globally    plan_global.cpp
//       find_groups      plan_groups.cpp
//       write_hits       plan_answer.cpp
//
// Threads: a run is used by one thread at a time, and needs no lock. It holds no object of Python until it has `owners`, which are given to
// it, and freed with it, with the interpreter's lock; until then whoever made it keeps alive what it reads, arrays among it, whose
// references are counted by atomics.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "plans/bm25_scores.hpp"
#include "plans/plan.hpp"
#include "plans/plan_text.hpp"
#include "plans/snapshot.hpp"
#include "plans/word_finder.hpp"
#include "rank/top_k.hpp"
#include "rank/weak_and.hpp"

namespace paperwasp {

// A word that a snapshot does not know: the number of its index, whether it stands next to others, and the word.
using UnknownWord = std::tuple<size_t, bool, std::string>;

class PlanRun {
  public:
    PlanRun(const Plan& plan, const Snapshot& snapshot, const RowFiles& rows, uint32_t hits, uint32_t offset)
        : plan_(plan), snapshot_(snapshot), rows_(rows), hits_(hits), offset_(offset) {}

    // The time until which documents are searched, and until which the answer is waited for, on the monotonic clock; 0: without end.
    void end_at(int64_t match_end_ns, int64_t end_ns) {
        match_end_ns_ = match_end_ns;
        end_ns_ = end_ns;
    }

    enum class Filled { READY, UNKNOWN, GENERAL_WAY };

    // Fills the slots of words. UNKNOWN: the snapshot does not know yet what the words in `unknown` are, or the plan's fields.
    // GENERAL_WAY: the request cannot be run here.
    Filled fill_terms(const std::vector<TextTerm>& terms, std::vector<UnknownWord>& unknown);

    // Fills the slot of the vector.
    Filled fill_vector(std::string_view vector, const NearSearch& search);

    // Looks among these documents only, which are live. attribute: what nativeAttributeMatch is of each.
    void look_within(const In<uint64_t>& accept, double attribute) {
        accept_ = accept;
        attribute_ = attribute;
    }

    // About how many nanoseconds it will take.
    uint64_t expected_ns() const { return expected_ns_; }

    // A hit that its row does not show: it is to be written into the answer there.
    struct LeftHit {
        size_t place;
        uint32_t lid;
        double score;
    };

    // Answers the query. Afterwards `is_answered` tells whether `answer` is its answer but for the hits that are left; if not, the query
    // must be run by search/search.py instead.
    void run() noexcept;

    bool is_answered() const { return is_answered_; }
    const std::string& answer() const { return answer_; }
    const std::vector<LeftHit>& left() const { return left_; }
    uint64_t total() const { return total_; }
    uint32_t shown() const { return shown_; }
    int64_t writing_ns() const { return writing_ns_; }

    std::vector<nb::object> owners;

  private:
    // A term of the query. match: nullptr where its documents are its posting list; whole: the word that it is a part of, without which it
    // does not count, or nullptr.
    struct Term {
        QueryTerm term;
        const WordMatch* match = nullptr;
        const Word* whole = nullptr;
    };

    // One of the ways in which documents match: a child of the OR, of the AND, or of the weakAnd, where it has a score.
    struct Child {
        int64_t score;
        std::vector<const WordMatch*> matches;  // any of them
        const Word* whole = nullptr;            // in place of these: a word of several parts
    };

    // Filling slots
    std::shared_ptr<const Word> phrase_of(const TextTerm& term, std::vector<UnknownWord>& unknown) const;
    bool has_fields() const;
    bool find_columns();
    void add_children();
    bool add_terms();
    bool add_native();
    bool add_expression();
    bool add_order();
    void add_ranked(const Word& word, const PlanField& field, uint32_t number, double average_length);
    void add_unranked(const Word& word);
    bool is_ranked(const WordMatch& match) const;
    bool finds_all_in_lists() const;
    bool counts_by_lists() const;
    uint64_t expected_facets_ns() const;

    // Finding hits
    void search();
    const In<uint64_t>& accepted() const { return accept_ ? *accept_ : *snapshot_.live; }
    uint64_t find_matches(WordFinder& finder, uint64_t* selected) const;
    bool find_best_hits(WordFinder& finder, std::vector<Scored>& hits);
    bool find_native_hits(WordFinder& finder, std::vector<Scored>& hits);
    bool find_near_hits(std::vector<Scored>& hits);
    bool find_expressed_hits(WordFinder& finder, std::vector<Scored>& hits);
    bool find_ordered_hits(WordFinder& finder, std::vector<Scored>& hits);
    std::vector<const NativeFound*> native_found(WordFinder& finder, std::vector<NativeFound>& given);
    bool read_features(const std::vector<PlanFeature>& features, const std::vector<uint32_t>& lids, const double* scores, Clock& clock,
                       FeatureColumns& to) const;
    void add_bm25(size_t field, const std::vector<uint32_t>& lids, const std::vector<uint32_t>& word_lids, double* scores) const;
    void keep_best(std::vector<Scored>& hits) const;
    bool rank_globally(std::vector<Scored>& hits);
    bool find_groups(WordFinder& finder, const std::vector<Scored>& hits);

    // Writing the answer
    bool write_hits(const std::vector<Scored>& hits);
    bool write_groups();

    const Plan& plan_;
    const Snapshot& snapshot_;
    const RowFiles& rows_;

    // The slots
    const uint32_t hits_, offset_;
    int64_t match_end_ns_ = 0, end_ns_ = 0;
    std::optional<In<uint64_t>> accept_;
    double attribute_ = 0;
    std::vector<std::shared_ptr<const Word>> words_;
    std::optional<NearQuery> near_;

    // What the words are for the kernels
    std::vector<uint32_t> ranked_;  // the numbers of the plan's fields
    std::vector<Term> terms_;
    std::vector<Child> children_;
    std::optional<NativeQuery> native_;
    std::vector<NativeGiven> native_given_;       // by list
    std::vector<const SnapshotColumn*> columns_;  // of the facets
    std::vector<const SnapshotColumn*> shown_columns_;
    bool all_ = false;            // whether documents must have all terms
    bool all_in_lists_ = false;   // whether those are the documents in all lists
    bool matches_first_ = false;  // whether matches are looked for before they are ranked
    bool counts_ = true;          // whether the kernel of BM25 counts them
    uint64_t expected_ns_ = 0;

    // What was found
    std::vector<uint64_t> matches_;         // a bitmap of them, where they are looked for first
    std::vector<NearDocument> near_found_;  // where hits are ranked by an expression
    std::vector<uint64_t> word_matches_;    // a bitmap, then
    std::vector<FacetGroups> groups_;
    uint64_t total_ = 0;

    // The answer
    bool is_answered_ = false;
    std::string answer_;
    std::vector<LeftHit> left_;
    uint32_t shown_ = 0;
    int64_t writing_ns_ = 0;
};

}  // namespace paperwasp
