// A graph as plain arrays: see hnsw_saved.cpp.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace paperwasp::hnsw {

struct Saved {
    std::vector<uint64_t> header;
    std::vector<uint8_t> levels;
    std::vector<uint32_t> owners, counts, links, parents;
};

// The same, where somebody else keeps it.
struct SavedView {
    const uint64_t* header;
    size_t header_size;
    const uint8_t* levels;
    const uint32_t* owners;
    size_t nodes;
    const uint32_t* counts;
    size_t counts_size;
    const uint32_t* links;
    size_t links_size;
    const uint32_t* parents;
    size_t parents_size;
};

}  // namespace paperwasp::hnsw
