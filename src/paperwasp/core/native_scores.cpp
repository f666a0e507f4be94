// nativeRank of a block of hits: nativeFieldMatch and nativeProximity from the postings, and what the query computes of attributes beside
// them. Its twin and specification is core/native_scores.py; the features of the same names say what the numbers are.
//
// A list is one term in one field: its postings, or its positions in each hit where more than postings make it. Lists are read once, in
// runs of CHUNK hits: how often and where each stands. Then each hit is scored, in the order of operations of the features, so that the
// result is theirs to the last bit.
//
// Hits that cannot score more than `floor` need no positions: a bound follows from which lists a hit is in, and a closer one from how often
// terms occur and how long the fields are. Their score is -infinity. Bounds take the highest value of each table, and are only used where
// nothing counts negatively. Few sets of lists are there, so that the first bound is computed once for each.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <vector>

#include "arrays.hpp"
#include "clock.hpp"
#include "reader.hpp"

namespace paperwasp {
namespace {

constexpr size_t CHUNK = 512;
constexpr size_t MOST_LISTS = 1u << 14;
constexpr uint32_t UNDEFINED = 1000000;  // distance where two terms do not both occur in this order
constexpr double SLACK = 1e-9;           // more than what rounding makes of a bound
constexpr size_t MASK_BITS = 64;         // lists of which a hit's set is one word
constexpr size_t BOUNDS = 256;           // sets of lists whose bounds are kept; a power of two

struct Table {
    const double* values;
    size_t last;
    double most, least;

    explicit Table(const In<double>& given) : values(given.data()), last(given.size() - 1) {
        const auto [low, high] = std::minmax_element(values, values + given.size());
        least = *low;
        most = *high;
    }
    double operator[](uint64_t place) const { return values[std::min<uint64_t>(place, last)]; }
};

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

struct Field {
    uint32_t index;
    double weight, first_importance, highest, forward_importance, near_highest, pairs_weight;
    int64_t fixed_length, least_length;  // fixed_length < 0: as long as the field is
    Table first, count, forward, reverse;
    size_t first_pair = 0, pairs = 0;

    // What occurrences are worth, where `early` is what the first of them is.
    double worth(double early, double often) const {
        return (early * first_importance + often * (1.0 - first_importance)) * weight / highest;
    }
    double nearness(double ahead, double behind) const { return ahead * forward_importance + behind * (1.0 - forward_importance); }
    bool is_positive() const {
        const auto share = [](double value) { return value >= 0 && value <= 1; };
        return weight >= 0 && share(first_importance) && share(forward_importance) && highest > 0 && near_highest > 0 &&
               pairs_weight >= 0 && std::min({first.least, count.least, forward.least, reverse.least}) >= 0;
    }
};

// Where a term stands in a hit.
struct Entry {
    uint32_t frequency;
    uint32_t from;       // the first of its positions
    const uint8_t* run;  // the packed positions of a block; nullptr: `from` is counted in the positions given
};

struct List {
    uint32_t field, term, owner, length;
    const uint32_t *offsets = nullptr, *positions = nullptr;  // given
    Cursor cursor;
    size_t segment = 0;  // that the cursor is of; NONE: there are no postings in it
    bool is_open = false;
};

struct Pair {
    uint32_t first, second;
    double weight;
};

struct Weights {
    double match_divisor, pairs_divisor, match, proximity, attribute, divisor;
};

class NativeScores {
  public:
    std::vector<Field> fields;
    std::vector<List> lists;
    std::vector<double> term_weights;
    std::vector<Pair> pairs;  // of one field after those of another
    Weights weights;
    const double *near = nullptr, *attribute = nullptr;  // of each hit; nullptr: `near` is computed here, `attribute` is 0
    double floor;

