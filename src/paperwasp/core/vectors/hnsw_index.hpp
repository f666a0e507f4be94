// A graph for nearest neighbours over the vectors of a column, changed by one writer and searched by many readers: see hnsw_insert.cpp
// (adding), hnsw_tree.cpp (what keeps all nodes together), hnsw_mend.cpp (removing) and hnsw.cpp (searching, saving, Python).
//
// Threads: as hnsw_graph.hpp has it. The locks are for the threads with which the writer adds a batch; readers take none.
#pragma once

#include <atomic>
#include <deque>
#include <memory>
#include <mutex>
#include <stdexcept>
#include <vector>

#include "vectors/hnsw_graph.hpp"
#include "vectors/hnsw_saved.hpp"
#include "vectors/hnsw_space.hpp"
#include "vectors/hnsw_walk.hpp"

namespace paperwasp::hnsw {

// Whether codes are fine enough to walk by: their errors against the distances of nearest neighbours. Sums of squares over added nodes.
struct Fineness {
    double errors = 0, distances = 0;

    bool is_enough() const { return errors * 32 <= distances; }
};

class Worker;

class Index {
  public:
    Index(const Shape& shape, uint32_t max_links, uint32_t explore_at_insert);

    // The writer's. Rows are of the column as it is now, and have been checked.
    void add(const Column& column, const uint32_t* nodes, const uint32_t* owners, size_t count, size_t threads);
    void remove(const Column& column, const uint32_t* nodes, size_t count);
    // A graph whose node i is node numbers[i] of this one; those that are not named are left out, and what led to them is mended.
    std::unique_ptr<Index> renumbered(const Column& column, const uint32_t* numbers, const uint32_t* owners, size_t count) const;

    Saved saved() const;
    // Throws std::invalid_argument for arrays that are no graph of these settings.
    static std::unique_ptr<Index> load_saved(const Shape& shape, uint32_t max_links, uint32_t explore_at_insert, const Column& column,
                                             const SavedView& saved, size_t threads);

    // Anyone's.
    std::unique_ptr<Space> space(const Records& records, const Column& column) const {
        return make_space(shape_, walks_by_codes(), records, column);
    }
    // Where a walk among nodes below the records' limit begins; NONE where there is nothing.
    Entry entry_below(const Records& records) const;
    // The live node with the lowest number; NONE where there is none.
    uint32_t root() const { return root_.load(std::memory_order_acquire); }
    // Where a walk on the lowest level begins besides: a removed node may lead to removed ones alone. NONE: nowhere.
    uint32_t start_beside(const Records& records, uint32_t start) const {
        const uint32_t lowest = records.is_live(start) ? NONE : root();
        return lowest < records.limit && lowest != start ? lowest : NONE;
    }

    const Graph& graph() const { return *graph_; }
    const Shape& shape() const { return shape_; }
    bool has_many() const { return has_many_.load(std::memory_order_acquire); }
    bool walks_by_codes() const { return walks_by_codes_.load(std::memory_order_acquire); }
    uint32_t live() const { return live_.load(std::memory_order_acquire); }
    uint32_t explore_at_insert() const { return explore_at_insert_; }

  private:
    friend class Worker;

    bool begin(const Column& column, uint32_t node, uint32_t owner, double* error);
    void note_owners(const uint32_t* owners, size_t count);
    void note_fineness(double error, double distance);
    void sweep(Worker* worker);
    void mend(Worker* worker, uint32_t node);
    void replace_entry();
    void grow_tree();

    struct Grave {
        uint32_t node;
        uint64_t round;     // of the sweep
        uint32_t position;  // and where it was
    };

    const Shape shape_;
    const uint32_t explore_at_insert_;
    std::unique_ptr<Graph> graph_;
    std::atomic<uint32_t> live_{0}, root_{NONE};
    std::atomic<bool> has_many_{false}, walks_by_codes_{true};
    std::mutex entry_mutex_, fineness_mutex_, tree_mutex_;
    Fineness fineness_;
    // The writer's own.
    std::vector<uint64_t> dead_;  // a bitmap of nodes that were removed
    std::deque<Grave> graves_;    // of those that links may still lead to, in the order of their removal
    uint64_t round_ = 0;
    uint32_t position_ = 0;
};

}  // namespace paperwasp::hnsw
