// Adding nodes to a graph.
//
// A new node is linked on each of its levels to some of the nearest that a walk finds: to each only if it is nearer to the new node than to
// all that were chosen before it, so that links lead in all directions. Those link back, and where they have too many links they choose
// again by the same rule. From one thread the same additions make the same graph; with several each list is locked while it changes.
//
// Threads: the writer, and those that it has help until a batch is added.
#include <cmath>
#include <exception>
#include <limits>
#include <thread>

#include "vectors/hnsw_worker.hpp"

namespace paperwasp::hnsw {

Index::Index(const Shape& shape, uint32_t max_links, uint32_t explore_at_insert)
    : shape_(shape), explore_at_insert_(explore_at_insert), graph_(std::make_unique<Graph>(max_links, shape.code_bytes())) {}

Entry Index::entry_below(const Records& records) const {
    const Entry entry = graph_->entry();
    if (entry.node == NONE || entry.node < records.limit) return entry;
    // A reader whose view is older than the entry: who has no node below its limit has none of its own.
    const uint32_t lowest = root();
    if (lowest == NONE || lowest >= records.limit) return {};
    return {lowest, records.node(lowest).level};
}

void Index::note_owners(const uint32_t* owners, size_t count) {
    for (size_t i = 1; i < count; ++i)
        if (owners[i] == owners[i - 1]) return has_many_.store(true, std::memory_order_release);
}

void Index::note_fineness(double error, double distance) {
    const std::lock_guard<std::mutex> lock(fineness_mutex_);
    fineness_.errors += error;
    fineness_.distances += distance;
    walks_by_codes_.store(fineness_.is_enough(), std::memory_order_release);
}

// Writes a node's record. False where its vector cannot be near anything.
bool Index::begin(const Column& column, uint32_t number, uint32_t owner, double* error) {
    const Records records = graph_->records(column.rows);
    Node& node = records.node(number);
    node.owner = owner;
    if (!encode(shape_, records, column, number, error)) {
        store(&node.state, static_cast<uint8_t>(LOST));
        return false;
    }
    if (shape_.metric == ANGULAR && node.square > 0) *error /= static_cast<double>(node.square);
    node.parent = NONE;
    graph_->give_lists(node, level_of(number, graph_->max_links()));
    store(&node.state, static_cast<uint8_t>(LIVE));
    return true;
}

void Index::add(const Column& column, const uint32_t* nodes, const uint32_t* owners, size_t count, size_t threads) {
    if (count == 0) return;
    graph_->reserve(*std::max_element(nodes, nodes + count) + 1);
    note_owners(owners, count);
    std::atomic<size_t> next{0};
    std::exception_ptr failure;
    auto work = [&] {
        try {
            Worker worker(*this, column);
            for (size_t i; (i = next.fetch_add(1)) < count;) {
                double error;
                if (!begin(column, nodes[i], owners[i], &error)) continue;
                live_.fetch_add(1);
                worker.link(*this, nodes[i], error);
            }
        } catch (...) {
            const std::lock_guard<std::mutex> lock(fineness_mutex_);
            failure = std::current_exception();
        }
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < std::min(threads, count); ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    if (failure) std::rethrow_exception(failure);
}

Worker::Worker(const Index& index, const Column& column, bool is_blind)
    : of_(index),
      column_(column),
      records_(index.graph().records(column.rows)),
      explore_(std::max(index.explore_at_insert(), 1u)),
      is_blind_(is_blind),
      by_codes_(index.walks_by_codes()),
      space_(index.space(records_, column)),
      other_(index.space(records_, column)) {}

// It may turn out with any node that codes are too coarse, or fine enough again.
void Worker::look_at_fineness() {
    if (by_codes_ == of_.walks_by_codes()) return;
    by_codes_ = !by_codes_;
    space_ = of_.space(records_, column_);
    other_ = of_.space(records_, column_);
}

void Worker::link(Index& index, uint32_t number, double error) {
    look_at_fineness();
    const Node& node = records_.node(number);
    std::unique_lock<std::mutex> lock(index.entry_mutex_, std::defer_lock);
    Entry entry = index.graph_->entry();
    if (entry.node == NONE || node.level > entry.level) {
        lock.lock();
        entry = index.graph_->entry();
    }
    if (entry.node != NONE) {
        space_->bind_node(number);
        Near near{0, entry.node};
        space_->distances(&near.node, 1, &near.distance);
        near = descend(records_, *space_, near, entry.level, node.level);
        for (uint32_t level = std::min<uint32_t>(node.level, entry.level) + 1; level-- > 0;) link_on(index, number, level, &near);
        if (index.shape_.code_bytes() > 0) index.note_fineness(error, straight_square(index.shape_, column_, number, near.node));
    } else {
        found_.clear();
        join_tree(index, number);
    }
    if (entry.node == NONE || node.level > entry.level) index.graph_->set_entry({number, node.level});
}

// *from: where the walk begins; becomes the nearest.
void Worker::link_on(Index& index, uint32_t node, uint32_t level, Near* from) {
    const uint32_t beside = level == 0 ? index.start_beside(records_, from->node) : NONE;
    walk(records_, *space_, *from, beside, level, explore_, nullptr, &found_);
    found_.erase(std::remove_if(found_.begin(), found_.end(), [&](Near n) { return n.node == node || !records_.is_live(n.node); }),
                 found_.end());
    if (level == 0) join_tree(index, node);
    if (found_.empty()) return;
    *from = found_.front();
    near_.swap(found_);
    length_ = length_of(node);
    hold(node, level, true);
    choose(records_.max_links);
    to_ = chosen_;
    {
        // A thread that found this node may have linked to it already: these links stay.
        const Links links = records_.links(node, level);
        const Locked lock(records_.node(node));
        for (const uint32_t each : to_)
            if (load(links.count) < links.capacity && !has_link(links, each)) append_link(links, each);
    }
    for (const uint32_t each : to_) add_link(each, level, node);
}

void Worker::add_link(uint32_t node, uint32_t level, uint32_t to) {
    const Links links = records_.links(node, level);
    const Locked lock(records_.node(node));
    if (has_link(links, to)) return;
    if (load(links.count) < links.capacity) return append_link(links, to);
    list_.resize(links.capacity);
    list_.resize(copy_links(links, list_.data()));
    if (is_blind_) {
        const auto last = std::find_if(list_.rbegin(), list_.rend(), [&](uint32_t each) { return !is_held(node, each); });
        *last = to;
        return change_links(links, list_);
    }
    list_.push_back(to);
    measure(node, list_);
    hold(node, level);
    choose(links.capacity);
    change_links(links, chosen_);
}

void Worker::relink(uint32_t node, uint32_t level, const std::vector<uint32_t>& to) { change_links(records_.links(node, level), to); }

void Worker::measure(uint32_t node, const std::vector<uint32_t>& others) {
    length_ = length_of(node);
    other_->bind_node(node);
    distances_.resize(others.size());
    other_->distances(others.data(), others.size(), distances_.data());
    near_.clear();
    for (size_t i = 0; i < others.size(); ++i) near_.push_back({distances_[i], others[i]});
    std::sort(near_.begin(), near_.end());
}

void Worker::hold(uint32_t node, uint32_t level, bool of_new) {
    held_.assign(near_.size(), 0);
    if (level > 0) return;
    const uint32_t parent = parent_of(node);
    for (size_t i = 0; i < near_.size(); ++i) held_[i] = near_[i].node == parent || (!of_new && parent_of(near_[i].node) == node);
}

// Of near_, in order, those that none of the chosen is nearer to, and all that are held.
void Worker::choose(uint32_t most) {
    chosen_.clear();
    auto left = static_cast<size_t>(std::count(held_.begin(), held_.end(), 1));
    for (size_t i = 0; i < near_.size() && chosen_.size() < most; ++i) {
        if (held_[i] != 0)
            --left;
        else if (chosen_.size() + left >= most || is_nearer_to_chosen(near_[i]))
            continue;
        chosen_.push_back(near_[i].node);
    }
}

void Worker::choose_beside(const std::vector<uint32_t>& kept, size_t before, size_t most) {
    if (kept.empty()) {
        choose(static_cast<uint32_t>(most));
    } else {
        chosen_ = kept;
        for (size_t i = 0; i < near_.size() && chosen_.size() < most; ++i)
            if (!is_nearer_to_chosen(near_[i])) chosen_.push_back(near_[i].node);
    }
    for (size_t i = 0; i < near_.size() && chosen_.size() < before; ++i)
        if (std::find(chosen_.begin(), chosen_.end(), near_[i].node) == chosen_.end()) chosen_.push_back(near_[i].node);
}

// As near counts as nearer: many documents can have one vector, and links from one of them to another lead nowhere new.
//
// Of products directions are compared. By the products themselves a long vector would be nearer to nearly all others than the node is: few
// links would be left, and short vectors would hardly be led to.
bool Worker::is_nearer_to_chosen(Near candidate) {
    constexpr size_t AT_A_TIME = 4;
    float distances[AT_A_TIME];
    if (chosen_.empty()) return false;
    const bool is_product = of_.shape().metric == PRODUCT;
    if (is_product && length_ > 0) candidate.distance /= length_;
    other_->bind_node(candidate.node);
    for (size_t from = 0; from < chosen_.size(); from += AT_A_TIME) {
        const size_t count = std::min(AT_A_TIME, chosen_.size() - from);
        other_->distances(chosen_.data() + from, count, distances);
        if (is_product)
            for (size_t i = 0; i < count; ++i) distances[i] = by_direction(distances[i], chosen_[from + i], candidate.node);
        if (std::any_of(distances, distances + count, [&](float each) { return each <= candidate.distance; })) return true;
    }
    return false;
}

// A product as if the chosen vector had the length 1. One of length 0 has no direction: only others like it are near.
float Worker::by_direction(float distance, uint32_t chosen, uint32_t candidate) const {
    const float length = length_of(chosen);
    if (length > 0) return distance / length;
    return length_of(candidate) > 0 ? std::numeric_limits<float>::infinity() : -std::numeric_limits<float>::infinity();
}

}  // namespace paperwasp::hnsw
