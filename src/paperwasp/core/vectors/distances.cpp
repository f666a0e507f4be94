// Distances from one vector to the vectors of documents, the least of each document. The plain twin is in tests/oracles/distances.py.
//
// `cells` are vectors of `size` cells, one after another, of the column's type: float, double, int8, or bfloat16 as the upper halves of
// floats. Document i has the vectors rows[i] (offset << 24 | length); one that has none, or none that is a number, gets infinity. `query`
// has the column's type too, bfloat16 widened to float. `vectors` gets the number of the nearest within its document; None: nobody asks.
// What the metrics are: vector_distance.cpp.
#include <algorithm>
#include <limits>
#include <type_traits>

#include "bitmap_fill.hpp"
#include "clock.hpp"
#include "core.hpp"
#include "vectors/vector_distance.hpp"

namespace paperwasp {
namespace {

constexpr double NOTHING = std::numeric_limits<double>::infinity();
constexpr size_t LONGEST_RUN = 1024;  // between two looks at the clock
constexpr size_t MOST_AHEAD_BYTES = 4096;

// How many rows from here on have one vector each, and these one after another.
size_t run_of(const uint64_t* row, size_t count, size_t vectors) {
    constexpr uint64_t NEXT = uint64_t{1} << ROW_LENGTH_BITS;
    if (number_of_elements(row[0]) != 1) return 0;
    size_t run = 1;
    const size_t most = std::min(count, LONGEST_RUN);
    while (run < most && row[run] == row[run - 1] + NEXT) ++run;
    return (row[0] >> ROW_LENGTH_BITS) + run <= vectors ? run : 0;
}

// Asks the memory for the first vector of a row.
template <typename C>
void fetch_vector(const C* cells, uint64_t row, size_t vectors, size_t size) {
    const uint64_t place = row >> ROW_LENGTH_BITS;
    if (place >= vectors) return;
    const char* vector = reinterpret_cast<const char*>(cells + place * size);
    for (size_t at = 0; at < std::min(size * sizeof(C), MOST_AHEAD_BYTES); at += 64) __builtin_prefetch(vector + at);
}

template <typename Q, typename C, typename Raw>
void least(uint32_t metric, In<Q> query, nb::ndarray<const Raw, nb::ndim<2>, nb::c_contig, nb::device::cpu> cells, In<uint64_t> rows,
           Out<double> distances, Out<uint32_t> vectors) {
    const size_t count = rows.shape(0), all = cells.shape(0), size = cells.shape(1);
    if (metric >= METRICS) throw std::invalid_argument("no such metric");
    if (query.shape(0) != size || size == 0) throw std::invalid_argument("a query of another size");
    if (metric == GEODEGREES && size != 2) throw std::invalid_argument("a place has two cells");
    if (distances.shape(0) != count || (vectors.is_valid() && vectors.shape(0) != count))
        throw std::invalid_argument("a distance for each document");
    static_assert(sizeof(C) == sizeof(Raw));
    const C* cell = reinterpret_cast<const C*>(cells.data());
    const uint64_t* row = rows.data();
    double* distance = distances.data();
    uint32_t* vector = vectors.is_valid() ? vectors.data() : nullptr;
    const bool is_finite = metric == HAMMING && std::is_same_v<C, int8_t>;
    const Distance<Q, C> of(metric, query.data(), size);
    Clock clock;
    const size_t ahead = 1 + MOST_AHEAD_BYTES / (size * sizeof(C));  // rows
    const GilRelease release(is_much(count * (size / 8 + 10)));
    for (size_t i = 0; i < count; ++i) {
        if (const size_t run = run_of(row + i, count - i, all); run > 1) {
            clock.spend(static_cast<int64_t>(run * size / 4 + 1));
            of.of_run(cell + (row[i] >> ROW_LENGTH_BITS) * size, run, distance + i);
            if (vector != nullptr) std::fill_n(vector + i, run, 0);
            for (size_t k = i; k < i + run && !is_finite; ++k)
                if (!(distance[k] < NOTHING)) distance[k] = NOTHING;
            i += run - 1;
            continue;
        }
        clock.spend(static_cast<int64_t>(number_of_elements(row[i]) * size / 4 + 1));
        if (i + ahead < count) fetch_vector(cell, row[i + ahead], all, size);
        double best = NOTHING;
        uint32_t which = 0, number = 0;
        any_element(row[i], all, [&](uint64_t place) {
            const double found = of(cell + place * size);
            if (found < best) best = found, which = number;
            ++number;
            return false;
        });
        distance[i] = best;
        if (vector != nullptr) vector[i] = which;
    }
}

template <typename Q, typename C, typename Raw>
void bind_one(nb::module_& m) {
    m.def("least_distances", &least<Q, C, Raw>, nb::arg("metric"), nb::arg("query").noconvert(), nb::arg("cells").noconvert(),
          nb::arg("rows").noconvert(), nb::arg("distances").noconvert(), nb::arg("vectors").noconvert().none());
}

}  // namespace

void bind_distances(nb::module_& m) {
    bind_one<float, float, float>(m);
    bind_one<double, double, double>(m);
    bind_one<int8_t, int8_t, int8_t>(m);
    bind_one<float, Bfloat16, uint16_t>(m);
}

}  // namespace paperwasp
