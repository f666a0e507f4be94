// Adding nodes to a graph.
//
// A new node is linked on each of its levels to some of the nearest that a walk finds: to each only if it is nearer to the new node than to
// all that were chosen before it, so that links lead in all directions. Those link back, and where they have too many links they choose
// again by the same rule. From one thread the same additions make the same graph; with several each list is locked while it changes.
#include <cmath>
#include <exception>
#include <limits>
#include <thread>

#include "hnsw_worker.hpp"

namespace paperwasp::hnsw {

Index::Index(const Shape& shape, uint32_t max_links, uint32_t explore_at_insert)
    : shape_(shape), explore_at_insert_(explore_at_insert), graph_(std::make_unique<Graph>(max_links, shape.code_bytes())) {}

Entry Index::entry_below(const Records& records) const {
    const Entry entry = graph_->entry();
    if (entry.node == NONE || entry.node < records.limit) return entry;
    // A reader whose view is older than the entry: any node will do.
    for (uint32_t node = 0; node < records.limit; ++node)
        if (records.is_live(node)) return {node, records.node(node).level};
    return {};
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

Worker::Worker(const Index& index, const Column& column)
    : of_(index),
      column_(column),
      records_(index.graph().records(column.rows)),
      explore_(std::max(index.explore_at_insert(), 1u)),
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
        for (uint32_t level = std::min<uint32_t>(node.level, entry.level) + 1; level-- > 0;) link_on(number, level, &near);
        if (index.shape_.code_bytes() > 0) index.note_fineness(error, straight_square(index.shape_, column_, number, near.node));
    }
    if (entry.node == NONE || node.level > entry.level) index.graph_->set_entry({number, node.level});
}

// *from: where the walk begins; becomes the nearest.
void Worker::link_on(uint32_t node, uint32_t level, Near* from) {
    length_ = length_of(node);
    walk(records_, *space_, *from, level, explore_, nullptr, &near_);
    near_.erase(std::remove_if(near_.begin(), near_.end(), [&](Near n) { return n.node == node || !records_.is_live(n.node); }),
                near_.end());
    if (near_.empty()) return;
    *from = near_.front();
    choose(records_.max_links, MOST_LEVELS);
    to_.clear();
    for (const uint32_t place : places_) to_.push_back(near_[place]);
    {
        // A thread that found this node may have linked to it already: these links stay.
        const Links links = records_.links(node, level);
        const Locked lock(records_.node(node));
        list_.resize(links.capacity);
        list_.resize(copy_links(links, list_.data()));
        for (const uint32_t each : chosen_) {
            if (list_.size() == links.capacity || std::find(list_.begin(), list_.end(), each) != list_.end()) continue;
            list_.push_back(each);
            if (level == 0) count_link(each, 1);
        }
        write_links(links, list_.data(), static_cast<uint32_t>(list_.size()));
    }
    for (const Near each : to_) link_back(node, level, each);
}

void Worker::link_back(uint32_t node, uint32_t level, Near to) {
    const Links links = records_.links(to.node, level);
    const Locked lock(records_.node(to.node));
    const uint32_t count = load(links.count);
    list_.resize(links.capacity);
    list_.resize(copy_links(links, list_.data()));
    if (std::find(list_.begin(), list_.end(), node) != list_.end()) return;
    if (count < links.capacity) {
        store(links.ids + count, node);
        store(links.count, count + 1);
        if (level == 0) count_link(node, 1);
        return;
    }
    measure(to.node, list_);
    const Near added{to.distance, node};
    near_.insert(std::lower_bound(near_.begin(), near_.end(), added), added);
    choose(links.capacity, level);
    relink(to.node, level, chosen_);
}

void Worker::relink(uint32_t node, uint32_t level, const std::vector<uint32_t>& to) {
    const Links links = records_.links(node, level);
    if (level == 0) {
        for (const uint32_t each : to) count_link(each, 1);
        const uint32_t count = load(links.count);
        for (uint32_t i = 0; i < count; ++i) count_link(load(links.ids + i), -1);
    }
    write_links(links, to.data(), static_cast<uint32_t>(to.size()));
}

void Worker::measure(uint32_t node, const std::vector<uint32_t>& others) {
    length_ = length_of(node);
    other_->bind_node(node);
    distances_.resize(others.size());
    other_->distances(others.data(), others.size(), distances_.data());
    near_.clear();
    for (size_t i = 0; i < others.size(); ++i) near_.push_back({distances_[i], others[i]});
    std::sort(near_.begin(), near_.end());
}

// Of near_, in order, those that none of the chosen is nearer to.
void Worker::choose(uint32_t most, uint32_t level) {
    chosen_.clear();
    places_.clear();
    for (size_t i = 0; i < near_.size() && chosen_.size() < most; ++i) {
        if (is_nearer_to_chosen(near_[i])) continue;
        chosen_.push_back(near_[i].node);
        places_.push_back(static_cast<uint32_t>(i));
    }
    if (level == 0) keep_led_to(most);
}

void Worker::choose_beside(const std::vector<uint32_t>& kept, size_t before, size_t most, uint32_t level) {
    if (kept.empty()) {
        choose(static_cast<uint32_t>(most), level);
    } else {
        chosen_ = kept;
        for (size_t i = 0; i < near_.size() && chosen_.size() < most; ++i)
            if (!is_nearer_to_chosen(near_[i])) chosen_.push_back(near_[i].node);
    }
    for (size_t i = 0; i < near_.size() && chosen_.size() < before; ++i)
        if (std::find(chosen_.begin(), chosen_.end(), near_[i].node) == chosen_.end()) chosen_.push_back(near_[i].node);
}

// What was not chosen but has no other link to it takes the place of the farthest that has others. Few may: where many documents have one
// vector, hundreds wait for such a place, and a list that is full of them leads nowhere else.
void Worker::keep_led_to(uint32_t most) {
    constexpr int MOST_KEPT = 2;
    int kept = 0;
    for (size_t i = 0, next = 0; i < near_.size() && kept < MOST_KEPT; ++i) {
        if (next < places_.size() && places_[next] == i) {
            ++next;
            continue;
        }
        const uint32_t node = near_[i].node;
        if (links_to(node) > 1) continue;
        ++kept;
        if (chosen_.size() < most) {
            chosen_.push_back(node);
            continue;
        }
        const auto other = std::find_if(chosen_.rbegin(), chosen_.rend(), [&](uint32_t each) { return links_to(each) > 1; });
        if (other == chosen_.rend()) return;
        *other = node;
    }
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
