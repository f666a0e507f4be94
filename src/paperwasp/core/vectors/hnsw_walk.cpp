// Walks through a graph: always on to the nearest node that was met and not yet left, until all that are kept are nearer.
//
// `walk` keeps one sorted array of the nearest, which is all it needs where every node counts: what falls out of it will never be left
// from. `walk_filtered` keeps those that are let through apart from those to be left, since there is no bound to the latter.
//
// With filter_first, a walk counts how many of the nodes it meets are let through. Where they are much fewer than the filter's share of all
// documents, what the filter lets through is elsewhere, and the way there is long. From then on nodes that are not let through are passed
// over: of the nodes that two links lead to, and three where two lead to few, only those of the filter have their distances computed (as
// ACORN-1 does, and Vespa from the start). Where such a walk comes to its end before it has found enough, it goes on from all nodes on its
// way that were not let through; so a filter far from the query, or one whose documents are scattered, is reached at last.
#include "vectors/hnsw_walk.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

namespace paperwasp::hnsw {
namespace {

constexpr uint32_t LEFT = 1u << 31;  // of a node in the array: the walk has been at its links
constexpr uint32_t IS_DEAD = 1u << 30;
constexpr uint32_t NUMBER = IS_DEAD - 1;
constexpr size_t MOST_IN_LIST = 2 * MOST_LINKS;
constexpr float ENOUGH_TO_JUDGE = 64;  // documents of the filter among as many nodes as were met, were it the same everywhere
constexpr float FEW = 0.5f;            // of them: as few say that it is not
constexpr float NO_BOUND = std::numeric_limits<float>::infinity();

// The neighbours that were not met yet; their number.
uint32_t unmet_neighbours(const Records& records, uint32_t node, uint32_t level, Visited* visited, uint32_t* unmet) {
    const Links links = records.links(node, level);
    const uint32_t count = copy_links(links, unmet);
    for (uint32_t i = 0; i < count; ++i)
        if (unmet[i] < records.limit) visited->fetch(unmet[i]);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < count; ++i) {
        const uint32_t each = unmet[i];
        if (each >= records.limit) continue;
        unmet[kept] = each;
        kept += visited->visit(each);
    }
    return kept;
}

// The nearest that a walk has met, in order.
class Pool {
  public:
    Pool(const Records& records, uint32_t explore, std::vector<Near>* places) : records_(records), explore_(explore), places_(*places) {
        places_.clear();
    }

    float bound() const { return bound_; }

    void add(Near met) {
        const bool live = records_.is_live(met.node);
        const size_t at = place_behind(met.distance);
        next_ = std::min(next_, at);
        places_.insert(places_.begin() + static_cast<ptrdiff_t>(at), {met.distance, live ? met.node : met.node | IS_DEAD});
        live_ += live;
        while (live_ > explore_ || (live_ == explore_ && (places_.back().node & IS_DEAD) != 0)) {
            live_ -= (places_.back().node & IS_DEAD) == 0;
            places_.pop_back();
        }
        if (live_ == explore_) bound_ = places_.back().distance;
    }

    // The nearest whose links were not followed; NONE if there is no more.
    uint32_t leave() {
        while (next_ < places_.size() && (places_[next_].node & LEFT) != 0) ++next_;
        if (next_ >= places_.size()) return NONE;
        const uint32_t node = places_[next_].node & NUMBER;
        places_[next_++].node |= LEFT;
        return node;
    }

    // Asks the memory for the links that will be followed next, unless something nearer is met before.
    void fetch_next(uint32_t level) const {
        if (level != 0 || next_ >= places_.size()) return;
        const auto* links = reinterpret_cast<const char*>(records_.links(places_[next_].node & NUMBER, 0).ids);
        for (size_t at = 0; at < 2 * records_.max_links * sizeof(uint32_t); at += LINE) __builtin_prefetch(links + at);
    }

    void finish() {
        for (Near& near : places_) near.node &= NUMBER;
    }

  private:
    // Behind all that are as near. Without jumps, half of which would be guessed wrong.
    size_t place_behind(float distance) const {
        size_t from = 0, left = places_.size();
        while (left > 0) {
            const size_t half = (left + 1) / 2;
            from += half & (size_t{0} - size_t{places_[from + half - 1].distance <= distance});
            left -= half;
        }
        return from;
    }

    const Records& records_;
    const uint32_t explore_;
    std::vector<Near>& places_;
    size_t next_ = 0;
    uint32_t live_ = 0;
    float bound_ = NO_BOUND;
};

struct Farther {
    bool operator()(const Near& a, const Near& b) const { return b < a; }
};

// The nearest that are let through, and how many documents they are.
class Kept {
  public:
    Kept(const Records& records, const Search& search) : records_(records), search_(search) {}

