// The best hits by nativeRank, without scoring all of them.
#pragma once

#include <atomic>
#include <cstdint>
#include <limits>
#include <optional>
#include <vector>

#include "clock.hpp"
#include "index/reader.hpp"
#include "rank/native_query.hpp"

namespace paperwasp {

// Where a term that is no word stands, such as a phrase: document i at positions[offsets[i]..offsets[i + 1]], once at least. Lids rise.
struct NativeFound {
    const uint32_t *lids, *offsets, *positions;
    size_t size;
};

struct NativeHits {
    std::vector<uint32_t> lids;  // best first; of equal scores the lower lid first
    std::vector<double> scores;
    uint64_t searched = 0;  // hits that were scored, or seen not to be among the best: all, unless the time was over before
    double least = 0;       // what is in no list may score as much; -infinity where the time was over
};

// What the best k of several parts of the hits score at least. Any thread may read and raise it.
class NativeFloor {
  public:
    double score() const { return score_.load(std::memory_order_relaxed); }

    void raise(double score) {
        double known = this->score();
        while (score > known && !score_.compare_exchange_weak(known, score, std::memory_order_relaxed)) {
        }
    }

  private:
    std::atomic<double> score_{-std::numeric_limits<double>::infinity()};
};

// The hits whose lids are in [first, last), multiples of 64 unless there are no more; `floor`: of all parts, nullptr: these are all hits.
struct NativePart {
    uint32_t first = 0, last = std::numeric_limits<uint32_t>::max();
    NativeFloor* floor = nullptr;
};

// The best k of the bitmap `hits`, which has `words` 64-bit words and covers every lid. Empty where hits have no upper bound, or, if the
// part is all of them, where fewer than k score more than a document that is in no list does. `found`: for each list its postings, or
// nullptr if the list is a term of the index. nativeAttributeMatch counts as 0. Throws OutOfTime where no hit was scored in time.
std::optional<NativeHits> best_by_native_rank(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found,
                                              const uint64_t* hits, size_t words, uint32_t k, Clock& clock, const NativePart& part = {});

}  // namespace paperwasp