    void run(const Reader& reader, const uint32_t* lids, size_t hits, double* results, Clock& clock) {
        prepare();
        for (size_t from = 0; from < hits; from += CHUNK) {
            const size_t count = std::min(CHUNK, hits - from);
            clock.spend(static_cast<int64_t>(count * 8 * (1 + lists.size())));
            read_lengths(reader, lids + from, count);
            std::fill(masks_.begin(), masks_.end(), 0);
            for (size_t l = 0; l < lists.size(); ++l) read_list(reader, lids + from, from, count, l);
            for (size_t i = 0; i < count; ++i) results[from + i] = score(i, from + i, clock);
        }
    }

  private:
    void prepare() {
        entries_.resize(lists.size() * CHUNK);
        lengths_.resize(fields.size() * CHUNK);
        cached_.resize(lists.size());
        masks_.resize(CHUNK);
        bool is_positive = weights.match >= 0 && weights.proximity >= 0 && weights.divisor > 0;
        for (const Field& field : fields) is_positive = is_positive && field.is_positive();
        for (double weight : term_weights) is_positive = is_positive && weight >= 0;
        for (const Pair& pair : pairs) is_positive = is_positive && pair.weight >= 0;
        prunes_ = is_positive && floor > -std::numeric_limits<double>::infinity();
        prunes_by_mask_ = prunes_ && lists.size() <= MASK_BITS;
        if (prunes_by_mask_) bounds_.assign(BOUNDS, Bound{});
        for (const List& list : lists) {
            const Field& field = fields[list.field];
            const double of_term = field.first_importance * field.weight / field.highest * term_weights[list.owner];
            early_weights_.push_back(weights.match_divisor > 0 ? of_term / weights.match_divisor : of_term);
        }
    }

    void read_lengths(const Reader& reader, const uint32_t* lids, size_t count) {
        for (size_t f = 0; f < fields.size(); ++f) {
            int64_t* lengths = lengths_.data() + f * CHUNK;
            std::fill(lengths, lengths + count, fields[f].fixed_length >= 0 ? fields[f].fixed_length : 0);
            if (fields[f].fixed_length < 0) {
                size_t i = 0;
                auto segment = segment_of(reader, lids[0]);
                for (; segment != reader.segments.end() && i < count; ++segment) {
                    const FieldIndex& field_index = segment->field_indexes[fields[f].index];
                    for (; i < count && lids[i] < segment->base + segment->documents; ++i)
                        if (field_index.header != nullptr && lids[i] >= segment->base)
                            lengths[i] = field_index.field_lengths[lids[i] - segment->base];
                }
            }
            for (size_t i = 0; i < count; ++i) lengths[i] = std::max(lengths[i], fields[f].least_length);
        }
    }

    static std::vector<Segment>::const_iterator segment_of(const Reader& reader, uint32_t lid) {
        return std::upper_bound(reader.segments.begin(), reader.segments.end(), lid,
                                [](uint32_t at, const Segment& segment) { return at < segment.base + segment.documents; });
    }

    void read_list(const Reader& reader, const uint32_t* lids, size_t begin, size_t count, size_t number) {
        List& list = lists[number];
        Entry* entries = entries_.data() + number * CHUNK;
        std::fill(entries, entries + count, Entry{0, 0, nullptr});
        if (list.offsets != nullptr) {
            for (size_t i = 0; i < count; ++i) {
                entries[i] = {list.offsets[begin + i + 1] - list.offsets[begin + i], list.offsets[begin + i], nullptr};
                if (entries[i].frequency > 0) masks_[i] |= mask_of(number);
            }
            return;
        }
        const uint32_t field = fields[list.field].index;
        for (size_t i = 0; i < count && list.segment < reader.segments.size();) {
            const Segment& segment = reader.segments[list.segment];
            const uint32_t end = segment.base + segment.documents;
            if (lids[i] >= end) {
                ++list.segment;
                list.is_open = false;
                continue;
            }
            const size_t to = static_cast<size_t>(std::lower_bound(lids + i, lids + count, end) - lids);
            if (!list.is_open) {
                const FieldIndex& field_index = segment.field_indexes[field];
                const uint32_t place = field_index.header != nullptr ? field_index.find(list.term) : NO_INDEX;
                if (place == NO_INDEX) {
                    i = to;
                    continue;
                }
                list.cursor = Cursor(field_index, place);
                list.is_open = true;
            }
            while (i < to && lids[i] < segment.base) ++i;
            while (i < to && !list.cursor.exhausted()) i = read_block(list.cursor, lids, i, to, segment.base, entries, mask_of(number));
            i = to;
        }
    }

