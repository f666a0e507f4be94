// What one thread needs to change a graph: see hnsw_insert.cpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "vectors/hnsw_index.hpp"

namespace paperwasp::hnsw {

// Of a node in the tree. With its parent, and one more while children move, they are never more than a list has room for.
inline uint32_t most_children(uint32_t max_links) { return std::max(2u, max_links / 2); }

class Worker {
  public:
    // is_blind: there are no vectors yet, and nothing is asked for distances.
    Worker(const Index& index, const Column& column, bool is_blind = false);

    // Links a node whose record is written.
    void link(Index& index, uint32_t node, double error);

    // The tree of the lowest level: see hnsw_tree.cpp.
    //
    // Takes a node into it, below one of found_ where that can be.
    void join_tree(Index& index, uint32_t node);
    // Takes a removed node out of it.
    void leave_tree(Index& index, uint32_t removed);
    // Takes a node into it that has links already. In rising order.
    void join_tree_by_links(Index& index, uint32_t node);

    // The links that a node should have on a level instead of ones of which some lead to nodes that are gone: chosen of the others and of
    // the neighbours of the gone. They may be more by one for each that is gone: a neighbour's neighbour is not as good as one that a walk
    // finds, and lists that never grow would get worse with each round of removals. None if it has no such links. Valid until the next
    // call.
    template <typename Gone>
    const std::vector<uint32_t>* mended(uint32_t node, uint32_t level, Gone gone);

    // Makes them the node's links.
    void relink(uint32_t node, uint32_t level, const std::vector<uint32_t>& links);

    const Records& records() const { return records_; }

  private:
    void look_at_fineness();
    void link_on(Index& index, uint32_t node, uint32_t level, Near* from);
    // Has a node link to another, if that is not farther than what it links to, or held.
    void add_link(uint32_t node, uint32_t level, uint32_t to);
    // Chooses of near_ for the list of a node: what leads elsewhere, and what is held, where some is.
    void choose(uint32_t most);
    // Says once for all what is held: a node that another thread hangs below this one meanwhile is added to its list afterwards.
    // of_new: besides its parent hardly anything is.
    void hold(uint32_t node, uint32_t level, bool of_new = false);
    // Chooses these, and of near_ what leads elsewhere, at most that many; and any others, while there are less than there were before.
    void choose_beside(const std::vector<uint32_t>& kept, size_t before, size_t most);
    bool is_nearer_to_chosen(Near candidate);
    float by_direction(float distance, uint32_t chosen, uint32_t candidate) const;
    float length_of(uint32_t node) const { return std::sqrt(records_.node(node).square); }
    // near_ becomes these others, in the order of their distance from the node.
    void measure(uint32_t node, const std::vector<uint32_t>& others);

    uint32_t parent_of(uint32_t node) const { return load(&records_.node(node).parent); }
    // Whether two nodes are neighbours in the tree.
    bool is_held(uint32_t one, uint32_t other) const { return parent_of(one) == other || parent_of(other) == one; }
    bool has_room(uint32_t parent) const { return records_.node(parent).children < most_children(records_.max_links); }
    void hang(uint32_t node, uint32_t parent);
    void hang_below(uint32_t node, uint32_t parent);
    void hang_near(uint32_t node, uint32_t otherwise);
    bool hang_among(uint32_t node, uint32_t linking);
    const std::vector<uint32_t>& children_of(uint32_t node);

    const Index& of_;
    const Column column_;
    const Records records_;
    const uint32_t explore_;
    const bool is_blind_;
    bool by_codes_;
    float length_ = 0;  // of the vector whose links are chosen
    std::unique_ptr<Space> space_, other_;
    std::vector<Near> near_, found_;
    std::vector<uint8_t> held_;  // for each of near_, whether its link is to stay
    std::vector<uint32_t> to_, chosen_, list_, around_, children_;
    std::vector<float> distances_;
};

constexpr size_t MOST_AROUND = 256;  // nodes that take the place of removed neighbours of one node are chosen from no more than these

template <typename Gone>
const std::vector<uint32_t>* Worker::mended(uint32_t node, uint32_t level, Gone gone) {
    const Links links = records_.links(node, level);
    around_.resize(links.capacity);
    around_.resize(copy_links(links, around_.data()));
    if (std::none_of(around_.begin(), around_.end(), gone)) return nullptr;
    const size_t before = around_.size();
    const auto lost = static_cast<size_t>(std::count_if(around_.begin(), around_.end(), gone));
    // Neighbours of removed nodes may be removed as well: theirs follow behind. Each is looked at once.
    Visited& met = Visited::of_thread(records_.limit);
    met.visit(node);
    for (const uint32_t each : around_) met.visit(each);
    for (size_t i = 0; i < around_.size() && around_.size() < MOST_AROUND; ++i) {
        if (!gone(around_[i])) continue;
        const Links theirs = records_.links(around_[i], level);
        for (uint32_t at = 0; at < load(theirs.count); ++at) {
            const uint32_t each = load(theirs.ids + at);
            if (each < records_.limit && met.visit(each)) around_.push_back(each);
        }
    }
    // What is kept of a list is never chosen again: it may be what leads far. But of products the longest vectors are nearest, which are
    // added after many a shorter one, and do not link back to it: its list would never lead to them.
    const size_t kept = of_.shape().metric == PRODUCT ? 0 : before;
    list_.clear();
    for (size_t i = kept; i < around_.size(); ++i)
        if (!gone(around_[i])) list_.push_back(around_[i]);
    measure(node, list_);
    around_.resize(kept);
    around_.erase(std::remove_if(around_.begin(), around_.end(), gone), around_.end());
    if (around_.empty()) hold(node, level);
    choose_beside(around_, before, std::min<size_t>(links.capacity, before + lost));
    return &chosen_;
}

}  // namespace paperwasp::hnsw
