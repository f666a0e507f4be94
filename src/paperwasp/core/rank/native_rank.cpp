// Distances between two terms in a field. Its twin and specification is tests/oracles/native_rank.py.
//
// offsets: n + 1 rising uint32; hit i has positions[offsets[i]] up to positions[offsets[i + 1]], rising. A hit without one of the terms
// has none. Both outputs have n values and are written for every hit. One merge over the two lists of a hit; nothing is allocated.
#include <stdexcept>

#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t UNDEFINED = 1000000;

void check_lists(const In<uint32_t>& offsets, const In<uint32_t>& positions, size_t hits) {
    if (offsets.shape(0) != hits + 1) throw std::invalid_argument("offsets do not fit the number of hits");
    for (size_t i = 0; i < hits; ++i)
        if (offsets.data()[i] > offsets.data()[i + 1]) throw std::invalid_argument("offsets do not rise");
    if (offsets.data()[hits] > positions.shape(0)) throw std::invalid_argument("offsets reach past the positions");
}

void term_distance(In<uint32_t> first_offsets, In<uint32_t> first_positions, uint32_t first_length, In<uint32_t> second_offsets,
                   In<uint32_t> second_positions, Out<uint32_t> distances, Out<uint32_t> places) {
    const size_t hits = distances.shape(0);
    if (places.shape(0) != hits || first_length == 0) throw std::invalid_argument("the outputs do not fit");
    check_lists(first_offsets, first_positions, hits);
    check_lists(second_offsets, second_positions, hits);

    Clock().spend(static_cast<int64_t>(first_positions.shape(0) + second_positions.shape(0) + hits));
    const GilRelease release(is_much(2 * (first_positions.shape(0) + second_positions.shape(0) + hits)));
    const uint64_t to_last_word = first_length - 1;
    for (size_t hit = 0; hit < hits; ++hit) {
        const uint32_t* a = first_positions.data() + first_offsets.data()[hit];
        const uint32_t* const a_end = first_positions.data() + first_offsets.data()[hit + 1];
        const uint32_t* b = second_positions.data() + second_offsets.data()[hit];
        const uint32_t* const b_end = second_positions.data() + second_offsets.data()[hit + 1];
        uint32_t best = UNDEFINED, place = UNDEFINED;
        while (a != a_end && b != b_end) {
            const uint64_t last_word = *a + to_last_word;
            if (last_word >= *b) {
                ++b;
                continue;
            }
            if (*b - last_word < best) {
                best = static_cast<uint32_t>(*b - last_word);
                place = *a;
            }
            ++a;
        }
        distances.data()[hit] = best;
        places.data()[hit] = place;
    }
}

}  // namespace

void bind_native_rank(nb::module_& m) {
    m.def("term_distance", &term_distance, nb::arg("first_offsets").noconvert(), nb::arg("first_positions").noconvert(),
          nb::arg("first_length"), nb::arg("second_offsets").noconvert(), nb::arg("second_positions").noconvert(),
          nb::arg("distances").noconvert(), nb::arg("places").noconvert(),
          "The least distance from a term to a later one in each hit. Twin: tests.oracles.native_rank.term_distance");
}

}  // namespace paperwasp
