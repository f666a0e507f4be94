// Distances between two vectors, as the exact search and the graph compute them: see vector_distance.cpp.
#pragma once

#include <cstddef>
#include <cstdint>

namespace paperwasp {

enum Metric : uint32_t { EUCLIDEAN, ANGULAR, PRODUCT, HAMMING, GEODEGREES, METRICS };

// The upper half of a float.
struct Bfloat16 {
    uint16_t bits;
};

// From one query to vectors of a column: Q the query's type, C the column's. Keeps the query's address.
template <typename Q, typename C>
class Distance {
  public:
    Distance(uint32_t metric, const Q* query, size_t size);
    double operator()(const C* cells) const;
    // The distances of `count` vectors that stand one after another.
    void of_run(const C* cells, size_t count, double* distances) const;

  private:
    uint32_t metric_;
    const Q* query_;
    size_t size_;
    double query_norm_;
};

extern template class Distance<float, float>;
extern template class Distance<double, double>;
extern template class Distance<int8_t, int8_t>;
extern template class Distance<float, Bfloat16>;

}  // namespace paperwasp
