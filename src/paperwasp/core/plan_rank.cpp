// Ranking by an expression in plans: see plan_rank.hpp.
#include "plan_rank.hpp"

#include <cmath>

#include "bm25.hpp"
#include "plan.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t NS_OF_POSTING = 4;  // about, to find all matches and to read what stands in them

}  // namespace

// Takes what the words are as terms of the features. False: they are more than terms of the index.
bool PlanRun::add_expression() {
    for (const PlanField& field : plan_.fields) {
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
    const PlanField& of = plan_.fields[field];
    std::vector<double> added(word_lids.size(), 0.0);
    add_bm25_of(*snapshot_.reader, ranked_[field], terms, of.k1, of.b, average_length, word_lids.data(), word_lids.size(), added.data());
    for (size_t i = 0, k = 0; k < word_lids.size(); ++i)
        if (lids[i] == word_lids[k]) scores[i] = added[k++];
}

// All matches, scored by the expression; the best of them. False: it is not done.
bool PlanRun::find_expressed_hits(PlanFinds& finds, std::vector<Scored>& hits) {
    std::vector<uint64_t> of_words(accepted().size(), 0), matches;
    if (!words_.empty()) find_matches(finds, of_words.data());
    if (plan_.near_alone_matches)
        matches.resize(of_words.size(), 0);
    else
        matches = of_words;
    std::vector<NearDocument> near;
    if (near_) {
        std::optional<std::vector<NearDocument>> found = near_->find(*snapshot_.live, accepted());
        if (!found) return false;
        near = std::move(*found);
        for (const NearDocument& document : near) matches[document.lid >> 6] |= uint64_t{1} << (document.lid & 63);
    }
    const std::vector<uint32_t> lids = lids_of(matches.data(), matches.size());
    total_ = lids.size();
    for (size_t i = 0; i < matches.size(); ++i) of_words[i] &= matches[i];
    const std::vector<uint32_t> word_lids = lids_of(of_words.data(), of_words.size());
    Clock clock;
    std::vector<std::vector<double>> values;
    std::vector<RankColumn> columns;
    values.reserve(plan_.expression->features.size());
    for (const PlanFeature& feature : plan_.expression->features) {
        std::vector<double>& column = values.emplace_back(feature.kind == PlanFeature::Kind::CONSTANT ? 1 : lids.size(), 0.0);
        columns.push_back({column.data(), feature.kind == PlanFeature::Kind::CONSTANT});
        switch (feature.kind) {
            case PlanFeature::Kind::BM25:
                add_bm25(feature.field, lids, word_lids, column.data());
                break;
            case PlanFeature::Kind::CLOSENESS:
                if (!near_->read_closeness(near, lids, clock, column.data())) return false;
                break;
            case PlanFeature::Kind::RAW_SCORE:
                for (size_t i = 0, k = 0; k < near.size(); ++i)
                    if (lids[i] == near[k].lid) column[i] = near[k++].closeness;
                break;
            case PlanFeature::Kind::CONSTANT:
                column[0] = feature.value;
                break;
        }
    }
    std::vector<double> scores(lids.size());
    run_program(plan_.expression->program, columns, lids.size(), scores.data(), clock);
    hits.reserve(lids.size());
    for (size_t i = 0; i < lids.size(); ++i) {
        if (!std::isfinite(scores[i])) return false;
        hits.push_back({scores[i], lids[i]});
    }
    keep_best(hits);
    return true;
}

}  // namespace paperwasp
