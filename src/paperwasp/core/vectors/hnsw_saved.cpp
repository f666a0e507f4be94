// A graph as plain arrays, and back.
//
//   header  HEADER numbers: see below
//   levels  of each node, from 0 on: one more than its level; 0: not in the graph; REMOVED is added where links may still lead to it
//   owners  of each node
//   counts  for each node in the graph, for each of its levels from the lowest on: how many links
//   links   all of these links, one list after another
//   parents of each node, in the tree (hnsw_tree.cpp); NONE where it has none. In version 1 there are none: they are found when it is
//   loaded
// Codes are not saved: they are made from the column. What a reader of files finds is checked whole before anything follows it.
//
// Threads: a graph that is loaded is nobody else's yet; those that help to make codes end before it is.
#include "vectors/hnsw_saved.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <stdexcept>
#include <thread>

#include "vectors/hnsw_worker.hpp"

namespace paperwasp::hnsw {
namespace {

constexpr uint64_t VERSION = 2, BEFORE_TREES = 1;
constexpr uint8_t REMOVED = 0x80;

enum Header : size_t {
    FORMAT,
    METRIC,
    CELL,
    DIMENSIONS,
    LINKS,
    ENTRY_NODE,
    HAS_MANY,
    UNUSED,  // 0; once the square of the longest vector's length
    ERRORS,  // this and the next: the bits of a double
    DISTANCES,
    HEADER
};

uint64_t bits_of(double value) {
    uint64_t bits;
    std::memcpy(&bits, &value, sizeof bits);
    return bits;
}

double number_of(uint64_t bits) {
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!(value >= 0)) throw std::invalid_argument("a graph's header has a number that cannot be");
    return value;
}

[[noreturn]] void damaged(const char* what) { throw std::invalid_argument(what); }

// Arrays that may be anything.
class Loader {
  public:
    Loader(const SavedView& saved, const Shape& shape, uint32_t max_links) : saved_(saved), shape_(shape), max_links_(max_links) {}

    void check() const {
        if (saved_.header_size != HEADER || (saved_.header[FORMAT] != VERSION && saved_.header[FORMAT] != BEFORE_TREES))
            damaged("no graph of this version");
        if (saved_.parents_size != (has_tree() ? saved_.nodes : 0)) damaged("not a parent for each node");
        if (saved_.header[METRIC] != shape_.metric || saved_.header[CELL] != shape_.cell ||
            saved_.header[DIMENSIONS] != shape_.dimensions || saved_.header[LINKS] != max_links_)
            damaged("a graph of other settings");
        if (saved_.nodes >= MOST_NODES) damaged("too many nodes");
        check_lists();
        const uint64_t entry = saved_.header[ENTRY_NODE];
        if (entry != NONE && (entry >= saved_.nodes || level(static_cast<uint32_t>(entry)) == 0)) damaged("an entry that is no node");
    }

    // One more than the level; 0: none.
    uint32_t level(uint32_t node) const { return saved_.levels[node] & (REMOVED - 1); }
    bool is_removed(uint32_t node) const { return (saved_.levels[node] & REMOVED) != 0; }
    bool is_live(uint32_t node) const { return level(node) != 0 && !is_removed(node); }
    bool has_tree() const { return saved_.header[FORMAT] == VERSION; }

    // Of nodes whose lists are written. Each live one but the first has a parent, which is live and before it, and both link to each other.
    void take_parents(const Records& records) const {
        uint32_t root = NONE;
        for (uint32_t number = 0; number < saved_.nodes; ++number) {
            const uint32_t parent = saved_.parents[number];
            if (!is_live(number)) continue;
            if (root == NONE) {
                root = number;
                if (parent != NONE) damaged("a first node with a parent");
                continue;
            }
            if (parent >= number || !is_live(parent)) damaged("a parent that cannot be");
            if (!has_link(records.links(number, 0), parent) || !has_link(records.links(parent, 0), number))
                damaged("a parent without links");
            if (++records.node(parent).children > most_children(max_links_)) damaged("a parent of too many");
            records.node(number).parent = parent;
        }
    }

  private:
    void check_lists() const {
        size_t count_at = 0, link_at = 0;
        for (uint32_t node = 0; node < saved_.nodes; ++node) {
            const uint32_t levels = level(node);
            if (levels > MOST_LEVELS + 1 || (levels == 0 && is_removed(node))) damaged("a level that cannot be");
            for (uint32_t above = 0; above < levels; ++above) {
                if (count_at == saved_.counts_size) damaged("lists are missing");
                const uint32_t count = saved_.counts[count_at++];
                if (count > (above == 0 ? 2 : 1) * max_links_ || count > saved_.links_size - link_at) damaged("a list that is too long");
                for (uint32_t i = 0; i < count; ++i) {
                    const uint32_t to = saved_.links[link_at++];
                    if (to >= saved_.nodes || level(to) <= above) damaged("a link that leads nowhere");
                }
            }
        }
        if (count_at != saved_.counts_size || link_at != saved_.links_size) damaged("lists of no node");
    }

