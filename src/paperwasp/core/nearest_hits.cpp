// Which documents an exact search for nearest neighbours finds, in the order of their lids. The plain twin is in nearest_hits.py.
//
// `distances` are those of the next documents, `heap` has the least distances of the hits before them: the first `held` of its cells, as a
// binary heap with the greatest first. A document is a hit if its distance is no more than `threshold`, and, once the heap is full, no
// more than the greatest in it, which it then takes the place of. Infinite distances, and what is no number, are never hits. Returns the
// places of the hits, rising, and how much of the heap is held now. As Vespa's ExactNearestNeighborIterator with one thread.
#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

nb::tuple nearest_hits(In<double> distances, double threshold, Out<double> heap, uint64_t held) {
    const size_t count = distances.shape(0), size = heap.shape(0);
    if (held > size || size == 0) throw std::invalid_argument("a heap that holds more than it can");
    const double* distance = distances.data();
    double* best = heap.data();
    if (!std::is_heap(best, best + held)) throw std::invalid_argument("the distances are no heap");
    Clock clock;
    clock.spend(static_cast<int64_t>(count));
    auto hits = std::make_unique<std::vector<uint32_t>>();
    double limit = held == size ? std::min(threshold, best[0]) : threshold;
    for (size_t i = 0; i < count; ++i) {
        const double found = distance[i];
        if (!(found <= limit) || std::isinf(found)) continue;
        hits->push_back(static_cast<uint32_t>(i));
        if (held < size) {
            best[held++] = found;
            std::push_heap(best, best + held);
        } else if (found < best[0]) {
            std::pop_heap(best, best + size);
            best[size - 1] = found;
            std::push_heap(best, best + size);
        }
        if (held == size) limit = std::min(threshold, best[0]);
    }
    return nb::make_tuple(own(std::move(hits)), held);
}

}  // namespace

void bind_nearest_hits(nb::module_& m) {
    m.def("nearest_hits", &nearest_hits, nb::arg("distances").noconvert(), nb::arg("threshold"), nb::arg("heap").noconvert(),
          nb::arg("held"));
}

}  // namespace paperwasp
