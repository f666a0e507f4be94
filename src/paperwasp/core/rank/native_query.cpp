// What the kernels of nativeRank are given: see native_query.hpp.
#include "rank/native_query.hpp"

#include <stdexcept>

namespace paperwasp {
namespace {

// The numbers of a field, as they stand in `numbers`.
enum FieldNumber : size_t {
    INDEX,
    WEIGHT,
    FIRST_IMPORTANCE,
    HIGHEST,
    FIXED_LENGTH,
    LEAST_LENGTH,
    FORWARD_IMPORTANCE,
    NEAR_HIGHEST,
    PAIRS_WEIGHT,
    FIELD_NUMBERS
};
constexpr size_t FIELD_TABLES = 4;

}  // namespace

bool NativeField::is_positive() const {
    const auto share = [](double value) { return value >= 0 && value <= 1; };
    return weight >= 0 && share(first_importance) && share(forward_importance) && highest > 0 && near_highest > 0 && pairs_weight >= 0 &&
           first.is_positive && count.is_positive && forward.is_positive && reverse.is_positive;
}

bool NativeQuery::is_positive() const {
    const auto is_weight = [](double weight) { return weight >= 0 && std::isfinite(weight); };
    return is_weight(weights.match) && is_weight(weights.proximity) && weights.divisor > 0 &&
           std::all_of(fields.begin(), fields.end(), [](const NativeField& field) { return field.is_positive(); }) &&
           std::all_of(term_weights.begin(), term_weights.end(), is_weight) &&
           std::all_of(pairs.begin(), pairs.end(), [&](const NativePair& pair) { return is_weight(pair.weight); });
}

void NativeNearness::read(Positions& cached, const NativeList& list, const NativeEntry& found) {
    if (cached.count > 0) return;
    cached = {values_.size(), found.frequency};
    values_.resize(values_.size() + found.frequency);
    for (uint32_t k = 0; k < found.frequency; ++k) values_[cached.from + k] = list.position(found, k);
}

uint32_t NativeNearness::distance(const Positions& first, uint32_t length, const Positions& second) const {
    const uint32_t *a = values_.data() + first.from, *const a_end = a + first.count;
    const uint32_t *b = values_.data() + second.from, *const b_end = b + second.count;
    uint64_t best = UNDEFINED_DISTANCE;
    while (a != a_end && b != b_end) {
        const uint64_t last_word = uint64_t{*a} + length - 1;
        if (last_word >= *b) {
            ++b;
            continue;
        }
        best = std::min(best, *b - last_word);
        ++a;
    }
    return static_cast<uint32_t>(best);
}

std::vector<NativeField> read_native_fields(uint32_t count_of_index, const In<double>& numbers, const nb::list& tables) {
    const size_t count = numbers.size() / FIELD_NUMBERS;
    if (numbers.size() != count * FIELD_NUMBERS || tables.size() != count * FIELD_TABLES)
        throw nb::value_error("the numbers and tables do not match the number of fields");
    std::vector<NativeField> fields;
    for (size_t f = 0; f < count; ++f) {
        const double* n = numbers.data() + f * FIELD_NUMBERS;
        const auto table = [&](size_t which) {
            const auto values = as_given<double>(tables[f * FIELD_TABLES + which]);
            if (values.size() == 0) throw nb::value_error("a table has no values");
            return NativeTable(values);
        };
        for (const size_t length : {FIXED_LENGTH, LEAST_LENGTH})
            if (!(n[length] >= -1 && n[length] <= 0x7FFFFFFF)) throw nb::value_error("a length is not to be counted");
        if (!(n[INDEX] >= 0 && n[INDEX] < count_of_index)) throw std::invalid_argument("no such field");
        fields.push_back({static_cast<uint32_t>(n[INDEX]), n[WEIGHT], n[FIRST_IMPORTANCE], n[HIGHEST], n[FORWARD_IMPORTANCE],
                          n[NEAR_HIGHEST], n[PAIRS_WEIGHT], static_cast<int64_t>(n[FIXED_LENGTH]), static_cast<int64_t>(n[LEAST_LENGTH]),
                          table(0), table(1), table(2), table(3)});
    }
    return fields;
}

NativeQuery read_native_query(const Reader& reader, const In<double>& numbers, const nb::list& tables, const In<uint32_t>& lists,
                              const In<double>& term_weights, const In<uint32_t>& pairs, const In<double>& pair_weights,
                              const In<double>& weights) {
    NativeQuery query;
    query.fields = read_native_fields(reader.fields, numbers, tables);
    if (lists.size() % 4 != 0 || lists.size() / 4 > MOST_NATIVE_LISTS || pairs.size() != 2 * pair_weights.size() || weights.size() != 6)
        throw nb::value_error("the arrays do not fit");
    for (size_t l = 0; l < lists.size() / 4; ++l) {
        const uint32_t* n = lists.data() + 4 * l;
        if (n[0] >= query.fields.size() || n[2] >= term_weights.size() || n[3] == 0) throw nb::value_error("a list of no field or no term");
        query.lists.push_back({n[0], n[1], n[2], n[3]});
    }
    for (size_t p = 0; p < pair_weights.size(); ++p)
        add_native_pair(query, {pairs.data()[2 * p], pairs.data()[2 * p + 1], pair_weights.data()[p]});
    query.term_weights.assign(term_weights.data(), term_weights.data() + term_weights.size());
    const double* w = weights.data();
    query.weights = {w[0], w[1], w[2], w[3], w[4], w[5]};
    return query;
}

void add_native_pair(NativeQuery& query, const NativePair& pair) {
    if (pair.first >= query.lists.size() || pair.second >= query.lists.size()) throw nb::value_error("no such list");
    const uint32_t f = query.lists[pair.first].field;
    const uint32_t before = query.pairs.empty() ? 0 : query.lists[query.pairs.back().first].field;
    if (f != query.lists[pair.second].field || f < before) throw nb::value_error("a pair is of one field, and fields are in order");
    if (query.fields[f].pairs++ == 0) query.fields[f].first_pair = query.pairs.size();
    query.pairs.push_back(pair);
}

void give_positions(NativeList& list, const In<uint32_t>& offsets, const In<uint32_t>& positions, size_t hits) {
    if (offsets.size() != hits + 1 || offsets.data()[hits] > positions.size())
        throw nb::value_error("the offsets do not fit the hits or the positions");
    for (size_t i = 0; i < hits; ++i)
        if (offsets.data()[i] > offsets.data()[i + 1]) throw nb::value_error("offsets do not rise");
    list.offsets = offsets.data();
    list.positions = positions.data();
}

}  // namespace paperwasp
