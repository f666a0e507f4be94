// Walks through a graph from an entry to what is near: see hnsw_walk.cpp.
#pragma once

#include <vector>

#include "clock.hpp"
#include "vectors/hnsw_graph.hpp"
#include "vectors/hnsw_space.hpp"

namespace paperwasp::hnsw {

struct Near {
    float distance;
    uint32_t node;

    bool operator<(const Near& other) const { return distance < other.distance || (distance == other.distance && node < other.node); }
};

// Which nodes a walk has met, and which it has met all neighbours of. Each thread has one, for all graphs: a byte a node, which says in
// which walk it was last met.
class Visited {
  public:
    static Visited& of_thread(size_t nodes);

    bool visit(uint32_t node) {  // false if it was met
        const uint8_t before = tags_[node];
        const bool is_new = before < tag_;
        tags_[node] = is_new ? tag_ : before;  // no jump: nobody could guess which way
        return is_new;
    }
    bool is_exhausted(uint32_t node) const { return tags_[node] > tag_; }
    void exhaust(uint32_t node) { tags_[node] = static_cast<uint8_t>(tag_ + 1); }
    void fetch(uint32_t node) const { __builtin_prefetch(&tags_[node]); }

  private:
    std::vector<uint8_t> tags_;
    uint8_t tag_ = 0;
};

// What a search lets through: documents below `limit` that the bitmap has, where there is one.
struct Filter {
    const uint64_t* accept = nullptr;
    size_t words = 0;
    uint32_t limit = NONE;

    bool accepts(uint32_t owner) const {
        if (owner >= limit) return false;
        return accept == nullptr || ((owner >> 6) < words && ((accept[owner >> 6] >> (owner & 63)) & 1) != 0);
    }
};

struct Search {
    uint32_t explore;  // how many near documents a walk keeps
    Filter filter;
    bool filter_first = false;  // where few documents near the query are let through, look at those alone, through others to them
    float exploration = 0;      // how readily it goes three links far for them
    float share = 1;            // of all documents that the filter lets through, about
    float slack = 0;            // how much farther than what it keeps a walk goes on
    bool many = false;          // documents have several nodes
    bool all = false;           // all nodes are let through but for dead ones, and slack is 0
    bool whole = false;         // there are so few nodes that all are compared
};

// The node that is nearest, as far as going to a nearer neighbour on one level after the other says.
Near descend(const Records& records, const Space& space, Near from, uint32_t level, uint32_t to_level);

// The nearest nodes that a walk on one level finds from there, nearest first. Of nodes that are not dead there are at most `explore`; dead
// ones stand among them. When the clock's budget is spent, those that were met until then. clock: null for no end. beside: where it begins,
// too; NONE: nowhere.
void walk(const Records& records, const Space& space, Near from, uint32_t beside, uint32_t level, uint32_t explore, BudgetClock* clock,
          std::vector<Near>* found);

// The same on the lowest level, of nodes that are let through; of distinct documents there are at most `explore`.
void walk_filtered(const Records& records, const Space& space, Near from, uint32_t beside, const Search& search, BudgetClock* clock,
                   std::vector<Near>* found);

}  // namespace paperwasp::hnsw
