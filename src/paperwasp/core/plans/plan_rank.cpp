// Ranking by an expression in plans: see plan_rank.hpp.
#include "plans/plan_rank.hpp"

#include <cmath>

#include "plans/plan_run.hpp"
#include "rank/bm25.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t NS_OF_POSTING = 4;  // about, to find all matches and to read what stands in them

}  // namespace

// Takes what the words are as terms of the features. False: they are more than terms of the index.
bool PlanRun::add_expression() {
    for (const PlanField& field : plan_.ranking.fields) {
        const Snapshot::Field found = *snapshot_.field(field.name);
        ranked_.push_back(found.number);
        const double average_length = field.average_length > 0 ? field.average_length : *found.average_length;
        for (const auto& word : words_) add_ranked(*word, field, found.number, average_length > 0 ? average_length : 1);
    }
    for (const auto& word : words_)
        for (const WordPart& part : word->parts)
            for (size_t i = 1; i < part.matches.size(); ++i)
                if (part.matches[i].field == part.matches[i - 1].field) return false;
    for (const Term& term : terms_)
        if (term.match != nullptr) return false;
    add_children();
    const Reader& reader = *snapshot_.reader;
    for (const Term& term : terms_) expected_ns_ += NS_OF_POSTING * reader.frequency(term.term.field, term.term.term);
    expected_ns_ += static_cast<uint64_t>(HIT_STEPS) * hits_;
    return true;
}

// Adds the bm25 of a field of the plan, terms in the order of the query, of those documents that the words match.
void PlanRun::add_bm25(size_t field, const std::vector<uint32_t>& lids, const std::vector<uint32_t>& word_lids, double* scores) const {
    std::vector<std::pair<uint32_t, double>> terms;
    double average_length = 1;
    for (const Term& term : terms_) {
        if (term.term.field != ranked_[field]) continue;
        terms.emplace_back(term.term.term, term.term.weight);
        average_length = term.term.average_length;
    }
    const PlanField& of = plan_.ranking.fields[field];
    std::vector<double> added(word_lids.size(), 0.0);
    add_bm25_of(*snapshot_.reader, ranked_[field], terms, of.k1, of.b, average_length, word_lids.data(), word_lids.size(), added.data());
    for (size_t i = 0, k = 0; k < word_lids.size(); ++i)
        if (lids[i] == word_lids[k]) scores[i] = added[k++];
}

// The values of features for matches, by rising lid. scores: those of the phase before; nullptr: there is none. False: some are not known.
bool PlanRun::read_features(const std::vector<PlanFeature>& features, const std::vector<uint32_t>& lids, const double* scores, Clock& clock,
                            FeatureColumns& to) const {
    std::vector<uint32_t> word_lids;
    for (const uint32_t lid : lids)
        if (word_matches_[lid >> 6] >> (lid & 63) & 1) word_lids.push_back(lid);
    to.values.reserve(features.size());
    for (const PlanFeature& feature : features) {
        const bool is_one = feature.kind == PlanFeature::Kind::CONSTANT;
        std::vector<double>& column = to.values.emplace_back(is_one ? 1 : lids.size(), 0.0);
        to.columns.push_back({column.data(), is_one});
        switch (feature.kind) {
            case PlanFeature::Kind::BM25:
                add_bm25(feature.field, lids, word_lids, column.data());
                break;
            case PlanFeature::Kind::CLOSENESS:
                if (!near_->read_closeness(near_found_, lids, clock, column.data())) return false;
                break;
            case PlanFeature::Kind::RAW_SCORE: {
                auto found = near_found_.begin();
                for (size_t i = 0; i < lids.size(); ++i) {
                    while (found != near_found_.end() && found->lid < lids[i]) ++found;
                    if (found != near_found_.end() && found->lid == lids[i]) column[i] = found->closeness;
                }
                break;
            }
            case PlanFeature::Kind::RELEVANCE:
                if (scores == nullptr) return false;
                column.assign(scores, scores + lids.size());
                break;
            case PlanFeature::Kind::CONSTANT:
                column[0] = feature.value;
                break;
        }
    }
    return true;
}

// All matches, scored by the expression; the best of them. False: it is not done.
bool PlanRun::find_expressed_hits(WordFinder& finder, std::vector<Scored>& hits) {
    word_matches_.assign(accepted().size(), 0);
    if (!words_.empty()) find_matches(finder, word_matches_.data());
    std::vector<uint64_t> matches(word_matches_.size(), 0);
    if (!plan_.near || !plan_.near->alone_matches) matches = word_matches_;
    if (near_) {
        std::optional<std::vector<NearDocument>> found = near_->find(*snapshot_.live, accepted());
        if (!found) return false;
        near_found_ = std::move(*found);
        for (const NearDocument& document : near_found_) matches[document.lid >> 6] |= uint64_t{1} << (document.lid & 63);
    }
    const std::vector<uint32_t> lids = lids_of(matches.data(), matches.size());
    total_ = lids.size();
    Clock clock;
    FeatureColumns features;
    if (!read_features(plan_.ranking.expression->features, lids, nullptr, clock, features)) return false;
    std::vector<double> scores(lids.size());
    run_program(plan_.ranking.expression->program, features.columns, lids.size(), scores.data(), clock);
    hits.reserve(lids.size());
    for (size_t i = 0; i < lids.size(); ++i) {
        if (!std::isfinite(scores[i])) return false;
        hits.push_back({scores[i], lids[i]});
    }
    keep_best(hits);
    return true;
}

}  // namespace paperwasp
