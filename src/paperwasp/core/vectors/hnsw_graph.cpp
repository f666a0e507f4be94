// The memory of a graph: see hnsw_graph.hpp. Threads: the writer's.
#include "vectors/hnsw_graph.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <new>

namespace paperwasp::hnsw {
namespace {

constexpr size_t HUGE_PAGE = size_t{1} << 21;
constexpr size_t PAGE_BYTES = size_t{1} << 24;        // about, of a page of records
constexpr size_t LISTS_IN_A_BLOCK = size_t{1} << 14;  // in links

size_t round_up(size_t bytes, size_t to) { return (bytes + to - 1) / to * to; }

// Zeroed memory that is there when it is touched, in huge pages where there are some: a walk through a graph is a walk through the tables
// of memory, too.
char* map_memory(size_t bytes) {
    const size_t all = bytes + HUGE_PAGE;
    void* found = mmap(nullptr, all, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) throw std::bad_alloc();
    char* const start = static_cast<char*>(found);
    char* const aligned = reinterpret_cast<char*>(round_up(reinterpret_cast<uintptr_t>(start), HUGE_PAGE));
    const size_t mapped = round_up(bytes, 4096);
    if (aligned > start) munmap(start, static_cast<size_t>(aligned - start));
    if (const char* end = start + all; aligned + mapped < end) munmap(aligned + mapped, static_cast<size_t>(end - aligned) - mapped);
#ifdef MADV_HUGEPAGE
    madvise(aligned, mapped, MADV_HUGEPAGE);
#endif
    return aligned;
}

}  // namespace

Graph::Graph(uint32_t max_links, size_t code_bytes)
    : max_links_(max_links),
      head_(static_cast<uint32_t>(round_up(code_bytes, 16))),
      stride_(static_cast<uint32_t>(round_up(head_ + sizeof(Node) + size_t{2} * max_links * sizeof(uint32_t), LINE))) {
    while (page_bits_ < 16 && (size_t{stride_} << (page_bits_ + 1)) <= PAGE_BYTES) ++page_bits_;
    tables_.push_back(std::make_unique<Table>(Table{nullptr, 0, 0}));
    store(&table_, tables_.back().get());
}

Graph::~Graph() {
    for (uint32_t i = 0; i < table_->count; ++i) munmap(table_->pages[i], round_up(size_t{stride_} << page_bits_, 4096));
}

Records Graph::records(size_t limit) const {
    const Table* table = load(&table_);
    const size_t reached = std::min({limit, size_t{load(&table->count)} << page_bits_, size_t{MOST_NODES}});
    return {table->pages.get(), static_cast<uint32_t>(reached), page_bits_, stride_, head_, max_links_};
}

void Graph::reserve(uint32_t nodes) {
    const uint32_t wanted = static_cast<uint32_t>((size_t{nodes} + (size_t{1} << page_bits_) - 1) >> page_bits_);
    if (wanted > table_->capacity) {
        const uint32_t count = table_->count, capacity = std::max(wanted, 2 * table_->capacity);
        auto grown = std::make_unique<Table>(Table{std::make_unique<char*[]>(capacity), capacity, count});
        std::copy_n(table_->pages.get(), count, grown->pages.get());
        tables_.push_back(std::move(grown));
        store(&table_, tables_.back().get());
    }
    while (table_->count < wanted) {
        table_->pages[table_->count] = map_memory(size_t{stride_} << page_bits_);
        store(&table_->count, table_->count + 1);
    }
    store(&size_, std::max(size_, nodes));
}

void Graph::give_lists(Node& node, uint32_t level) {
    node.level = static_cast<uint8_t>(level);
    if (level == 0) return;
    const size_t wanted = size_t{level} * (max_links_ + 1);
    const std::lock_guard<std::mutex> lock(lists_mutex_);
    const size_t block = std::max(LISTS_IN_A_BLOCK, size_t{MOST_LEVELS} * (max_links_ + 1));
    if (blocks_.empty() || block_used_ + wanted > block) {
        blocks_.push_back(std::make_unique<uint32_t[]>(block));
        block_used_ = 0;
        store(&lists_bytes_, lists_bytes_ + block * sizeof(uint32_t));
    }
    node.upper = blocks_.back().get() + block_used_;
    block_used_ += wanted;
}

uint32_t level_of(uint32_t node, uint32_t max_links) {
    uint64_t hash = (uint64_t{node} + 1) * 0x9E3779B97F4A7C15u;  // splitmix64
    hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9u;
    hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBu;
    hash ^= hash >> 31;
    // Powers of max_links by comparison alone, so that every machine gives a node the same level.
    const uint64_t each = std::max(max_links, 2u);
    uint64_t share = UINT64_MAX / each;
    uint32_t level = 0;
    while (level < MOST_LEVELS && hash < share) ++level, share /= each;
    return level;
}

}  // namespace paperwasp::hnsw
