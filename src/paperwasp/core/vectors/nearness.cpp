// What is computed of two vectors as people see it: see nearness.hpp. storage/attributes/distances.py does the same for arrays, and calls
// for what is kept here in one place: the angle and the norm, which libraries compute in ways of their own.
#include "vectors/nearness.hpp"

#include <algorithm>
#include <cmath>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

template <typename T>
double norm_of(const T* cells, size_t count) {
    double norm = 0;
    for (size_t i = 0; i < count; ++i) norm += static_cast<double>(cells[i]) * static_cast<double>(cells[i]);
    return norm == 0 ? 1.0 : norm;
}

template <typename T>
double norm_of_array(In<T> cells) {
    return norm_of(cells.data(), cells.size());
}

nb::object angles_of(In<double> computed) {
    auto angles = std::make_unique<std::vector<double>>(computed.size());
    std::transform(computed.data(), computed.data() + computed.size(), angles->begin(), angle_of);
    return own(std::move(angles));
}

}  // namespace

double norm_of_query(hnsw::Cell cell, const void* query, size_t dimensions) {
    switch (cell) {
        case hnsw::FLOAT64:
            return norm_of(static_cast<const double*>(query), dimensions);
        case hnsw::INT8:
            return norm_of(static_cast<const int8_t*>(query), dimensions);
        default:
            return norm_of(static_cast<const float*>(query), dimensions);
    }
}

double angle_of(double computed) { return std::acos(std::min(std::max(1.0 - computed, -1.0), 1.0)); }

double distance_of(Nearness nearness, double computed, double norm) {
    switch (nearness) {
        case Nearness::EUCLIDEAN:
            return std::sqrt(computed);
        case Nearness::ANGULAR:
            return angle_of(computed);
        case Nearness::PRENORMALIZED_ANGULAR:
            return 1.0 - std::min(std::max(-computed / norm, -1.0), 1.0);
        default:
            return computed;
    }
}

double closeness_of(Nearness nearness, double distance) { return nearness == Nearness::DOTPRODUCT ? -distance : 1.0 / (1.0 + distance); }

double computed_limit(Nearness nearness, double threshold, double norm) {
    switch (nearness) {
        case Nearness::EUCLIDEAN:
            return threshold * threshold;
        case Nearness::ANGULAR:
            return threshold < 0 ? 0.0 : threshold > M_PI ? 2.0 : 1.0 - std::cos(threshold);
        case Nearness::PRENORMALIZED_ANGULAR:
            return -(1.0 - threshold) * norm;
        default:
            return threshold;
    }
}

void bind_nearness(nb::module_& m) {
    m.def("norm_of_query", &norm_of_array<float>, nb::arg("cells").noconvert());
    m.def("norm_of_query", &norm_of_array<double>, nb::arg("cells").noconvert());
    m.def("norm_of_query", &norm_of_array<int8_t>, nb::arg("cells").noconvert(), "The product of a vector with itself; 1 in place of 0.");
    m.def("angles_of", &angles_of, nb::arg("computed").noconvert(), "The angles whose cosines are 1 less these numbers, in radians.");
}

}  // namespace paperwasp