    static uint64_t mask_of(size_t list) { return uint64_t{1} << (list % MASK_BITS); }

    // Reads what the block with lids[i], or the next one, has of lids[i..to); returns the first lid beyond it.
    size_t read_block(Cursor& cursor, const uint32_t* lids, size_t i, size_t to, uint32_t base, Entry* entries, uint64_t mask) {
        cursor.shallow_seek(lids[i] - base);
        if (cursor.exhausted()) return to;
        const uint32_t last = cursor.last_of(cursor.block()), n = cursor.count();
        const uint32_t *documents = cursor.documents(), *frequencies = cursor.frequencies(), *starts = cursor.occurrence_starts();
        const uint8_t* run = cursor.position_run();
        uint32_t at = count_below(documents, lids[i] - base);
        for (; i < to && lids[i] - base <= last; ++i) {
            const uint32_t document = lids[i] - base;
            while (at < n && documents[at] < document) ++at;
            if (at == n || documents[at] != document) continue;
            entries[i] = {frequencies[at], starts[at], run};
            masks_[i] |= mask;
        }
        return i;
    }

    const Entry& entry(size_t list, size_t i) const { return entries_[list * CHUNK + i]; }

    uint32_t position(const List& list, const Entry& entry, uint32_t k) const {
        return entry.run == nullptr ? list.positions[entry.from + k] : run_value(entry.run + 1, entry.run[0], uint64_t{entry.from} + k);
    }

    double score(size_t i, size_t hit, Clock& clock) {
        if (prunes_ && cannot_enter(i, hit)) return -std::numeric_limits<double>::infinity();
        const double match = matching(i, [this](const Field& field, const List& list, const Entry& entry, uint64_t length) {
            return early(field, list, entry, length);
        });
        return together(match, near != nullptr ? near[hit] : nearness(i, clock), hit);
    }

    // Whether a hit scores no more than the floor, by bounds of which each costs more than the one before.
    bool cannot_enter(size_t i, size_t hit) {
        double nearest;
        if (prunes_by_mask_) {
            const Bound& bound = bound_of(masks_[i], i);
            nearest = near != nullptr ? near[hit] : bound.near;
            if (is_below(bound.match, nearest, hit)) return true;
        } else {
            nearest = near != nullptr ? near[hit] : nearness_bound(i);
        }
        double match = matching(i, [](const Field& field, const List&, const Entry&, uint64_t) { return field.first.most; });
        if (is_below(match, nearest, hit)) return true;
        const double rounding = SLACK * together(match, nearest, hit);
        for (size_t l = 0; l < lists.size(); ++l) {
            const Entry& found = entry(l, i);
            if (found.frequency == 0) continue;
            const Field& field = fields[lists[l].field];
            const auto length = static_cast<uint64_t>(lengths_[lists[l].field * CHUNK + i]);
            match -= (field.first.most - early(field, lists[l], found, length)) * early_weights_[l];
            if (together(match, nearest, hit) + rounding <= floor) return true;
        }
        return false;
    }

    // What the first occurrence is worth.
    double early(const Field& field, const List& list, const Entry& entry, uint64_t length) const {
        return field.first[uint64_t{position(list, entry, 0)} * field.first.last / (length > 1 ? length - 1 : 1)];
    }

    struct Bound {
        uint64_t mask = 0;  // of no lists: nothing is kept
        double match, near;
    };

