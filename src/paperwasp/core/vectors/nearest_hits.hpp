// Which documents an exact search for nearest neighbours finds, in the order of their lids.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace paperwasp {

// Decides for one document after another whether it is a hit: if its distance is no more than `threshold`, and, once the heap is full, no
// more than the greatest in it, which it then takes the place of. Infinite distances, and what is no number, are never hits. As Vespa's
// ExactNearestNeighborIterator with one thread.
class NearestHits {
  public:
    // heap: the least distances of the hits before: the first `held` of its cells, as a binary heap with the greatest first.
    NearestHits(double* heap, size_t size, size_t held, double threshold) : heap_(heap), size_(size), held_(held), threshold_(threshold) {
        set_limit();
    }

    bool add(double distance) {
        if (!(distance <= limit_) || std::isinf(distance)) return false;
        if (held_ < size_) {
            heap_[held_++] = distance;
            std::push_heap(heap_, heap_ + held_);
        } else if (distance < heap_[0]) {
            std::pop_heap(heap_, heap_ + size_);
            heap_[size_ - 1] = distance;
            std::push_heap(heap_, heap_ + size_);
        }
        set_limit();
        return true;
    }

    size_t held() const { return held_; }

  private:
    void set_limit() { limit_ = held_ == size_ ? std::min(threshold_, heap_[0]) : threshold_; }

    double* const heap_;
    const size_t size_;
    size_t held_;
    const double threshold_;
    double limit_ = 0;
};

}  // namespace paperwasp
