// Distances of the terms of a query, in their order, from the words of a field, for a block of hits. Twins: tests/oracles/term_order.py.
//
// Terms have lists (offsets[hits + 1], positions), rising in each hit. `lengths` are those of the fields, in words.
#include <algorithm>
#include <vector>

#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

struct List {
    In<uint32_t> offsets, positions;

    List(const nb::handle& o, const nb::handle& p, size_t hits) : offsets(as_given<uint32_t>(o)), positions(as_given<uint32_t>(p)) {
        if (offsets.size() != hits + 1) throw nb::value_error("offsets do not fit the number of hits");
        for (size_t i = 0; i < hits; ++i)
            if (offsets.data()[i] > offsets.data()[i + 1]) throw nb::value_error("offsets must rise");
        if (offsets.data()[hits] > positions.size()) throw nb::value_error("offsets beyond the positions");
    }
    const uint32_t* begin(size_t hit) const { return positions.data() + offsets.data()[hit]; }
    const uint32_t* end(size_t hit) const { return positions.data() + offsets.data()[hit + 1]; }
};

std::vector<List> lists_of(const nb::list& offsets, const nb::list& positions, size_t hits) {
    if (offsets.size() != positions.size()) throw nb::value_error("terms need offsets and positions each");
    std::vector<List> lists;
    for (size_t i = 0; i < offsets.size(); ++i) lists.emplace_back(offsets[i], positions[i], hits);
    return lists;
}

// How the cheapest way from the first terms of the query to the first words of the field goes.
struct Way {
    double cost = 0;
    uint32_t deleted = 0, inserted = 0, replaced = 0;
};

constexpr size_t EDIT_OUTPUTS = 4;
constexpr uint64_t STEPS_OF_HIT = 2000;  // about

// results: cost, deletions, insertions and replacements of each hit. A hit costs terms times words.
void edit_distance(const nb::list& offsets, const nb::list& positions, In<int32_t> lengths, double deletion, double insertion,
                   double replacement, Out<double> results) {
    const size_t hits = lengths.size();
    const std::vector<List> lists = lists_of(offsets, positions, hits);
    if (results.size() != EDIT_OUTPUTS * hits) throw nb::value_error("results that do not fit the hits");
    Clock clock;
    const GilRelease unlocked(is_much(STEPS_OF_HIT * hits));
    std::vector<Way> before, now;
    for (size_t hit = 0; hit < hits; ++hit) {
        const size_t words = static_cast<size_t>(std::max(lengths.data()[hit], 0));
        before.assign(words + 1, Way{});
        for (uint32_t w = 0; w <= words; ++w) before[w] = Way{w * insertion, 0, w, 0};
        now.resize(words + 1);
        for (size_t term = 0; term < lists.size(); ++term) {
            clock.spend(static_cast<int64_t>(4 * words + 4));
            const uint32_t *at = lists[term].begin(hit), *end = lists[term].end(hit);
            now[0] = Way{before[0].cost + deletion, static_cast<uint32_t>(term + 1), 0, 0};
            for (size_t w = 1; w <= words; ++w) {
                if (at != end && *at == w - 1) {
                    now[w] = before[w - 1];
                    ++at;
                    continue;
                }
                const double del = before[w].cost + deletion, ins = now[w - 1].cost + insertion, sub = before[w - 1].cost + replacement;
                const double least = std::min({del, ins, sub});
                now[w] = least == del ? before[w] : least == ins ? now[w - 1] : before[w - 1];
                now[w].cost = least;
                ++(least == del ? now[w].deleted : least == ins ? now[w].inserted : now[w].replaced);
            }
            before.swap(now);
        }
        const Way& way = before[words];
        double* result = results.data() + EDIT_OUTPUTS * hit;
        result[0] = way.cost, result[1] = way.deleted, result[2] = way.inserted, result[3] = way.replaced;
    }
}

