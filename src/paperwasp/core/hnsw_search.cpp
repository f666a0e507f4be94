// Searching a graph: down the levels to a near node, a walk from there, and the exact distances of what it found. By any number of threads.
#include "hnsw_search.hpp"

#include <algorithm>

namespace paperwasp::hnsw {
namespace {

// All nodes that are live; of many those that are looked at before the clock's budget is spent, at least one.
std::vector<Near> all_live(const Records& records, BudgetClock* clock) {
    std::vector<Near> found;
    for (uint32_t node = 0; node < records.limit && (found.empty() || clock->spend(20)); ++node)
        if (records.is_live(node)) found.push_back({0, node});
    return found;
}

// The exact distances of what was found: the nearest node of each document, nearest first.
std::vector<Hit> exact_hits(const Records& records, const Exact& exact, const Filter& filter, const std::vector<Near>& found,
                            double threshold) {
    std::vector<Hit> hits;
    for (const Near& near : found) {
        const uint32_t owner = records.node(near.node).owner;
        if (!records.is_live(near.node) || !filter.accepts(owner)) continue;
        const double distance = exact(near.node);
        if (distance <= threshold) hits.push_back({distance, owner, near.node});
    }
    std::sort(hits.begin(), hits.end());
    return hits;
}

void keep_distinct(std::vector<Hit>* hits, size_t count) {
    std::vector<uint32_t> owners;
    size_t kept = 0;
    for (const Hit& hit : *hits) {
        if (kept == count) break;
        const auto at = std::lower_bound(owners.begin(), owners.end(), hit.owner);
        if (at != owners.end() && *at == hit.owner) continue;
        owners.insert(at, hit.owner);
        (*hits)[kept++] = hit;
    }
    hits->resize(kept);
}

// What a walk meets, from the entry down.
std::vector<Near> walked(const Index& index, const Records& records, const Column& column, const void* query, const Search& how,
                         BudgetClock* clock) {
    std::vector<Near> met;
    const Entry entry = index.entry_below(records);
    if (entry.node == NONE) return met;
    const std::unique_ptr<Space> space = index.space(records, column);
    space->bind_query(query);
    Near near{0, entry.node};
    space->distances(&near.node, 1, &near.distance);
    near = descend(records, *space, near, entry.level, 0);
    const uint32_t beside = index.start_beside(records, near.node);
    if (how.all)
        walk(records, *space, near, beside, 0, how.explore, clock, &met);
    else
        walk_filtered(records, *space, near, beside, how, clock, &met);
    return met;
}

}  // namespace

std::vector<Hit> find(const Index& index, const Column& column, const void* query, const Search& how, size_t count, double threshold,
                      BudgetClock* clock) {
    const Records records = index.graph().records(column.rows);
    if (count == 0) return {};
    const std::vector<Near> met = how.whole ? all_live(records, clock) : walked(index, records, column, query, how, clock);
    std::vector<Hit> hits = exact_hits(records, *make_exact(index.shape(), column, query), how.filter, met, threshold);
    keep_distinct(&hits, count);
    return hits;
}

}  // namespace paperwasp::hnsw