    float bound() const { return bound_; }
    bool is_full() const { return documents_ >= search_.explore; }

    void add(Near met) {
        if (!(met.distance < bound_)) return;
        heap_.push_back(met);
        std::push_heap(heap_.begin(), heap_.end());
        if (!search_.many || ++nodes_of_[records_.node(met.node).owner] == 1) ++documents_;
        while (documents_ > search_.explore) drop();
        if (documents_ == search_.explore) bound_ = heap_.front().distance;
    }

    void finish(std::vector<Near>* found) {
        std::sort(heap_.begin(), heap_.end());
        *found = std::move(heap_);
    }

  private:
    void drop() {
        std::pop_heap(heap_.begin(), heap_.end());
        if (!search_.many || --nodes_of_[records_.node(heap_.back().node).owner] == 0) --documents_;
        heap_.pop_back();
    }

    const Records& records_;
    const Search& search_;
    std::vector<Near> heap_;                           // the farthest first
    std::unordered_map<uint32_t, uint32_t> nodes_of_;  // by document, where these have several
    uint32_t documents_ = 0;
    float bound_ = NO_BOUND;
};

// One walk with a filter.
class FilteredWalk {
  public:
    FilteredWalk(const Records& records, const Space& space, const Search& search, BudgetClock* clock)
        : records_(records),
          space_(space),
          search_(search),
          clock_(clock),
          visited_(Visited::of_thread(records.limit)),
          kept_(records, search),
          may_pass_over_(search.filter_first),
          enough_(2 * records.max_links),
          unmet_(MOST_IN_LIST),
          distances_(MOST_IN_LIST) {}

    void run(Near from, uint32_t beside, std::vector<Near>* found) {
        visited_.visit(from.node);
        meet(from);
        if (beside != NONE && visited_.visit(beside)) meet_all(&beside, 1);
        for (;;) {
            while (!ahead_.empty() && !clock_->is_spent()) {
                std::pop_heap(ahead_.begin(), ahead_.end(), Farther());
                const Near next = ahead_.back();
                ahead_.pop_back();
                if (next.distance > reach()) break;
                if (may_pass_over_ && is_filter_elsewhere()) begin_to_pass_over();
                if (passes_over_)
                    go_through(next.node);
                else
                    go_on(next.node);
            }
            if (kept_.is_full() || beside_.empty() || clock_->is_spent()) break;
            ahead_.clear();
            go_beside();
        }
        kept_.finish(found);
    }

  private:
    // How far away a node may be to be left from.
    float reach() const { return kept_.is_full() ? kept_.bound() + search_.slack * std::abs(kept_.bound()) : NO_BOUND; }

    bool is_let_through(uint32_t node) const { return search_.filter.accepts(records_.node(node).owner) && records_.is_live(node); }

    void meet(Near met) {
        if (!(met.distance < reach())) return;
        ahead_.push_back(met);
        std::push_heap(ahead_.begin(), ahead_.end(), Farther());
        ++met_;
        if (!is_let_through(met.node)) return;
        ++let_through_;
        kept_.add(met);
    }

    bool is_filter_elsewhere() const {
        const float expected = search_.share * static_cast<float>(met_);
        return !kept_.is_full() && expected >= ENOUGH_TO_JUDGE && static_cast<float>(let_through_) < FEW * expected;
    }

    // On from what was let through alone.
    void begin_to_pass_over() {
        may_pass_over_ = false;
        passes_over_ = true;
        const auto rest = std::partition(ahead_.begin(), ahead_.end(), [&](Near near) { return is_let_through(near.node); });
        for (auto at = rest; at != ahead_.end(); ++at) beside_.push_back(at->node);
        ahead_.erase(rest, ahead_.end());
        std::make_heap(ahead_.begin(), ahead_.end(), Farther());
    }

    void meet_all(const uint32_t* nodes, uint32_t count) {
        for (uint32_t from = 0; from < count; from += MOST_IN_LIST) {
            const uint32_t some = std::min<uint32_t>(MOST_IN_LIST, count - from);
            if (!clock_->spend(some * 20 + 20)) return;
            space_.distances(nodes + from, some, distances_.data());
            for (uint32_t i = 0; i < some; ++i) meet({distances_[i], nodes[from + i]});
        }
    }

    void go_on(uint32_t node) { meet_all(unmet_.data(), unmet_neighbours(records_, node, 0, &visited_, unmet_.data())); }

    void go_through(uint32_t node) {
        near_.assign(1, node);
        matching_.clear();
        exhausted_ = 0;
        hop();
        if (matching_.size() < enough_) hop();
        if (matching_.size() < enough_ && static_cast<float>(reached_) < search_.exploration * static_cast<float>(enough_ * enough_)) hop();
        meet_all(matching_.data(), static_cast<uint32_t>(matching_.size()));
    }

