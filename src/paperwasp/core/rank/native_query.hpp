// A query as the kernels of nativeRank take it: fields with their tables, and lists, each of which is one term in one field. The arithmetic
// is here, in the order of operations of the features, so that every kernel has their result to the last bit.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

#include "clock.hpp"
#include "core.hpp"
#include "index/reader.hpp"

namespace paperwasp {

constexpr double NATIVE_SLACK = 1e-9;             // more than what rounding makes of a bound
constexpr uint32_t UNDEFINED_DISTANCE = 1000000;  // where two terms do not both occur in this order
constexpr size_t MOST_NATIVE_LISTS = 1u << 14;

struct NativeTable {
    const double* values;
    size_t last;
    double most, least;
    bool is_positive;  // whether no value is negative, and all are finite

    explicit NativeTable(const In<double>& given) : values(given.data()), last(given.size() - 1) {
        const auto [low, high] = std::minmax_element(values, values + given.size());
        least = *low;
        most = *high;
        is_positive = std::all_of(values, values + last + 1, [](double value) { return value >= 0 && std::isfinite(value); });
    }
    double operator[](uint64_t place) const { return values[std::min<uint64_t>(place, last)]; }
};

struct NativeField {
    uint32_t index;
    double weight, first_importance, highest, forward_importance, near_highest, pairs_weight;
    int64_t fixed_length, least_length;  // fixed_length < 0: as long as the field is
    NativeTable first, count, forward, reverse;
    size_t first_pair = 0, pairs = 0;

    // What occurrences are worth, where `early` is what the first of them is.
    double worth(double early, double often) const {
        return (early * first_importance + often * (1.0 - first_importance)) * weight / highest;
    }
    double nearness(double ahead, double behind) const { return ahead * forward_importance + behind * (1.0 - forward_importance); }
    double far() const { return nearness(forward[UNDEFINED_DISTANCE - 1], reverse[UNDEFINED_DISTANCE - 1]); }
    double nearest() const { return nearness(forward.most, reverse.most); }
    // Of an occurrence at a place in a field of this length, which is the first.
    double early(uint32_t place, uint64_t length) const { return first[uint64_t{place} * first.last / (length > 1 ? length - 1 : 1)]; }
    double often(uint32_t frequency, uint64_t length) const {
        return count[uint64_t{frequency} * count.last / std::max<uint64_t>(length, 1)];
    }
    int64_t length_of(int64_t own) const { return std::max(fixed_length >= 0 ? fixed_length : own, least_length); }
    bool is_positive() const;
};

// Where a term stands in a hit.
struct NativeEntry {
    uint32_t frequency;
    uint32_t from;       // the first of its positions
    const uint8_t* run;  // the packed positions of a block; nullptr: `from` is counted in the positions given
};

struct NativeList {
    uint32_t field, term, owner, length;
    const uint32_t *offsets = nullptr, *positions = nullptr;  // given in place of postings

    uint32_t position(const NativeEntry& entry, uint32_t k) const {
        return entry.run == nullptr ? positions[entry.from + k] : run_value(entry.run + 1, entry.run[0], uint64_t{entry.from} + k);
    }
};

struct NativePair {
    uint32_t first, second;  // lists of one field
    double weight;
};

struct NativeWeights {
    double match_divisor, pairs_divisor, match, proximity, attribute, divisor;
};

// What kernels are given of a query, but for what stands in place of postings.
struct NativeQuery {
    std::vector<NativeField> fields;
    std::vector<NativeList> lists;  // those of a term follow each other
    std::vector<double> term_weights;
    std::vector<NativePair> pairs;  // of one field after those of another
    NativeWeights weights;
    double attribute = 0;  // nativeAttributeMatch of hits of which nothing else is known

    // Whether nothing counts negatively, so that the highest values are bounds.
    bool is_positive() const;

    double together(double match, double proximity, double attribute) const {
        double score = 0.0;
        if (weights.match != 0) score = score + match * weights.match;
        if (weights.proximity != 0) score = score + proximity * weights.proximity;
        if (weights.attribute != 0) score = score + attribute * weights.attribute;
        return score / weights.divisor;
    }

