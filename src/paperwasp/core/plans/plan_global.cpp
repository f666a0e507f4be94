// The global phase in plans: see plan_global.hpp.
#include "plans/plan_global.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

#include "plans/plan_run.hpp"

namespace paperwasp {
namespace {

// 0.5 + (value - middle) / range: from 0 to 1.
void normalize_linearly(std::vector<double>& values) {
    double low = std::numeric_limits<double>::infinity(), high = -low;
    for (const double value : values) {
        if (!(std::fabs(value) < std::numeric_limits<float>::max())) continue;
        low = std::min(low, value), high = std::max(high, value);
    }
    if (high <= low) low = high = 0.0;
    const double scale = high > low ? 1.0 / (high - low) : 0.0, middle = (low + high) * 0.5;
    for (double& value : values) value = 0.5 + scale * (value - middle);
}

// The places in the order of falling values; of equal ones, the first is first.
std::vector<size_t> falling_order(const std::vector<double>& values) {
    std::vector<size_t> order(values.size());
    std::iota(order.begin(), order.end(), size_t{0});
    std::stable_sort(order.begin(), order.end(), [&](size_t a, size_t b) { return values[a] > values[b]; });
    return order;
}

void normalize_by_rank(double k, std::vector<double>& values) {
    double rank = 0;
    for (const size_t place : falling_order(values)) values[place] = 1.0 / (k + 1.0 + rank++);
}

bool are_finite(const std::vector<double>& values) {
    return std::all_of(values.begin(), values.end(), [](double value) { return std::isfinite(value); });
}

}  // namespace

void normalize(const GlobalFeature& feature, std::vector<double>& values) {
    if (feature.kind == GlobalFeature::Kind::LINEAR) normalize_linearly(values);
    if (feature.kind == GlobalFeature::Kind::RECIPROCAL) normalize_by_rank(feature.k, values);
}

void add_scores_below(const std::vector<double>& before, std::vector<double>& scores) {
    const size_t count = scores.size();
    const double high = before.front(), low = before[count - 1];
    const auto [least, most] = std::minmax_element(scores.begin(), scores.end());
    double scale = 1.0, shift = 0.0;
    if (low > *least) {
        scale = std::max(*most - *least, 1.0) / std::max(high - low, 1.0);
        shift = low * scale - *least;
    }
    for (size_t i = count; i < before.size(); ++i) scores.push_back(before[i] * scale - shift);
}

// The first hits by the global phase, of the best by what is before it. False: it is not done.
bool PlanRun::rank_globally(std::vector<Scored>& hits) {
    const GlobalForm& form = *plan_.ranking.global;
    const size_t count = std::min(form.rerank_count, hits.size());
    if (count == 0) return true;
    std::vector<size_t> by_lid(count);
    std::iota(by_lid.begin(), by_lid.end(), size_t{0});
    std::sort(by_lid.begin(), by_lid.end(), [&](size_t a, size_t b) { return hits[a].lid < hits[b].lid; });
    std::vector<uint32_t> lids;
    std::vector<double> before, found(count);
    for (const size_t place : by_lid) lids.push_back(hits[place].lid), before.push_back(hits[place].score);
    Clock clock;
    std::vector<std::vector<double>> values;
    std::vector<RankColumn> columns;
    values.reserve(form.features.size());
    for (const GlobalFeature& feature : form.features) {
        FeatureColumns read;
        if (!read_features(feature.input.features, lids, before.data(), clock, read)) return false;
        run_program(feature.input.program, read.columns, count, found.data(), clock);
        std::vector<double>& column = values.emplace_back(count);
        for (size_t i = 0; i < count; ++i) column[by_lid[i]] = found[i];
        if (!are_finite(column)) return false;
        normalize(feature, column);
        columns.push_back({column.data(), false});
    }
    std::vector<double> scores(count);
    run_program(form.program, columns, count, scores.data(), clock);
    before.clear();
    for (const Scored& hit : hits) before.push_back(hit.score);
    if (!are_finite(scores)) return false;
    add_scores_below(before, scores);
    std::vector<Scored> ranked;
    for (const size_t place : falling_order(scores))
        if (!form.drop_limit || scores[place] > *form.drop_limit) ranked.push_back({scores[place], hits[place].lid});
    total_ -= hits.size() - ranked.size();
    hits = std::move(ranked);
    return true;
}

}  // namespace paperwasp
