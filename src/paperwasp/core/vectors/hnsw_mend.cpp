// Removing nodes from a graph.
//
// A removed node is found no more from then on, but links still lead to it, and walks go through it. A sweep goes round all nodes, some at
// each removal, and mends the lists that have such links: what the removed node led to is chosen from in its stead. When it has been at all
// nodes once since a removal, no link leads there any more. So each removal does its share of the work, and about one node in SWEPT is
// removed and not mended.
#include "vectors/hnsw_worker.hpp"

namespace paperwasp::hnsw {
namespace {

constexpr uint32_t SWEPT = 64;  // nodes for each removal

}  // namespace

void Index::remove(const Column& column, const uint32_t* nodes, size_t count) {
    Worker worker(*this, column);
    dead_.resize((size_t{graph_->size()} + 63) / 64);
    for (size_t i = 0; i < count; ++i) {
        const uint32_t number = nodes[i];
        if (number >= worker.records().limit) continue;
        Node& node = worker.records().node(number);
        if (node.state == LOST) store(&node.state, static_cast<uint8_t>(GONE));
        if (node.state != LIVE) continue;
        store(&node.state, static_cast<uint8_t>(DEAD));
        dead_[number >> 6] |= uint64_t{1} << (number & 63);
        graves_.push_back({number, round_, position_});
        if (live_.fetch_sub(1) == 1)
            graph_->set_entry({});
        else if (graph_->entry().node == number)
            replace_entry();
        worker.leave_tree(*this, number);
        sweep(&worker);
    }
}

// By a node of the highest level there is, near the old one if it can be.
void Index::replace_entry() {
    const Records records = graph_->records(MOST_NODES);
    const Entry old = graph_->entry();
    std::vector<uint32_t> around(2 * size_t{records.max_links});
    for (uint32_t level = old.level + 1; level-- > 0;) {
        const uint32_t count = copy_links(records.links(old.node, level), around.data());
        for (uint32_t i = 0; i < count; ++i)
            if (records.is_live(around[i])) return graph_->set_entry({around[i], records.node(around[i]).level});
    }
    Entry best;
    for (uint32_t node = 0; node < graph_->size(); ++node)
        if (records.is_live(node) && (best.node == NONE || records.node(node).level > best.level)) best = {node, records.node(node).level};
    graph_->set_entry(best);
}

// Goes on with the sweep, as long as links may lead to removed nodes.
void Index::sweep(Worker* worker) {
    const Records& records = worker->records();
    for (uint32_t step = 0; step < SWEPT && !graves_.empty(); ++step) {
        if (position_ < records.limit && records.is_live(position_)) mend(worker, position_);
        if (++position_ >= graph_->size()) position_ = 0, ++round_;
        for (; !graves_.empty(); graves_.pop_front()) {
            const Grave& grave = graves_.front();
            if (round_ < grave.round + 1 || (round_ == grave.round + 1 && position_ < grave.position)) break;
            store(&records.node(grave.node).state, static_cast<uint8_t>(GONE));
        }
    }
}

void Index::mend(Worker* worker, uint32_t node) {
    const Records& records = worker->records();
    auto is_dead = [this](uint32_t other) { return (dead_[other >> 6] >> (other & 63) & 1) != 0; };
    for (uint32_t level = 0; level <= records.node(node).level; ++level) {
        if (const auto* mended = worker->mended(node, level, is_dead)) worker->relink(node, level, *mended);
    }
}

namespace {

// From one graph to another that has other numbers.
class Copier {
  public:
    Copier(Worker* worker, const std::vector<uint32_t>& new_number) : worker_(*worker), from_(worker->records()), new_number_(new_number) {}

    void copy(uint32_t old, size_t code_bytes, const Records& to) {
        const Node& before = from_.node(old);
        const uint32_t number = new_number_[old];
        Node& node = to.node(number);
        std::copy_n(from_.record(old), code_bytes, to.record(number));
        node.parent = NONE;
        if (before.parent != NONE && new_number_[before.parent] < number) {
            node.parent = new_number_[before.parent];
            ++to.node(node.parent).children;
        }
        node.scale = before.scale, node.square = before.square, node.sum = before.sum;
        auto is_gone = [&](uint32_t other) { return new_number_[other] == NONE; };
        for (uint32_t level = 0; level <= before.level; ++level) {
            const Links links = from_.links(old, level), kept = to.links(number, level);
            list_.resize(links.capacity);
            list_.resize(copy_links(links, list_.data()));
            if (const auto* mended = worker_.mended(old, level, is_gone)) list_ = *mended;
            for (uint32_t& each : list_) each = new_number_[each];
            write_links(kept, list_.data(), static_cast<uint32_t>(list_.size()));
        }
        store(&node.state, static_cast<uint8_t>(LIVE));
    }

  private:
    Worker& worker_;
    const Records& from_;
    const std::vector<uint32_t>& new_number_;
    std::vector<uint32_t> list_;
};

}  // namespace

std::unique_ptr<Index> Index::renumbered(const Column& column, const uint32_t* numbers, const uint32_t* owners, size_t count) const {
    auto made = std::make_unique<Index>(shape_, graph_->max_links(), explore_at_insert_);
    Worker worker(*this, column);
    const Records& from = worker.records();
    std::vector<uint32_t> new_number(graph_->size(), NONE);
    for (size_t i = 0; i < count; ++i)
        if (numbers[i] < from.limit && from.is_live(numbers[i])) new_number[numbers[i]] = static_cast<uint32_t>(i);
    made->graph_->reserve(static_cast<uint32_t>(count));
    const Records to = made->graph_->records(count);
    Copier copier(&worker, new_number);
    Entry entry;
    uint32_t live = 0;
    for (uint32_t number = 0; number < count; ++number) {
        const uint32_t old = numbers[number];
        if (old >= new_number.size() || new_number[old] != number) continue;
        Node& node = to.node(number);
        node.owner = owners[number];
        made->graph_->give_lists(node, from.node(old).level);
        copier.copy(old, shape_.code_bytes(), to);
        ++live;
        if (entry.node == NONE || node.level > entry.level || (node.level == entry.level && old == graph_->entry().node))
            entry = {number, node.level};
    }
    made->graph_->set_entry(entry);
    made->grow_tree();
    made->live_ = live;
    made->has_many_ = has_many();
    made->walks_by_codes_ = walks_by_codes_.load();
    made->fineness_ = fineness_;
    return made;
}

}  // namespace paperwasp::hnsw