    // What hits in these lists score at most; hit i is one of them.
    const Bound& bound_of(uint64_t mask, size_t i) {
        Bound& bound = bounds_[(mask * 0x9E3779B97F4A7C15u >> 32) % BOUNDS];
        if (mask == 0 || bound.mask != mask) {
            bound.mask = mask;
            bound.near = nearness_bound(i);
            bound.match = 0;
            for (size_t l = 0; l < lists.size(); ++l) {
                const Field& field = fields[lists[l].field];
                if (mask & mask_of(l)) bound.match += field.worth(field.first.most, field.count.most) * term_weights[lists[l].owner];
            }
            if (weights.match_divisor > 0) bound.match /= weights.match_divisor;
        }
        return bound;
    }

    bool is_below(double match, double proximity, size_t hit) const {
        const double bound = together(match, proximity, hit);
        return bound + std::abs(bound) * SLACK <= floor;
    }

    double together(double match, double proximity, size_t hit) const {
        double score = 0.0;
        if (weights.match != 0) score = score + match * weights.match;
        if (weights.proximity != 0) score = score + proximity * weights.proximity;
        if (weights.attribute != 0) score = score + (attribute != nullptr ? attribute[hit] : 0.0) * weights.attribute;
        return score / weights.divisor;
    }

    // nativeFieldMatch; early(field, list, entry, length): what the first occurrence is worth.
    template <typename Early>
    double matching(size_t i, Early early) const {
        double score = 0.0;
        for (size_t l = 0; l < lists.size();) {
            const uint32_t owner = lists[l].owner;
            double of_term = 0.0;
            for (; l < lists.size() && lists[l].owner == owner; ++l) {
                const Entry& found = entry(l, i);
                if (found.frequency == 0) continue;
                const Field& field = fields[lists[l].field];
                const auto length = static_cast<uint64_t>(lengths_[lists[l].field * CHUNK + i]);
                const double often = field.count[uint64_t{found.frequency} * field.count.last / std::max<uint64_t>(length, 1)];
                of_term += field.worth(early(field, lists[l], found, length), often);
            }
            if (term_weights[owner] != 0) score += of_term * term_weights[owner];
        }
        return weights.match_divisor > 0 ? score / weights.match_divisor : score;
    }

    // What nativeProximity is at most.
    double nearness_bound(size_t i) const {
        return sum_of_fields([&](const Field& field, const Pair& pair) {
            if (entry(pair.first, i).frequency == 0 || entry(pair.second, i).frequency == 0) return far(field);
            return field.nearness(field.forward.most, field.reverse.most);
        });
    }

    static double far(const Field& field) { return field.nearness(field.forward[UNDEFINED - 1], field.reverse[UNDEFINED - 1]); }

    // nativeProximity.
    double nearness(size_t i, Clock& clock) {
        std::fill(cached_.begin(), cached_.end(), Positions{});
        values_.clear();
        return sum_of_fields([&](const Field& field, const Pair& pair) {
            if (entry(pair.first, i).frequency == 0 || entry(pair.second, i).frequency == 0) return far(field);
            const Positions a = positions_of(pair.first, i), b = positions_of(pair.second, i);
            clock.spend(static_cast<int64_t>(a.count + b.count));
            const uint32_t ahead = distance(a, lists[pair.first].length, b), behind = distance(b, lists[pair.second].length, a);
            return field.nearness(field.forward[ahead - 1], field.reverse[behind - 1]);
        });
    }

    // near(field, pair): how near the terms of a pair are.
    template <typename Near>
    double sum_of_fields(Near near_of) const {
        double total = 0.0;
        for (const Field& field : fields) {
            if (field.pairs == 0) continue;
            double score = 0.0;
            for (size_t p = field.first_pair; p < field.first_pair + field.pairs; ++p)
                score += near_of(field, pairs[p]) * pairs[p].weight / field.near_highest;
            score *= field.weight;
            total += field.pairs_weight > 0 ? score / field.pairs_weight : score;
        }
        return weights.pairs_divisor > 0 ? total / weights.pairs_divisor : total;
    }

