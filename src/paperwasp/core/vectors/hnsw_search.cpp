// Searching a graph: down the levels to a near node, a walk from there, and the exact distances of what it found. By any number of threads.
#include "vectors/hnsw_search.hpp"

#include <algorithm>

namespace paperwasp::hnsw {
namespace {

constexpr size_t ROWS_OF_A_NODE = 8;  // a graph is compared whole, too, where this many rows were removed for each node that is left

size_t bits_below(uint32_t limit, const uint64_t* bitmap, size_t words) {
    size_t count = 0;
    for (size_t i = 0; i < std::min(words, size_t{limit} / 64); ++i) count += static_cast<size_t>(__builtin_popcountll(bitmap[i]));
    if (limit / 64 < words) count += static_cast<size_t>(__builtin_popcountll(bitmap[limit / 64] & ((uint64_t{1} << (limit & 63)) - 1)));
    return count;
}

// How a graph is searched for it.
Search search_of(const Index& index, const Wanted& wanted) {
    constexpr size_t MOST = MOST_NODES;
    // No more than there are documents to find: a walk that has not found enough goes everywhere.
    size_t there = index.live();
    float share = 1;
    if (wanted.accept != nullptr) {
        const size_t accepted = bits_below(wanted.limit, wanted.accept, wanted.accept_words);
        const size_t documents = std::min({there, wanted.accept_words * 64, size_t{wanted.limit}});
        share = static_cast<float>(accepted) / static_cast<float>(std::max(documents, size_t{1}));
        there = std::min(there, accepted);
    }
    const size_t looked_at = std::max(wanted.explore, wanted.count);
    Search how;
    how.explore = static_cast<uint32_t>(std::min({looked_at, std::max(there, size_t{1}), MOST}));
    how.filter = {wanted.accept, wanted.accept_words, wanted.limit};
    how.filter_first = wanted.filter_first && wanted.accept != nullptr;
    how.exploration = static_cast<float>(wanted.exploration);
    how.share = share;
    how.slack = static_cast<float>(std::max(0.0, wanted.slack));
    how.many = index.has_many();
    how.all = wanted.accept == nullptr && !how.many && !(wanted.slack > 0);
    how.whole = index.live() <= looked_at && index.graph().size() / ROWS_OF_A_NODE <= looked_at;
    return how;
}

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

std::vector<Hit> find(const Index& index, const Column& column, const void* query, const Wanted& wanted) {
    BudgetClock clock(wanted.end_ns);
    return find(index, column, query, search_of(index, wanted), wanted.count, wanted.threshold, &clock);
}

uint64_t steps_of(const Index& index, const Wanted& wanted) {
    const size_t looked_at = std::min(std::max(wanted.explore, wanted.count), size_t{index.live()});
    return uint64_t{looked_at} * 10 * (index.shape().dimensions / 16 + 20);
}

}  // namespace paperwasp::hnsw
