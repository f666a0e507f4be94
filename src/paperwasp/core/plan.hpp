// Plan: a query that is compiled but for the values of each request, which fill its slots.
//
//     Plan (immutable, shared)  +  Snapshot  +  values of the slots  →  PlanRun  → run(), without the interpreter's lock  →  the answer's
//     JSON
//
// A plan is of the class of queries that are words, of a user's text in one index or of a statement in any: any, all, the best of any
// (weakAnd), or next to each other; or the documents that are nearest to a vector; or either of both, or what is nearest with words that
// only rank. Other conditions only narrow the documents, as a bitmap.
// Hits are ranked by a sum of bm25 features of weight 1, by nativeRank, by closeness, or by an expression of bm25 and closeness, after
// which a global phase may rank the best again; and shown as documents are stored. Facets may be counted among matches of words. What is
// not of this class, or turns out to need more when its words are known, goes the general way, whose answer is the same: search/search.py
// is the specification.
//
// Threads: a plan never changes. A run is used by one thread at a time; it holds counted references to all that it reads, and is made and
// freed with the interpreter's lock.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "bm25_scores.hpp"
#include "page.hpp"
#include "plan_facets.hpp"
#include "plan_finds.hpp"
#include "plan_global.hpp"
#include "plan_native.hpp"
#include "plan_order.hpp"
#include "plan_rank.hpp"
#include "plan_text.hpp"
#include "snapshot.hpp"
#include "top_k.hpp"
#include "weak_and.hpp"

namespace paperwasp {

// A field that is ranked by.
struct PlanField {
    std::string name;
    double k1, b;
    double average_length;  // 0: the snapshot's
};

struct Plan {
    enum class Composite { ANY, ALL, WEAK, PHRASE, NEAR };

    std::vector<std::string> indexes;  // of each word, with its language; one: of all words
    std::string phrase_index;          // of words next to each other
    Composite composite = Composite::ANY;
    uint32_t target_hits = 0;  // of a weakAnd
    std::vector<PlanField> fields;
    std::optional<NativeRank> native;          // in place of BM25
    std::optional<NearForm> near;              // of NEAR, which has no words, or beside words
    bool near_alone_matches = false;           // whether words beside it only rank; else they match as well
    std::optional<PlanExpression> expression;  // in place of all these
    std::optional<GlobalForm> global;          // ranks the best by the expression again
    std::optional<OrderForm> order;            // in place of ranking: all hits have relevance 0
    size_t most_words = 0;
    size_t most_characters = 0;     // of a word
    std::optional<PageForm> form;   // nothing: all hits are left
    std::vector<FacetRoot> facets;  // of all matches, shown among the hits
    size_t most_groups = 0;         // of a facet
};

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

    enum class Taken { READY, UNKNOWN, GENERAL_WAY };

    // Takes the terms of the request. UNKNOWN: the snapshot does not know yet what the words in `unknown` are, or the plan's fields.
    // GENERAL_WAY: the request cannot be run here.
    Taken take_terms(const std::vector<TextTerm>& terms, std::vector<UnknownWord>& unknown);

    // Takes the vector of the request.
    Taken take_vector(std::string_view vector, const NearSearch& search);

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

    // Writes the groups into the answer, if they are not there yet. Needs the interpreter's lock.
    void write_groups();

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

    std::shared_ptr<const Word> phrase_of(const TextTerm& term, std::vector<UnknownWord>& unknown) const;
    void add_children();
    bool add_native();
    bool add_order();
    bool add_terms();
    void add_ranked(const Word& word, const PlanField& field, uint32_t number, double average_length);
    void add_unranked(const Word& word);
    bool finds_all_in_lists() const;
    bool counts_by_lists() const;
    bool is_ranked(const WordMatch& match) const;
    bool has_fields() const;
    const In<uint64_t>& accepted() const { return accept_ ? *accept_ : *snapshot_.live; }
    uint64_t find_matches(PlanFinds& finds, uint64_t* selected) const;
    bool take_columns();
    uint64_t expected_facets_ns() const;
    bool find_best_hits(PlanFinds& finds, std::vector<Scored>& hits);
    bool find_native_hits(PlanFinds& finds, std::vector<Scored>& hits);
    bool find_near_hits(std::vector<Scored>& hits);
    bool find_ordered_hits(PlanFinds& finds, std::vector<Scored>& hits);
    bool find_groups(PlanFinds& finds, const std::vector<Scored>& hits);
    std::vector<const NativeFound*> native_found(PlanFinds& finds, std::vector<NativeFound>& given);
    bool add_expression();
    bool find_expressed_hits(PlanFinds& finds, std::vector<Scored>& hits);
    void add_bm25(size_t field, const std::vector<uint32_t>& lids, const std::vector<uint32_t>& word_lids, double* scores) const;
    bool read_features(const std::vector<PlanFeature>& features, const std::vector<uint32_t>& lids, const double* scores, Clock& clock,
                       FeatureColumns& to) const;
    bool rank_globally(std::vector<Scored>& hits);
    void keep_best(std::vector<Scored>& hits) const;
    void search();
    void write(const std::vector<Scored>& hits);

    const Plan& plan_;
    const Snapshot& snapshot_;
    const RowFiles& rows_;
    const uint32_t hits_, offset_;
    int64_t match_end_ns_ = 0, end_ns_ = 0;
    std::optional<In<uint64_t>> accept_;
    double attribute_ = 0;
    std::vector<std::shared_ptr<const Word>> words_;
    std::vector<uint32_t> ranked_;  // the numbers of the plan's fields
    std::vector<Term> terms_;
    std::vector<Child> children_;
    std::optional<NativeQuery> native_;
    std::vector<NativeGiven> native_given_;  // by list
    std::optional<NearQuery> near_;
    std::vector<NearDocument> near_found_;        // where hits are ranked by an expression
    std::vector<uint64_t> word_matches_;          // a bitmap, then
    std::vector<const SnapshotColumn*> columns_;  // of the facets
    bool all_ = false;                            // whether documents must have all terms
    bool all_in_lists_ = false;                   // whether those are the documents in all lists
    bool matches_first_ = false;                  // whether matches are looked for before they are ranked
    bool counts_ = true;                          // whether the kernel of BM25 counts them
    uint64_t expected_ns_ = 0;

    std::vector<uint64_t> matches_;  // a bitmap of them, where they are looked for first
    std::vector<FacetGroups> groups_;

    bool is_answered_ = false;
    std::string answer_;
    size_t groups_place_ = 0;  // where groups are still to be written into it; 0: nowhere
    std::vector<LeftHit> left_;
    uint64_t total_ = 0;
    uint32_t shown_ = 0;
    int64_t writing_ns_ = 0;
};

}  // namespace paperwasp