    const SavedView& saved_;
    const Shape& shape_;
    const uint32_t max_links_;
};

// False where the vector of a node has cells that are no numbers.
bool make_codes(const Loader& loader, const Shape& shape, const Records& records, const Column& column, size_t threads) {
    constexpr uint32_t AT_A_TIME = 1024;
    std::atomic<uint32_t> next{0};
    std::atomic<bool> all{true};
    auto work = [&] {
        double error;
        for (uint32_t from; (from = next.fetch_add(AT_A_TIME)) < records.limit;)
            for (uint32_t number = from; number < std::min(from + AT_A_TIME, records.limit); ++number)
                if (loader.level(number) != 0 && !encode(shape, records, column, number, &error)) all = false;
    };
    std::vector<std::thread> others;
    for (size_t i = 1; i < threads; ++i) others.emplace_back(work);
    work();
    for (std::thread& other : others) other.join();
    return all;
}

}  // namespace

Saved Index::saved() const {
    const Records records = graph_->records(graph_->size());
    Saved to;
    to.levels.resize(records.limit);
    to.owners.resize(records.limit);
    to.parents.resize(records.limit, NONE);
    auto is_there = [&](uint32_t node) { return records.node(node).state == LIVE || records.node(node).state == DEAD; };
    std::vector<uint32_t> list(2 * size_t{records.max_links});
    for (uint32_t number = 0; number < records.limit; ++number) {
        if (!is_there(number)) continue;
        const Node& node = records.node(number);
        to.owners[number] = node.owner;
        to.parents[number] = node.parent;
        to.levels[number] = static_cast<uint8_t>((node.level + 1) | (node.state == DEAD ? REMOVED : 0));
        for (uint32_t level = 0; level <= node.level; ++level) {
            const auto begin = list.begin(), end = begin + copy_links(records.links(number, level), list.data());
            std::copy_if(begin, end, std::back_inserter(to.links), is_there);
            to.counts.push_back(static_cast<uint32_t>(std::count_if(begin, end, is_there)));
        }
    }
    to.header = {VERSION,
                 shape_.metric,
                 shape_.cell,
                 shape_.dimensions,
                 graph_->max_links(),
                 graph_->entry().node,
                 has_many() ? 1u : 0u,
                 0,
                 bits_of(fineness_.errors),
                 bits_of(fineness_.distances)};
    return to;
}

std::unique_ptr<Index> Index::load_saved(const Shape& shape, uint32_t max_links, uint32_t explore_at_insert, const Column& column,
                                         const SavedView& saved, size_t threads) {
    const Loader loader(saved, shape, max_links);
    loader.check();
    if (saved.nodes > column.rows) damaged("more nodes than vectors");
    auto made = std::make_unique<Index>(shape, max_links, explore_at_insert);
    Graph& graph = *made->graph_;
    graph.reserve(static_cast<uint32_t>(saved.nodes));
    made->dead_.resize((saved.nodes + 63) / 64);
    const Records records = graph.records(saved.nodes);
    if (!make_codes(loader, shape, records, column, threads)) damaged("a node whose vector has no numbers");
    const uint32_t *counts = saved.counts, *links = saved.links;
    uint32_t live = 0;
    for (uint32_t number = 0; number < saved.nodes; ++number) {
        if (loader.level(number) == 0) continue;
        Node& node = records.node(number);
        node.owner = saved.owners[number];
        node.parent = NONE;
        graph.give_lists(node, loader.level(number) - 1);
        for (uint32_t level = 0; level <= node.level; ++level) {
            write_links(records.links(number, level), links, *counts);
            links += *counts++;
        }
        store(&node.state, static_cast<uint8_t>(loader.is_removed(number) ? DEAD : LIVE));
        if (loader.is_removed(number)) {
            made->dead_[number >> 6] |= uint64_t{1} << (number & 63);
            made->graves_.push_back({number, 0, 0});
        } else {
            ++live;
        }
    }
    if (loader.has_tree()) loader.take_parents(records);
    made->grow_tree();
    made->live_ = live;
    made->has_many_ = saved.header[HAS_MANY] != 0;
    made->fineness_ = {number_of(saved.header[ERRORS]), number_of(saved.header[DISTANCES])};
    made->walks_by_codes_ = made->fineness_.is_enough();
    if (saved.header[ENTRY_NODE] != NONE) {
        const auto entry = static_cast<uint32_t>(saved.header[ENTRY_NODE]);
        graph.set_entry({entry, records.node(entry).level});
    }
    return made;
}

}  // namespace paperwasp::hnsw
