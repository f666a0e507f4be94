// What one thread needs to change a graph: see hnsw_insert.cpp.
#pragma once

#include <algorithm>
#include <cmath>

#include "hnsw_index.hpp"

namespace paperwasp::hnsw {

class Worker {
  public:
    Worker(const Index& index, const Column& column);

    // Links a node whose record is written.
    void link(Index& index, uint32_t node, double error);

    // Leads to what a removed node led to in some other way, where no other link does.
    void unlink(uint32_t node);

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
    void link_on(uint32_t node, uint32_t level, Near* from);
    void link_back(uint32_t node, uint32_t level, Near to);
    // Chooses of near_, and keeps those that nothing else would lead to.
    void choose(uint32_t most, uint32_t level);
    // Chooses these, and of near_ what leads elsewhere, at most that many; and any others, while there are less than there were before.
    void choose_beside(const std::vector<uint32_t>& kept, size_t before, size_t most, uint32_t level);
    void keep_led_to(uint32_t most);
    bool is_nearer_to_chosen(Near candidate);
    float by_direction(float distance, uint32_t chosen, uint32_t candidate) const;
    float length_of(uint32_t node) const { return std::sqrt(records_.node(node).square); }
    // near_ becomes these others, in the order of their distance from the node.
    void measure(uint32_t node, const std::vector<uint32_t>& others);

    void count_link(uint32_t to, int32_t by) const { __atomic_fetch_add(&records_.node(to).links_here, by, __ATOMIC_ACQ_REL); }
    int32_t links_to(uint32_t node) const { return load(&records_.node(node).links_here); }

    const Index& of_;
    const Column column_;
    const Records records_;
    const uint32_t explore_;
    bool by_codes_;
    float length_ = 0;  // of the vector whose links are chosen
    std::unique_ptr<Space> space_, other_;
    std::vector<Near> near_, to_;
    std::vector<uint32_t> chosen_, list_, around_;
    std::vector<uint32_t> places_;  // of the chosen, in near_
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
    // Neighbours of removed nodes may be removed as well: theirs follow behind.
    for (size_t i = 0; i < around_.size() && around_.size() < MOST_AROUND; ++i) {
        if (!gone(around_[i])) continue;
        const size_t known = around_.size();
        around_.resize(known + links.capacity);
        around_.resize(known + copy_links(records_.links(around_[i], level), around_.data() + known));
        // Each is looked at once.
        const auto end = around_.begin() + static_cast<ptrdiff_t>(known);
        around_.erase(std::remove_if(end, around_.end(), [&](uint32_t each) { return std::find(around_.begin(), end, each) != end; }),
                      around_.end());
    }
    // What is kept of a list is never chosen again: it may be what leads far. But of products the longest vectors are nearest, which are
    // added after many a shorter one, and do not link back to it: its list would never lead to them.
    const size_t kept = of_.shape().metric == PRODUCT ? 0 : before;
    list_.clear();
    for (size_t i = kept; i < around_.size(); ++i)
        if (around_[i] != node && around_[i] < records_.limit && !gone(around_[i])) list_.push_back(around_[i]);
    measure(node, list_);
    around_.resize(kept);
    around_.erase(std::remove_if(around_.begin(), around_.end(), gone), around_.end());
    choose_beside(around_, before, std::min<size_t>(links.capacity, before + lost), level);
    return &chosen_;
}

}  // namespace paperwasp::hnsw
