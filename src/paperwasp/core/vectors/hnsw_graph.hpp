// The nodes of a graph for nearest neighbours, and their links: what hnsw.cpp searches and hnsw_insert.cpp changes.
//
// A node is a vector of a column, by its row there. All that belongs to it stands in one record of `stride` bytes: the code of its vector
// (hnsw_space.hpp), then a Node, then its links on the lowest level. Its lists on higher levels are one block elsewhere. Records stand in
// pages and never move; a graph that grows gets further pages, and tables of pages that readers may hold are kept.
//
// Threads: one writer (whose threads, while a batch is added, lock the list that they change), and any number of readers without a
// lock. A record is written whole before the first link to it is. Whatever changes afterwards (lists, states, the entry) is read and
// written by atomic operations: stored with release, loaded with acquire, so that who finds a node's number finds its record. A reader may
// see a list in the midst of a change: some of the links are old, and each of them leads to a node that was there. It sees all of those
// that are in the list before and after.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

namespace paperwasp::hnsw {

constexpr uint32_t NONE = 0xFFFFFFFFu;
constexpr uint32_t MOST_NODES = 1u << 30;  // two bits are left to who holds numbers of nodes
constexpr uint32_t MOST_LEVELS = 16;       // above the lowest
constexpr uint32_t MOST_LINKS = 1024;
constexpr size_t LINE = 64;
constexpr uint32_t MOST_SPINS = 1000;  // some tens of microseconds

// Atomic operations on members of plain types: what C++20 has std::atomic_ref for.
template <typename T>
inline T load(const T* from) {
    return __atomic_load_n(from, __ATOMIC_ACQUIRE);
}

template <typename T>
inline void store(T* to, T value) {
    __atomic_store_n(to, value, __ATOMIC_RELEASE);
}

// ABSENT: never added. LIVE: found by searches. DEAD: removed, and still led to by links that are not mended yet: searches go through it.
// GONE: removed, and no link leads to it. LOST: its vector has cells that are not numbers, so it was never linked.
enum State : uint8_t { ABSENT, LIVE, DEAD, GONE, LOST };

struct Node {
    float scale;      // of the code: what the product of two codes is multiplied with
    float square;     // of the vector's length, as the code has it
    int32_t sum;      // of the code's cells
    uint32_t owner;   // the document
    uint32_t* upper;  // the lists above the lowest, each a count and max_links links
    uint8_t level;
    uint8_t state;  // atomic
    uint8_t lock;   // atomic
    uint8_t unused;
    uint32_t parent;    // atomic; in the tree of the lowest level (hnsw_tree.cpp)
    uint32_t children;  // in the tree; the writer's, whose threads lock the tree
    uint32_t count;     // atomic; of the links behind the Node
};
static_assert(sizeof(Node) == 40);

// A list of links: `count` and `ids` are atomic.
struct Links {
    uint32_t* count;
    uint32_t* ids;
    uint32_t capacity;
};

// The records as they can be reached from some moment on: nodes of `limit` and above are not looked at.
struct Records {
    char* const* pages = nullptr;
    uint32_t limit = 0;
    uint32_t page_bits = 0;
    uint32_t stride = 0;
    uint32_t head = 0;  // where in a record the Node is
    uint32_t max_links = 0;

    char* record(uint32_t node) const { return pages[node >> page_bits] + size_t{node & ((1u << page_bits) - 1)} * stride; }
    Node& node(uint32_t number) const { return *reinterpret_cast<Node*>(record(number) + head); }
    Links links(uint32_t number, uint32_t level) const {
        Node& of = node(number);
        if (level == 0) return {&of.count, reinterpret_cast<uint32_t*>(&of + 1), 2 * max_links};
        uint32_t* list = of.upper + size_t{level - 1} * (max_links + 1);
        return {list, list + 1, max_links};
    }
    bool is_live(uint32_t number) const { return load(&node(number).state) == LIVE; }
};

// Copies the links of a list to `to`, which has room for all; how many there were.
inline uint32_t copy_links(const Links& links, uint32_t* to) {
    const uint32_t count = load(links.count);
    for (uint32_t i = 0; i < count; ++i) to[i] = load(links.ids + i);
    return count;
}

inline bool has_link(const Links& links, uint32_t to) {
    const uint32_t count = load(links.count);
    for (uint32_t i = 0; i < count; ++i)
        if (load(links.ids + i) == to) return true;
    return false;
}

// Of a list that nobody reads yet.
inline void write_links(const Links& links, const uint32_t* ids, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) store(links.ids + i, ids[i]);
    store(links.count, count);
}

