// nativeRank in plans: see plan_native.hpp.
#include "plans/plan_native.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>

#include "plans/shared_parts.hpp"
#include "rank/term_lists.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_PARTS = 24, HITS_OF_PART = 4096,
                 LEAST_STEPS = 6;       // of a search that threads may share: each takes about 10 µs more than its share
constexpr double TERM_WEIGHT = 100;     // the weight of a term without an annotation
constexpr double CONNECTIVITY = 0.1;    // of neighbours, and of any two terms
constexpr uint32_t NO_TERM = NO_INDEX;  // of a list whose positions are given

// Adds the pairs of a field's terms: the further apart, the less connected.
void add_pairs(NativeQuery& query, size_t field, uint32_t window) {
    std::vector<uint32_t> own;  // lists, in the order of their terms
    for (uint32_t l = 0; l < query.lists.size(); ++l)
        if (query.lists[l].field == field) own.push_back(l);
    double total = 0;
    for (size_t i = 0; i < own.size(); ++i)
        for (size_t j = i + 1; j < std::min(i + window, own.size()); ++j) {
            const double of_both = query.term_weights[query.lists[own[i]].owner] + query.term_weights[query.lists[own[j]].owner];
            const double weight = CONNECTIVITY / static_cast<double>(j - i) * of_both;
            add_native_pair(query, {own[i], own[j], weight});
            total += weight;
        }
    query.fields[field].pairs_weight = total;
    if (query.fields[field].pairs > 0) query.weights.pairs_divisor += query.fields[field].weight;
}

// The positions of some documents alone, whose lids rise.
struct PositionsOfHits {
    std::vector<uint32_t> offsets{0}, positions;

    PositionsOfHits(const NativeFound& found, const std::vector<uint32_t>& lids) {
        size_t at = 0;
        for (const uint32_t lid : lids) {
            at = static_cast<size_t>(std::lower_bound(found.lids + at, found.lids + found.size, lid) - found.lids);
            if (at < found.size && found.lids[at] == lid)
                positions.insert(positions.end(), found.positions + found.offsets[at], found.positions + found.offsets[at + 1]);
            offsets.push_back(static_cast<uint32_t>(positions.size()));
        }
    }
};

}  // namespace

std::optional<NativeQuery> native_query_of(const NativeRank& rank, const std::vector<uint32_t>& numbers,
                                           const std::vector<NativeTerm>& terms, std::vector<NativeGiven>& given) {
    NativeQuery query;
    query.fields = rank.fields;
    query.weights = rank.weights;
    for (size_t f = 0; f < numbers.size(); ++f) query.fields[f].index = numbers[f];
    for (uint32_t t = 0; t < terms.size(); ++t) {
        query.term_weights.push_back(terms[t].significance * TERM_WEIGHT);
        double of_fields = 0;
        for (const WordMatch& match : *terms[t].matches) {
            const auto found = std::find(numbers.begin(), numbers.end(), match.field);
            if (found == numbers.end()) continue;
            const auto f = static_cast<uint32_t>(found - numbers.begin());
            const bool is_word = match.terms.size() == 1 && terms[t].whole == nullptr;
            query.lists.push_back({f, is_word ? match.terms[0] : NO_TERM, t, terms[t].length});
            given.push_back(is_word ? NativeGiven{} : NativeGiven{&match, terms[t].whole});
            of_fields += query.fields[f].weight;
        }
        query.weights.match_divisor += query.term_weights[t] * of_fields;
    }
    if (query.lists.empty() || query.lists.size() > MOST_NATIVE_LISTS) return std::nullopt;
    for (size_t f = 0; f < numbers.size(); ++f) {
        add_pairs(query, f, rank.window);
        if (query.fields[f].pairs > 0 && rank.has_elements[f]) return std::nullopt;
    }
    return query;
}

void score_by_native_rank(const Reader& reader, NativeQuery query, const std::vector<const NativeFound*>& found,
                          const std::vector<uint32_t>& lids, std::vector<double>& scores, Clock& clock) {
    std::vector<std::unique_ptr<PositionsOfHits>> given;
    for (size_t l = 0; l < found.size(); ++l) {
        if (found[l] == nullptr) continue;
        given.push_back(std::make_unique<PositionsOfHits>(*found[l], lids));
        query.lists[l].offsets = given.back()->offsets.data();
        query.lists[l].positions = given.back()->positions.data();
    }
    scores.resize(lids.size());
    if (lids.empty()) return;
    score_natively(reader, query, lids.data(), lids.size(), -std::numeric_limits<double>::infinity(), scores.data(), clock);
}

std::optional<NativeHits> best_in_parts(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found,
                                        const uint64_t* hits, size_t words, uint64_t hits_count, uint32_t k, size_t most_threads) {
    const size_t count = most_threads == 1 ? 1 : std::min<size_t>(hits_count / HITS_OF_PART, MOST_PARTS);
    if (count < 2) {
        Clock clock;
        return best_by_native_rank(reader, query, found, hits, words, k, clock);
    }
    NativeFloor floor;
    std::vector<std::optional<NativeHits>> parts(count);
    share_parts(count, most_threads, hits_count * LEAST_STEPS, [&](size_t number) {
        Clock clock;
        const auto bound = [&](size_t part) { return static_cast<uint32_t>(64 * (words * part / count)); };
        const uint32_t last = number + 1 < count ? bound(number + 1) : std::numeric_limits<uint32_t>::max();
        parts[number] = best_by_native_rank(reader, query, found, hits, words, k, clock, NativePart{bound(number), last, &floor});
    });
    std::vector<Scored> all;
    NativeHits best;
    best.least = std::numeric_limits<double>::infinity();
    for (const auto& part : parts) {
        if (!part) return std::nullopt;
        best.searched += part->searched;
        best.least = std::min(best.least, part->least);
        for (size_t i = 0; i < part->lids.size(); ++i) all.push_back({part->scores[i], part->lids[i]});
    }
    if (!std::all_of(all.begin(), all.end(), [](const Scored& hit) { return std::isfinite(hit.score); })) return std::nullopt;
    std::sort(all.begin(), all.end());
    if (all.size() > k) all.resize(k);
    if (all.size() < k || all.back().score <= best.least) return std::nullopt;
    for (const Scored& hit : all) {
        best.lids.push_back(hit.lid);
        best.scores.push_back(hit.score);
    }
    return best;
}

NativeHits all_by_native_rank(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found,
                              const uint64_t* hits, size_t words, Clock& clock) {
    const std::vector<uint32_t> lids = lids_of(hits, words);
    clock.spend(static_cast<int64_t>(words + lids.size()));
    std::vector<double> scores;
    score_by_native_rank(reader, query, found, lids, scores, clock);
    if (!std::all_of(scores.begin(), scores.end(), [](double score) { return std::isfinite(score); })) return {};
    std::vector<uint32_t> order(lids.size());
    std::iota(order.begin(), order.end(), 0u);
    std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) { return scores[a] > scores[b]; });
    NativeHits best;
    best.searched = lids.size();
    for (const uint32_t at : order) {
        best.lids.push_back(lids[at]);
        best.scores.push_back(scores[at]);
    }
    return best;
}

}  // namespace paperwasp
