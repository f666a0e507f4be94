// The tree that keeps all nodes of a graph together.
//
// Lists of links forget: a node that has too many chooses again, and a removed one leads nowhere. By chance alone some live node would in
// the end be led to by no other. So on the lowest level every live node but the one with the lowest number has a parent, which is live and
// has a lower number, and the two link to each other: such links are held, whatever else a list chooses. Numbers fall from each node to
// its parent, so there are no circles, and from each node links lead to the first and from there to all; also for a reader whose view ends
// at some number. A node has at most `most_children` of them, so that most of its list is free to lead elsewhere.
//
// A parent is the nearest node that has room, so what is held is mostly what would have been chosen. Only where no near one has room is a
// place looked for from above, and it is always found: whoever has no room has children, to which the same applies.
//
// Threads: the writer's, one at a time.
#include "vectors/hnsw_worker.hpp"

namespace paperwasp::hnsw {

void Worker::join_tree(Index& index, uint32_t node) {
    const std::lock_guard<std::mutex> lock(index.tree_mutex_);
    const uint32_t root = index.root();
    if (root == NONE || node < root) {
        store(&records_.node(node).parent, NONE);
        index.root_.store(node, std::memory_order_release);
        if (root != NONE) hang_below(root, node);
    } else {
        hang_near(node, root);
    }
}

// Below one of found_, or where there is room from another node on, which has a lower number.
void Worker::hang_near(uint32_t node, uint32_t otherwise) {
    const auto fits = [&](Near near) { return near.node < node && has_room(near.node); };
    const auto at = std::find_if(found_.begin(), found_.end(), fits);
    if (at != found_.end()) return hang(node, at->node);
    const auto lower = std::find_if(found_.begin(), found_.end(), [&](Near near) { return near.node < node; });
    hang_below(node, lower != found_.end() ? lower->node : otherwise);
}

// Below the nearest of those that a node links to, if one of them has room; best below one that links back, where no list changes.
bool Worker::hang_among(uint32_t node, uint32_t linking) {
    const Links links = records_.links(linking, 0);
    list_.resize(links.capacity);
    list_.resize(copy_links(links, list_.data()));
    const auto fits_not = [&](uint32_t each) { return each >= node || !records_.is_live(each) || !has_room(each); };
    list_.erase(std::remove_if(list_.begin(), list_.end(), fits_not), list_.end());
    if (list_.empty()) return false;
    const auto links_back = [&](uint32_t each) { return has_link(records_.links(each, 0), node); };
    const auto rest = std::stable_partition(list_.begin(), list_.end(), links_back);
    if (rest != list_.begin()) list_.erase(rest, list_.end());
    distances_.resize(list_.size());
    other_->bind_node(node);
    other_->distances(list_.data(), list_.size(), distances_.data());
    const auto nearest = std::min_element(distances_.begin(), distances_.end()) - distances_.begin();
    hang(node, list_[static_cast<size_t>(nearest)]);
    return true;
}

// Numbers of `parent` rise from step to step, so this ends.
void Worker::hang_below(uint32_t node, uint32_t parent) {
    while (!has_room(parent)) {
        const std::vector<uint32_t>& children = children_of(parent);
        const auto lower = std::find_if(children.begin(), children.end(), [&](uint32_t child) { return child < node; });
        if (lower != children.end()) {
            parent = *lower;
            continue;
        }
        if (children.empty()) break;
        // All of them have higher numbers: the node takes the place of one, which goes on below it.
        const uint32_t moved = children.front();
        --records_.node(parent).children;
        hang(node, parent);
        parent = node;
        node = moved;
    }
    hang(node, parent);
}

// First the node says who its parent is, so that whoever chooses links for one of them meanwhile holds the other.
void Worker::hang(uint32_t node, uint32_t parent) {
    ++records_.node(parent).children;
    store(&records_.node(node).parent, parent);
    add_link(parent, 0, node);
    add_link(node, 0, parent);
}

const std::vector<uint32_t>& Worker::children_of(uint32_t node) {
    const Links links = records_.links(node, 0);
    children_.resize(links.capacity);
    children_.resize(copy_links(links, children_.data()));
    const auto is_none = [&](uint32_t each) { return parent_of(each) != node || !records_.is_live(each); };
    children_.erase(std::remove_if(children_.begin(), children_.end(), is_none), children_.end());
    return children_;
}

// Its children find new parents among their neighbours and its own. Until then they are led to through it.
void Worker::leave_tree(Index& index, uint32_t removed) {
    look_at_fineness();
    std::vector<uint32_t> orphans = children_of(removed);
    std::sort(orphans.begin(), orphans.end());
    orphans.erase(std::unique(orphans.begin(), orphans.end()), orphans.end());  // a damaged file may have a link twice
    uint32_t parent = parent_of(removed);
    if (parent == NONE) {
        // The lowest number that is left has no other parent than the lowest there was.
        parent = orphans.empty() ? NONE : orphans.front();
        if (parent != NONE) {
            store(&records_.node(parent).parent, NONE);
            orphans.erase(orphans.begin());
        }
        index.root_.store(parent, std::memory_order_release);
    } else {
        --records_.node(parent).children;
    }
    for (const uint32_t orphan : orphans)
        if (!hang_among(orphan, orphan) && !hang_among(orphan, removed)) hang_below(orphan, parent);
    store(&records_.node(removed).parent, NONE);
    records_.node(removed).children = 0;
}

// Of a graph whose lists are written and that nobody reads yet: where nodes have no parents, because its file is from before there were
// any, or because with other numbers theirs are no longer lower. What is near to what is not asked.
void Index::grow_tree() {
    const Records records = graph_->records(graph_->size());
    Worker worker(*this, {nullptr, records.limit, 0}, true);
    for (uint32_t node = 0; node < records.limit; ++node)
        if (records.is_live(node)) worker.join_tree_by_links(*this, node);
}

void Worker::join_tree_by_links(Index& index, uint32_t node) {
    if (parent_of(node) != NONE) return;
    const Links links = records_.links(node, 0);
    found_.clear();
    for (uint32_t i = 0; i < load(links.count); ++i) {
        const uint32_t each = load(links.ids + i);
        // Those that link back come first: there nothing is to be changed.
        if (each < node && records_.is_live(each)) found_.push_back({has_link(records_.links(each, 0), node) ? 0.0f : 1.0f, each});
    }
    std::stable_sort(found_.begin(), found_.end(), [](Near a, Near b) { return a.distance < b.distance; });
    join_tree(index, node);
}

}  // namespace paperwasp::hnsw