// Where terms stand at about the place they have in the query. results: (matches, of which elsewhere, words of the prefix) of each hit.
// A term matches at its first position within half of the shorter text around its number.
void order_matches(const nb::list& offsets, const nb::list& positions, In<int32_t> lengths, uint32_t prefix, Out<double> results) {
    const size_t hits = lengths.size();
    const std::vector<List> lists = lists_of(offsets, positions, hits);
    if (results.size() != 3 * hits) throw nb::value_error("results that do not fit the hits");
    Clock clock;
    const GilRelease unlocked(is_much(STEPS_OF_HIT * hits));
    const uint64_t terms = lists.size();
    for (size_t hit = 0; hit < hits; ++hit) {
        const uint64_t words = static_cast<uint64_t>(std::max(lengths.data()[hit], 0));
        const uint64_t half = std::min(terms, words) / 2 + 1;
        uint32_t matches = 0, elsewhere = 0, same = 0;
        bool all_same = true;
        for (uint64_t term = 0; term < terms; ++term) {
            const uint32_t *begin = lists[term].begin(hit), *end = lists[term].end(hit);
            clock.spend(4 + (end - begin));
            const uint64_t from = term > half ? term - half : 0, to = std::min(words, term + half);
            const uint32_t* at = std::lower_bound(begin, end, from);
            if (at != end && *at <= to) {
                ++matches;
                elsewhere += *at != term;
            }
            all_same = all_same && begin != end && *begin == term && term < std::min<uint64_t>(words, prefix);
            same += all_same;
        }
        double* result = results.data() + 3 * hit;
        result[0] = matches, result[1] = elsewhere, result[2] = same;
    }
}

// The place of one term that is nearest behind a place of another, found in one walk over both, as Vespa walks: where the first
// stands before the other at the start, its first place counts as being 2^32 words behind, and the last place of a walk is not looked at.
// results: (distance, place of the first, place of the other) of each hit; `least` and `most` where there is none.
void reverse_proximity(nb::handle a_offsets, nb::handle a_positions, nb::handle b_offsets, nb::handle b_positions, size_t hits,
                       double least, double most, Out<double> results) {
    const List a(a_offsets, a_positions, hits), b(b_offsets, b_positions, hits);
    if (results.size() != 3 * hits) throw nb::value_error("results that do not fit the hits");
    Clock().spend(static_cast<int64_t>(4 * hits + a.positions.size() + b.positions.size()));
    for (size_t hit = 0; hit < hits; ++hit) {
        const uint32_t *at_a = a.begin(hit), *const end_a = a.end(hit), *at_b = b.begin(hit), *const end_b = b.end(hit);
        double* result = results.data() + 3 * hit;
        result[0] = most, result[1] = least, result[2] = most;
        if (at_a == end_a || at_b == end_b) continue;
        uint32_t place = *at_a, other = *at_b;
        while (at_a != end_a && *at_a < other) ++at_a;
        if (at_a == end_a) continue;
        uint32_t best = place, best_other = other;
        while (at_a != end_a && at_b != end_b) {
            if (*at_b < place) {
                other = *at_b++;
                continue;
            }
            if (place - other < best - best_other) best = place, best_other = other;
            place = *at_a++;
        }
        result[0] = best - best_other, result[1] = best, result[2] = best_other;
    }
}

}  // namespace

void bind_term_order(nb::module_& m) {
    m.def("edit_distance", &edit_distance, nb::arg("offsets"), nb::arg("positions"), nb::arg("lengths").noconvert(), nb::arg("deletion"),
          nb::arg("insertion"), nb::arg("replacement"), nb::arg("results").noconvert());
    m.def("order_matches", &order_matches, nb::arg("offsets"), nb::arg("positions"), nb::arg("lengths").noconvert(), nb::arg("prefix"),
          nb::arg("results").noconvert());
    m.def("reverse_proximity", &reverse_proximity, nb::arg("a_offsets"), nb::arg("a_positions"), nb::arg("b_offsets"),
          nb::arg("b_positions"), nb::arg("hits"), nb::arg("least"), nb::arg("most"), nb::arg("results").noconvert());
}

}  // namespace paperwasp
