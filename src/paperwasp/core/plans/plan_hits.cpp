// The hits of a run of a plan: what matches its terms, and the best of it by bm25, by nativeRank, by closeness, or in the order of an
// attribute. plan_rank.cpp finds those by an expression. See plan_run.hpp.
#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "plans/plan_run.hpp"

namespace paperwasp {

// How many of the accepted documents match; their bits are set in `selected`, unless that is nullptr.
uint64_t PlanRun::find_matches(WordFinder& finder, uint64_t* selected) const {
    const Reader& reader = *snapshot_.reader;
    std::vector<WeakChild> children;
    for (const Child& child : children_) {
        WeakChild& to = children.emplace_back();
        to.score = child.score;
        if (child.whole != nullptr) to.bitmaps.push_back(finder.bitmap_of(finder.whole(*child.whole)));
        for (const WordMatch* match : child.matches) {
            if (match->terms.size() == 1)
                to.words.emplace_back(match->field, match->terms[0]);
            else
                to.bitmaps.push_back(finder.bitmap_of(finder.term(*match, nullptr).lids));
        }
    }
    Clock clock;
    const bool skips = plan_.words.composite == PlanWords::Composite::WEAK && !plan_.ranking.order && !all_ && children.size() > 1 &&
                       plan_.words.target_hits < snapshot_.documents;
    const uint32_t target = skips ? std::min(plan_.words.target_hits, reader.limit() + 1) : reader.limit() + 1;
    const int64_t least = all_ ? static_cast<int64_t>(children.size()) : 1;
    return find_weakly(reader, children, accepted().data(), accepted().size(), target, least, selected, clock);
}

// The best by BM25, as `search.phases.pruning.pruned_hits` finds them. False: it is not done.
bool PlanRun::find_best_hits(WordFinder& finder, std::vector<Scored>& hits) {
    const Reader& reader = *snapshot_.reader;
    std::vector<std::unique_ptr<Found>> found_terms;  // the query keeps pointers to them
    Query query;
    for (const Term& term : terms_) {
        if (term.match != nullptr) {
            const TermDocuments& documents = finder.term(*term.match, term.whole);
            found_terms.push_back(std::make_unique<Found>(Found{documents.lids.data(), documents.offsets.data(), documents.lids.size()}));
        }
        query.add(term.term, term.match != nullptr ? found_terms.back().get() : nullptr);
    }
    Accepted accept;
    if (accept_ || snapshot_.has_dead) accept = {accepted().data(), accepted().size()};
    if (matches_first_) {
        matches_.resize(accepted().size());
        total_ = find_matches(finder, matches_.data());
        accept = {matches_.data(), matches_.size()};
    }
    const uint32_t wanted = offset_ + hits_;
    if (hits_ == 0) return true;
    BestHits found = find_best(reader, query, wanted, all_in_lists_, counts_, accept);
    if (found.searched < reader.limit()) return false;
    if (!matches_first_) total_ = counts_ ? found.matches : find_matches(finder, nullptr);
    if (found.hits.size() < std::min<uint64_t>(wanted, total_)) return false;  // documents that match but score nothing are hits too
    hits = std::move(found.hits);
    if (hits.size() > total_) hits.resize(total_);  // a weakAnd finds fewer than match
    return true;
}

// What is given to the kernels of nativeRank in place of postings, by list; nullptr: nothing is.
std::vector<const NativeFound*> PlanRun::native_found(WordFinder& finder, std::vector<NativeFound>& given) {
    std::vector<NativeList>& lists = native_->lists;
    given.reserve(lists.size());
    std::vector<const NativeFound*> given_of(lists.size(), nullptr);
    for (size_t l = 0; l < lists.size(); ++l) {
        if (native_given_[l].match == nullptr) continue;
        const TermDocuments& term = finder.term(*native_given_[l].match, native_given_[l].whole);
        given.push_back({term.lids.data(), term.offsets.data(), term.positions.data(), term.lids.size()});
        given_of[l] = &given.back();
        lists[l].offsets = term.offsets.data();
        lists[l].positions = term.positions.data();
    }
    return given_of;
}

// The best by nativeRank, as `search.phases.first_phase.exhaustive` finds them. False: it is not done.
bool PlanRun::find_native_hits(WordFinder& finder, std::vector<Scored>& hits) {
    const Reader& reader = *snapshot_.reader;
    const size_t words = accepted().size();
    matches_.resize(words);
    total_ = find_matches(finder, matches_.data());
    const uint32_t wanted = offset_ + hits_;
    if (hits_ == 0) return true;
    std::vector<NativeFound> given;
    const std::vector<const NativeFound*> found = native_found(finder, given);
    Clock clock;
    const std::optional<NativeHits> best =
        total_ <= wanted ? all_by_native_rank(reader, *native_, found, matches_.data(), words, clock)
                         : best_in_parts(reader, *native_, found, matches_.data(), words, total_, wanted, plan_.threads.most_for(total_));
    if (!best || best->searched < total_) return false;
    for (size_t i = 0; i < best->lids.size(); ++i) hits.push_back({best->scores[i], best->lids[i]});
    return true;
}

// The nearest by closeness, as `search.phases.first_phase.nearest` finds them. False: it is not done.
bool PlanRun::find_near_hits(std::vector<Scored>& hits) {
    const std::optional<std::vector<NearDocument>> found = near_->find(*snapshot_.live, accepted());
    if (!found) return false;
    total_ = found->size();
    for (const NearDocument& document : *found) hits.push_back({std::max(near_->least(), document.closeness), document.lid});
    keep_best(hits);
    return true;
}

// Leaves the best of all hits, as many as are wanted, best first.
void PlanRun::keep_best(std::vector<Scored>& hits) const {
    const uint64_t wanted = std::max<uint64_t>(uint64_t{offset_} + hits_, plan_.ranking.global ? plan_.ranking.global->rerank_count : 0);
    const auto end = hits.begin() + static_cast<std::ptrdiff_t>(std::min<uint64_t>(wanted, hits.size()));
    std::nth_element(hits.begin(), end, hits.end());  // a heap of hundreds takes three times as long
    std::sort(hits.begin(), end);
    hits.erase(end, hits.end());
}

// The first in the order of an attribute, as `search.phases.rank.rank` finds them where nothing is ranked. Always true.
bool PlanRun::find_ordered_hits(WordFinder& finder, std::vector<Scored>& hits) {
    std::vector<uint64_t> matches(accepted().size(), 0);
    total_ = find_matches(finder, matches.data());
    const SnapshotColumn& column = *snapshot_.column(plan_.ranking.order->field);
    const size_t wanted = size_t{offset_} + hits_;
    for (const uint32_t lid : first_in_order(column, plan_.ranking.order->descending, matches.data(), matches.size(), wanted))
        hits.push_back({0.0, lid});
    return true;
}

}  // namespace paperwasp