    struct Positions {
        size_t from = 0, count = 0;  // in values_
    };

    // Of a term in the hit that is scored; read once.
    Positions positions_of(size_t list, size_t i) {
        Positions& cached = cached_[list];
        const Entry& found = entry(list, i);
        if (cached.count == 0) {
            cached = {values_.size(), found.frequency};
            values_.resize(values_.size() + found.frequency);
            for (uint32_t k = 0; k < found.frequency; ++k) values_[cached.from + k] = position(lists[list], found, k);
        }
        return cached;
    }

    // The least distance from the end of a term to another later in the field.
    uint32_t distance(const Positions& first, uint32_t length, const Positions& second) const {
        const uint32_t *a = values_.data() + first.from, *const a_end = a + first.count;
        const uint32_t *b = values_.data() + second.from, *const b_end = b + second.count;
        uint64_t best = UNDEFINED;
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

    std::vector<Entry> entries_;    // [list][hit of the chunk]
    std::vector<int64_t> lengths_;  // [field][hit of the chunk]
    std::vector<Positions> cached_;
    std::vector<uint32_t> values_;
    std::vector<uint64_t> masks_;  // [hit of the chunk]: the lists that it is in
    std::vector<Bound> bounds_;
    std::vector<double> early_weights_;  // [list]: what the worth of a first occurrence is multiplied with
    bool prunes_ = false, prunes_by_mask_ = false;
};

std::vector<Field> fields_of(const Reader& reader, const In<double>& numbers, const nb::list& tables) {
    const size_t count = numbers.size() / FIELD_NUMBERS;
    if (numbers.size() != count * FIELD_NUMBERS || tables.size() != count * FIELD_TABLES)
        throw nb::value_error("the numbers and tables do not match the number of fields");
    std::vector<Field> fields;
    for (size_t f = 0; f < count; ++f) {
        const double* n = numbers.data() + f * FIELD_NUMBERS;
        const auto table = [&](size_t which) {
            const auto values = as_given<double>(tables[f * FIELD_TABLES + which]);
            if (values.size() == 0) throw nb::value_error("a table has no values");
            return Table(values);
        };
        for (const size_t length : {FIXED_LENGTH, LEAST_LENGTH})
            if (!(n[length] >= -1 && n[length] <= 0x7FFFFFFF)) throw nb::value_error("a length is not to be counted");
        if (!(n[INDEX] >= 0 && n[INDEX] < reader.fields)) throw std::invalid_argument("no such field");
        fields.push_back({static_cast<uint32_t>(n[INDEX]), n[WEIGHT], n[FIRST_IMPORTANCE], n[HIGHEST], n[FORWARD_IMPORTANCE],
                          n[NEAR_HIGHEST], n[PAIRS_WEIGHT], static_cast<int64_t>(n[FIXED_LENGTH]), static_cast<int64_t>(n[LEAST_LENGTH]),
                          table(0), table(1), table(2), table(3)});
    }
    return fields;
}

// Checks what is given for a list: offsets that rise, one for each hit and one more, within the positions.
void give(List& list, const nb::handle& given, size_t hits) {
    const auto pair = nb::cast<nb::tuple>(given);
    if (pair.size() != 2) throw nb::value_error("offsets and positions");
    const auto offsets = as_given<uint32_t>(pair[0]), positions = as_given<uint32_t>(pair[1]);
    if (offsets.size() != hits + 1 || offsets.data()[hits] > positions.size())
        throw nb::value_error("the offsets do not fit the hits or the positions");
    for (size_t i = 0; i < hits; ++i)
        if (offsets.data()[i] > offsets.data()[i + 1]) throw nb::value_error("offsets do not rise");
    list.offsets = offsets.data();
    list.positions = positions.data();
}

// lists: FIELD, TERM, OWNER, LENGTH of each; pairs: the numbers of two lists of one field for each, those of a field together and fields in
// their order. `given`: number of a list → what it has in place of postings. A result for each hit is written.
void native_scores(const Reader& reader, In<uint32_t> lids, In<double> numbers, const nb::list& tables, In<uint32_t> lists,
                   const nb::dict& given, In<double> term_weights, In<uint32_t> pairs, In<double> pair_weights, In<double> weights,
                   In<double> proximity, In<double> attribute, double floor, Out<double> results) {
    const size_t hits = lids.size();
    NativeScores scores;
    scores.fields = fields_of(reader, numbers, tables);
    if (lists.size() % 4 != 0 || lists.size() / 4 > MOST_LISTS || pairs.size() != 2 * pair_weights.size() || weights.size() != 6)
        throw nb::value_error("the arrays do not fit");
    if (results.size() != hits || (proximity.size() != 0 && proximity.size() != hits) ||
        (attribute.size() != 0 && attribute.size() != hits))
        throw nb::value_error("one result for each hit");
    for (size_t i = 1; i < hits; ++i)
        if (lids.data()[i - 1] >= lids.data()[i]) throw nb::value_error("lids do not rise");
    for (size_t l = 0; l < lists.size() / 4; ++l) {
        const uint32_t* n = lists.data() + 4 * l;
        if (n[0] >= scores.fields.size() || n[2] >= term_weights.size() || n[3] == 0)
            throw nb::value_error("a list of no field or no term");
        List list;
        list.field = n[0], list.term = n[1], list.owner = n[2], list.length = n[3];
        scores.lists.push_back(list);
    }
    for (auto [number, arrays] : given) {
        const auto l = nb::cast<size_t>(number);
        if (l >= scores.lists.size()) throw nb::value_error("no such list");
        give(scores.lists[l], arrays, hits);
    }
    uint32_t field_before = 0;
    for (size_t p = 0; p < pair_weights.size(); ++p) {
        const Pair pair{pairs.data()[2 * p], pairs.data()[2 * p + 1], pair_weights.data()[p]};
        if (pair.first >= scores.lists.size() || pair.second >= scores.lists.size()) throw nb::value_error("no such list");
        const uint32_t f = scores.lists[pair.first].field;
        if (f != scores.lists[pair.second].field || f < field_before)
            throw nb::value_error("a pair is of one field, and fields are in order");
        if (scores.fields[f].pairs++ == 0) scores.fields[f].first_pair = p;
        field_before = f;
        scores.pairs.push_back(pair);
    }
    scores.term_weights.assign(term_weights.data(), term_weights.data() + term_weights.size());
    const double* w = weights.data();
    scores.weights = {w[0], w[1], w[2], w[3], w[4], w[5]};
    scores.near = proximity.size() != 0 ? proximity.data() : nullptr;
    scores.attribute = attribute.size() != 0 ? attribute.data() : nullptr;
    scores.floor = floor;
    Clock clock;
    const GilRelease unlocked(is_much(16 * hits * scores.lists.size()));
    if (hits > 0) scores.run(reader, lids.data(), hits, results.data(), clock);
}

}  // namespace

void bind_native_scores(nb::module_& m) {
    m.def("native_scores", &native_scores, nb::arg("reader"), nb::arg("lids").noconvert(), nb::arg("numbers").noconvert(),
          nb::arg("tables"), nb::arg("lists").noconvert(), nb::arg("given"), nb::arg("term_weights").noconvert(),
          nb::arg("pairs").noconvert(), nb::arg("pair_weights").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("proximity").noconvert(), nb::arg("attribute").noconvert(), nb::arg("floor"), nb::arg("results").noconvert(),
          "nativeRank of each hit; -infinity where it is not above `floor`. Twin: paperwasp.core.native_scores.plain_native_scores");
}

}  // namespace paperwasp