inline void append_link(const Links& links, uint32_t to) {
    const uint32_t count = load(links.count);
    store(links.ids + count, to);
    store(links.count, count + 1);
}

// Without an end before the last: short runs of numbers are compared eight at a time so.
inline bool has_number(const uint32_t* numbers, size_t count, uint32_t number) {
    uint32_t equal = 0;
    for (size_t i = 0; i < count; ++i) equal |= numbers[i] == number;
    return equal != 0;
}

// Makes these distinct numbers a list's links. A reader sees those that it had before all the time: they stay in their places, but for the
// last ones of a list that gets shorter, which are written to their new place first.
inline void change_links(const Links& links, const std::vector<uint32_t>& ids) {
    uint32_t before[2 * MOST_LINKS], free[2 * MOST_LINKS];
    uint32_t count = copy_links(links, before), holes = 0, filled = 0;
    for (uint32_t i = 0; i < count; ++i)
        if (!has_number(ids.data(), ids.size(), before[i])) free[holes++] = i;
    for (const uint32_t id : ids) {
        if (has_number(before, count, id)) continue;
        if (filled < holes)
            store(links.ids + free[filled++], id);
        else
            append_link(links, id);
    }
    for (; filled < holes; store(links.count, --count)) {
        if (free[holes - 1] == count - 1)
            --holes;
        else
            store(links.ids + free[filled++], load(links.ids + count - 1));
    }
}

// For whoever spins: another thread of the same core may go on.
inline void rest() {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#elif defined(__aarch64__)
    __asm__ __volatile__("yield");
#endif
}

// Holds the lists of a node. Most are held for less than a switch of threads takes, so whoever waits spins at first; but where there are
// more threads than processors, the one that holds them may wait for that processor.
class Locked {
  public:
    explicit Locked(Node& node) : node_(node) {
        for (uint32_t spins = 0; __atomic_test_and_set(&node_.lock, __ATOMIC_ACQUIRE);) {
            while (__atomic_load_n(&node_.lock, __ATOMIC_RELAXED) != 0) {
                if (++spins < MOST_SPINS)
                    rest();
                else
                    std::this_thread::yield();
            }
        }
    }
    ~Locked() { __atomic_clear(&node_.lock, __ATOMIC_RELEASE); }
    Locked(const Locked&) = delete;

  private:
    Node& node_;
};

struct Entry {
    uint32_t node = NONE;
    uint32_t level = 0;
};

class Graph {
  public:
    // code_bytes: of a record's code; 0 where the column itself serves.
    Graph(uint32_t max_links, size_t code_bytes);
    ~Graph();
    Graph(const Graph&) = delete;

    // For readers: the nodes below `limit`, so far as there are pages.
    Records records(size_t limit) const;

    // From here on: the writer.
    void reserve(uint32_t nodes);
    // The lists of a new node, without links. By several threads.
    void give_lists(Node& node, uint32_t level);

    Entry entry() const {
        const uint64_t both = load(&entry_);
        return {static_cast<uint32_t>(both), static_cast<uint32_t>(both >> 32)};
    }
    void set_entry(Entry to) { store(&entry_, uint64_t{to.level} << 32 | to.node); }

    uint32_t size() const { return load(&size_); }  // one more than the greatest number of a node
    uint32_t max_links() const { return max_links_; }
    // Of the memory that was written to, nearly.
    size_t size_bytes() const { return load(&lists_bytes_) + size_t{load(&size_)} * stride_; }

  private:
    struct Table {
        std::unique_ptr<char*[]> pages;
        uint32_t capacity;
        uint32_t count;  // atomic
    };

    uint32_t max_links_, head_, stride_, page_bits_ = 0;
    uint32_t size_ = 0;       // atomic
    uint64_t entry_ = NONE;   // atomic
    Table* table_ = nullptr;  // atomic; the last of tables_
    size_t lists_bytes_ = 0;  // atomic
    std::vector<std::unique_ptr<Table>> tables_;
    std::mutex lists_mutex_;
    std::vector<std::unique_ptr<uint32_t[]>> blocks_;  // of lists above the lowest level
    size_t block_used_ = 0;
};

// The level of a new node, from its number alone: each holds 1 / max_links of the nodes of the one below.
uint32_t level_of(uint32_t node, uint32_t max_links);

}  // namespace paperwasp::hnsw
