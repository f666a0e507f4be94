// What terms add to the bm25 of a block of documents. The plain twin is in tests/oracles/bm25.py.
//
// The operations are in Vespa's order, so the result is the same number that the twin and core/rank/top_k.cpp find.
#include "rank/bm25.hpp"

#include <nanobind/stl/pair.h>
#include <nanobind/stl/vector.h>

#include <utility>
#include <vector>

#include "clones.hpp"
#include "core.hpp"
#include "index/visit_lids.hpp"

namespace paperwasp {
namespace {

PAPERWASP_CLONES
void add(const int32_t* occurrences, const int32_t* lengths, size_t n, double numerator, double constant, double slope, double average,
         double* scores) {
    for (size_t i = 0; i < n; ++i) {
        const double f = occurrences[i], saturation = constant + slope * (lengths[i] / average);
        scores[i] += occurrences[i] > 0 ? f * numerator / (f + saturation) : 0.0;
    }
}

void add_bm25(In<int32_t> occurrences, In<int32_t> lengths, double weight, double k1, double b, double average_length, Out<double> scores) {
    if (lengths.size() != occurrences.size() || scores.size() != occurrences.size())
        throw nb::value_error("one length and score for each document");
    add(occurrences.data(), lengths.data(), occurrences.size(), weight * (k1 + 1), k1 * (1 - b), k1 * b, average_length, scores.data());
}

void add_bm25_of_array(const Reader& reader, uint32_t field, const std::vector<std::pair<uint32_t, double>>& terms, double k1, double b,
                       double average_length, In<uint32_t> lids, Out<double> scores) {
    check_field(reader, field);
    const size_t n = lids.size();
    if (scores.size() != n) throw nb::value_error("one score for each document");
    const GilRelease unlocked(is_much(STEPS_OF_LID * n * (terms.size() + 1)));
    add_bm25_of(reader, field, terms, k1, b, average_length, lids.data(), n, scores.data());
}

}  // namespace

void add_bm25_of(const Reader& reader, uint32_t field, const std::vector<std::pair<uint32_t, double>>& terms, double k1, double b,
                 double average_length, const uint32_t* lids, size_t n, double* scores) {
    std::vector<int32_t> lengths(n), occurrences(n);
    read_lengths(reader, field, lids, n, lengths.data());
    for (const auto& [term, weight] : terms) {
        read_occurrences(reader, field, term, lids, n, occurrences.data());
        add(occurrences.data(), lengths.data(), n, weight * (k1 + 1), k1 * (1 - b), k1 * b, average_length, scores);
    }
}

void bind_bm25(nb::module_& m) {
    m.def("add_bm25", &add_bm25, nb::arg("occurrences"), nb::arg("lengths"), nb::arg("weight"), nb::arg("k1"), nb::arg("b"),
          nb::arg("average_length"), nb::arg("scores").noconvert(),
          "Adds to the score of each document what a term of this weight (its idf) adds that occurs so often in a field of this length (in"
          " tokens): weight · f · (k1 + 1) / (f + k1 · (1 − b + b · length / average)), and nothing where it does not occur.");
    m.def("add_bm25_of", &add_bm25_of_array, nb::arg("reader"), nb::arg("field"), nb::arg("terms"), nb::arg("k1"), nb::arg("b"),
          nb::arg("average_length"), nb::arg("lids").noconvert(), nb::arg("scores").noconvert(),
          "The same for terms of the index, (number, weight), one after another, whose occurrences and lengths are read for rising lids.");
}

}  // namespace paperwasp