    // nativeFieldMatch. entry_of(list): the entry of the hit; early(field, list, entry, length): what its first occurrence is worth;
    // length_of(field): of the hit.
    template <typename EntryOf, typename LengthOf, typename Early>
    double matching(EntryOf entry_of, LengthOf length_of, Early early) const {
        double score = 0.0;
        for (size_t l = 0; l < lists.size();) {
            const uint32_t owner = lists[l].owner;
            double of_term = 0.0;
            for (; l < lists.size() && lists[l].owner == owner; ++l) {
                const NativeEntry& found = entry_of(l);
                if (found.frequency == 0) continue;
                const NativeField& field = fields[lists[l].field];
                const auto length = static_cast<uint64_t>(length_of(lists[l].field));
                of_term += field.worth(early(field, l, found, length), field.often(found.frequency, length));
            }
            if (term_weights[owner] != 0) score += of_term * term_weights[owner];
        }
        return weights.match_divisor > 0 ? score / weights.match_divisor : score;
    }

    // nativeProximity. near_of(field, pair): how near the terms of a pair are.
    template <typename NearOf>
    double nearness(NearOf near_of) const {
        double total = 0.0;
        for (const NativeField& field : fields) {
            if (field.pairs == 0) continue;
            double score = 0.0;
            for (size_t p = field.first_pair; p < field.first_pair + field.pairs; ++p)
                score += near_of(field, pairs[p]) * pairs[p].weight / field.near_highest;
            score *= field.weight;
            total += field.pairs_weight > 0 ? score / field.pairs_weight : score;
        }
        return weights.pairs_divisor > 0 ? total / weights.pairs_divisor : total;
    }
};

// How near the terms of a hit are, by their positions, each of which is read once.
class NativeNearness {
  public:
    template <typename EntryOf>
    double of(const NativeQuery& query, EntryOf entry_of, Clock& clock) {
        cached_.assign(query.lists.size(), Positions{});
        values_.clear();
        return query.nearness([&](const NativeField& field, const NativePair& pair) {
            const NativeEntry &first = entry_of(pair.first), &second = entry_of(pair.second);
            if (first.frequency == 0 || second.frequency == 0) return field.far();
            const NativeList &a = query.lists[pair.first], &b = query.lists[pair.second];
            read(cached_[pair.first], a, first);
            read(cached_[pair.second], b, second);
            clock.spend(static_cast<int64_t>(first.frequency + second.frequency));
            const uint32_t ahead = distance(cached_[pair.first], a.length, cached_[pair.second]);
            const uint32_t behind = distance(cached_[pair.second], b.length, cached_[pair.first]);
            return field.nearness(field.forward[ahead - 1], field.reverse[behind - 1]);
        });
    }

  private:
    struct Positions {
        size_t from = 0, count = 0;  // in values_
    };

    void read(Positions& cached, const NativeList& list, const NativeEntry& found);
    // The least distance from the end of a term to another later in the field.
    uint32_t distance(const Positions& first, uint32_t length, const Positions& second) const;

    std::vector<Positions> cached_;  // by list
    std::vector<uint32_t> values_;
};

// numbers and tables: of each field; lists: FIELD, TERM, OWNER, LENGTH of each; pairs: the numbers of two lists of one field for each,
// those of a field together and fields in their order. The tables must outlive the query. Throws ValueError for what cannot be.
NativeQuery read_native_query(const Reader& reader, const In<double>& numbers, const nb::list& tables, const In<uint32_t>& lists,
                              const In<double>& term_weights, const In<uint32_t>& pairs, const In<double>& pair_weights,
                              const In<double>& weights);

// The fields alone, as `numbers` and `tables` say. `fields`: how many the index has.
std::vector<NativeField> read_native_fields(uint32_t fields, const In<double>& numbers, const nb::list& tables);

// Adds a pair to a query. Pairs are of one field, and fields come in their order. Throws ValueError where they do not.
void add_native_pair(NativeQuery& query, const NativePair& pair);

// Scores hits, whose lids rise; of lists that have positions, there is one for each hit. `floor`: those that do not score more score
// -infinity. The attributes' part is the query's. Throws OutOfTime.
void score_natively(const Reader& reader, const NativeQuery& query, const uint32_t* lids, size_t hits, double floor, double* results,
                    Clock& clock);

// Checks what is given for a list in place of postings: offsets of `hits` documents that rise, within the positions.
void give_positions(NativeList& list, const In<uint32_t>& offsets, const In<uint32_t>& positions, size_t hits);

}  // namespace paperwasp
