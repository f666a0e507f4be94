// Which documents an exact search for nearest neighbours finds (nearest_hits.hpp). The plain twin is in tests/oracles/nearest_hits.py.
//
// `distances` are those of the next documents, `heap` has the least distances of the hits before them. Returns the places of the hits,
// rising, and how much of the heap is held now.
#include "vectors/nearest_hits.hpp"

#include <algorithm>
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
    NearestHits found(best, size, held, threshold);
    for (size_t i = 0; i < count; ++i)
        if (found.add(distance[i])) hits->push_back(static_cast<uint32_t>(i));
    return nb::make_tuple(own(std::move(hits)), found.held());
}

}  // namespace

void bind_nearest_hits(nb::module_& m) {
    m.def("nearest_hits", &nearest_hits, nb::arg("distances").noconvert(), nb::arg("threshold"), nb::arg("heap").noconvert(),
          nb::arg("held"));
}

}  // namespace paperwasp