    // From the nodes of near_ to all neighbours of theirs, which take their place, but for those that have none left to be met. The ones of
    // the filter that were not met yet go to matching_, until they are enough.
    void hop() {
        further_.clear();
        reached_ = exhausted_ * (enough_ / 2);  // about as many links as they have
        exhausted_ = 0;
        for (const uint32_t from : near_) {
            if (visited_.is_exhausted(from)) continue;
            const uint32_t count = copy_links(records_.links(from, 0), unmet_.data());
            clock_->spend(count);
            reached_ += count;
            for (uint32_t i = 0; i < count; ++i) {
                const uint32_t node = unmet_[i];
                if (node >= records_.limit) continue;
                if (visited_.is_exhausted(node)) {
                    ++exhausted_;
                    continue;
                }
                further_.push_back(node);
                if (!visited_.visit(node)) continue;
                if (!is_let_through(node)) {
                    beside_.push_back(node);
                } else {
                    matching_.push_back(node);
                    if (matching_.size() >= enough_) return;
                }
            }
            visited_.exhaust(from);
        }
        near_.swap(further_);
    }

    // On from all that was not let through, one link after the other.
    void go_beside() {
        passes_over_ = false;
        matching_.swap(beside_);
        beside_.clear();
        meet_all(matching_.data(), static_cast<uint32_t>(matching_.size()));
    }

    const Records& records_;
    const Space& space_;
    const Search& search_;
    BudgetClock* clock_;
    Visited& visited_;
    Kept kept_;
    bool may_pass_over_, passes_over_ = false;
    size_t met_ = 0, let_through_ = 0;
    const uint32_t enough_;
    std::vector<uint32_t> unmet_;
    std::vector<float> distances_;
    std::vector<Near> ahead_;  // a heap, the nearest first
    std::vector<uint32_t> near_, further_, matching_, beside_;
    size_t reached_ = 0;    // by the last hop, met before or not
    size_t exhausted_ = 0;  // of those
};

}  // namespace

Visited& Visited::of_thread(size_t nodes) {
    thread_local Visited visited;
    if (visited.tags_.size() < nodes) visited.tags_.resize(nodes + nodes / 8);
    visited.tag_ = static_cast<uint8_t>(visited.tag_ + 2);
    if (visited.tag_ == 0) {
        std::memset(visited.tags_.data(), 0, visited.tags_.size());
        visited.tag_ = 2;
    }
    return visited;
}

Near descend(const Records& records, const Space& space, Near from, uint32_t level, uint32_t to_level) {
    uint32_t neighbours[MOST_LINKS];
    float distances[MOST_LINKS];
    for (; level > to_level; --level) {
        for (bool nearer = true; nearer;) {
            nearer = false;
            uint32_t count = copy_links(records.links(from.node, level), neighbours);
            count = static_cast<uint32_t>(
                std::remove_if(neighbours, neighbours + count, [&](uint32_t node) { return node >= records.limit; }) - neighbours);
            space.distances(neighbours, count, distances);
            for (uint32_t i = 0; i < count; ++i)
                if (distances[i] < from.distance) from = {distances[i], neighbours[i]}, nearer = true;
        }
    }
    return from;
}

void walk(const Records& records, const Space& space, Near from, uint32_t beside, uint32_t level, uint32_t explore, BudgetClock* clock,
          std::vector<Near>* found) {
    Visited& visited = Visited::of_thread(records.limit);
    Pool pool(records, explore, found);
    uint32_t unmet[MOST_IN_LIST];
    float distances[MOST_IN_LIST];
    visited.visit(from.node);
    pool.add(from);
    if (beside != NONE && visited.visit(beside)) {
        space.distances(&beside, 1, distances);
        pool.add({distances[0], beside});
    }
    for (uint32_t node; (node = pool.leave()) != NONE;) {
        const uint32_t count = unmet_neighbours(records, node, level, &visited, unmet);
        if (clock != nullptr && !clock->spend(count * 20 + 20)) break;
        pool.fetch_next(level);
        space.distances(unmet, count, distances);
        for (uint32_t i = 0; i < count; ++i)
            if (distances[i] < pool.bound()) pool.add({distances[i], unmet[i]});
    }
    pool.finish();
}

void walk_filtered(const Records& records, const Space& space, Near from, uint32_t beside, const Search& search, BudgetClock* clock,
                   std::vector<Near>* found) {
    FilteredWalk(records, space, search, clock).run(from, beside, found);
}

}  // namespace paperwasp::hnsw
