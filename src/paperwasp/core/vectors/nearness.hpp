// What is computed of two vectors (vector_distance.hpp) as people see it: a distance, and the closeness that hits are ranked by.
#pragma once

#include <cstddef>
#include <cstdint>

#include "vectors/hnsw_space.hpp"

namespace paperwasp {

// By the names of distance metrics in schemas: several of them compute the same.
enum class Nearness { EUCLIDEAN, ANGULAR, DOTPRODUCT, PRENORMALIZED_ANGULAR, HAMMING };

// The product of a query's vector with itself; of one without length 1.
double norm_of_query(hnsw::Cell cell, const void* query, size_t dimensions);

// The angle of what is computed for ANGULAR, in radians.
double angle_of(double computed);

double distance_of(Nearness nearness, double computed, double norm);

// Of a distance; of DOTPRODUCT the product itself.
double closeness_of(Nearness nearness, double distance);

// The greatest that is computed where the distance is no more than a threshold.
double computed_limit(Nearness nearness, double threshold, double norm);

}  // namespace paperwasp
