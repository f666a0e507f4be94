// nativeRank of a block of hits: nativeFieldMatch and nativeProximity from the postings, and what the query computes of attributes beside
// them. Its twin and specification is tests/oracles/native_scores.py; the features of the same names say what the numbers are.
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
#include <vector>

#include "clock.hpp"
#include "index/reader.hpp"
#include "rank/native_query.hpp"

namespace paperwasp {
namespace {

constexpr size_t CHUNK = 512;
constexpr size_t MASK_BITS = 64;  // lists of which a hit's set is one word
constexpr size_t BOUNDS = 256;    // sets of lists whose bounds are kept; a power of two

// How far a list's postings have been read.
struct Reading {
    Cursor cursor;
    size_t segment = 0;  // that the cursor is of
    bool is_open = false;
};

class NativeScores {
  public:
    NativeScores(const NativeQuery& query, const double* near, const double* attribute, double floor)
        : query_(query), near_(near), attribute_(attribute), floor_(floor) {}

    void run(const Reader& reader, const uint32_t* lids, size_t hits, double* results, Clock& clock) {
        prepare();
        for (size_t from = 0; from < hits; from += CHUNK) {
            const size_t count = std::min(CHUNK, hits - from);
            clock.spend(static_cast<int64_t>(count * 8 * (1 + query_.lists.size())));
            read_lengths(reader, lids + from, count);
            std::fill(masks_.begin(), masks_.end(), 0);
            for (size_t l = 0; l < query_.lists.size(); ++l) read_list(reader, lids + from, from, count, l);
            for (size_t i = 0; i < count; ++i) results[from + i] = score(i, from + i, clock);
        }
    }

  private:
    void prepare() {
        const std::vector<NativeList>& lists = query_.lists;
        entries_.resize(lists.size() * CHUNK);
        lengths_.resize(query_.fields.size() * CHUNK);
        readings_.resize(lists.size());
        masks_.resize(CHUNK);
        prunes_ = floor_ > -std::numeric_limits<double>::infinity() && query_.is_positive();
        prunes_by_mask_ = prunes_ && lists.size() <= MASK_BITS;
        if (prunes_by_mask_) bounds_.assign(BOUNDS, Bound{});
        for (const NativeList& list : lists) {
            const NativeField& field = query_.fields[list.field];
            const double of_term = field.first_importance * field.weight / field.highest * query_.term_weights[list.owner];
            early_weights_.push_back(query_.weights.match_divisor > 0 ? of_term / query_.weights.match_divisor : of_term);
        }
    }

    void read_lengths(const Reader& reader, const uint32_t* lids, size_t count) {
        for (size_t f = 0; f < query_.fields.size(); ++f) {
            int64_t* lengths = lengths_.data() + f * CHUNK;
            std::fill(lengths, lengths + count, 0);
            if (query_.fields[f].fixed_length < 0) {
                size_t i = 0;
                auto segment = segment_of(reader, lids[0]);
                for (; segment != reader.segments.end() && i < count; ++segment) {
                    const FieldIndex& field_index = segment->field_indexes[query_.fields[f].index];
                    for (; i < count && lids[i] < segment->base + segment->documents; ++i)
                        if (field_index.header != nullptr && lids[i] >= segment->base)
                            lengths[i] = field_index.field_lengths[lids[i] - segment->base];
                }
            }
            for (size_t i = 0; i < count; ++i) lengths[i] = query_.fields[f].length_of(lengths[i]);
        }
    }

    static std::vector<Segment>::const_iterator segment_of(const Reader& reader, uint32_t lid) {
        return std::upper_bound(reader.segments.begin(), reader.segments.end(), lid,
                                [](uint32_t at, const Segment& segment) { return at < segment.base + segment.documents; });
    }

    void read_list(const Reader& reader, const uint32_t* lids, size_t begin, size_t count, size_t number) {
        const NativeList& list = query_.lists[number];
        Reading& reading = readings_[number];
        NativeEntry* entries = entries_.data() + number * CHUNK;
        std::fill(entries, entries + count, NativeEntry{0, 0, nullptr});
        if (list.offsets != nullptr) {
            for (size_t i = 0; i < count; ++i) {
                entries[i] = {list.offsets[begin + i + 1] - list.offsets[begin + i], list.offsets[begin + i], nullptr};
                if (entries[i].frequency > 0) masks_[i] |= mask_of(number);
            }
            return;
        }
        const uint32_t field = query_.fields[list.field].index;
        for (size_t i = 0; i < count && reading.segment < reader.segments.size();) {
            const Segment& segment = reader.segments[reading.segment];
            const uint32_t end = segment.base + segment.documents;
            if (lids[i] >= end) {
                ++reading.segment;
                reading.is_open = false;
                continue;
            }
            const size_t to = static_cast<size_t>(std::lower_bound(lids + i, lids + count, end) - lids);
            if (!reading.is_open) {
                const FieldIndex& field_index = segment.field_indexes[field];
                const uint32_t place = field_index.header != nullptr ? field_index.find(list.term) : NO_INDEX;
                if (place == NO_INDEX) {
                    i = to;
                    continue;
                }
                reading.cursor = Cursor(field_index, place);
                reading.is_open = true;
            }
            while (i < to && lids[i] < segment.base) ++i;
            while (i < to && !reading.cursor.exhausted())
                i = read_block(reading.cursor, lids, i, to, segment.base, entries, mask_of(number));
            i = to;
        }
    }

    static uint64_t mask_of(size_t list) { return uint64_t{1} << (list % MASK_BITS); }

    // Reads what the block with lids[i], or the next one, has of lids[i..to); returns the first lid beyond it.
    size_t read_block(Cursor& cursor, const uint32_t* lids, size_t i, size_t to, uint32_t base, NativeEntry* entries, uint64_t mask) {
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

    const NativeEntry& entry(size_t list, size_t i) const { return entries_[list * CHUNK + i]; }

    // What reads the entries, and lengths of fields, of hit i of the chunk.
    auto entries_of(size_t i) const {
        return [this, i](size_t list) -> const NativeEntry& { return entry(list, i); };
    }
    auto lengths_of(size_t i) const {
        return [this, i](size_t field) { return lengths_[field * CHUNK + i]; };
    }

    double together(double match, double proximity, size_t hit) const {
        return query_.together(match, proximity, attribute_ != nullptr ? attribute_[hit] : query_.attribute);
    }

    double score(size_t i, size_t hit, Clock& clock) {
        if (prunes_ && cannot_enter(i, hit)) return -std::numeric_limits<double>::infinity();
        const double match = query_.matching(entries_of(i), lengths_of(i),
                                             [this](const NativeField& field, size_t l, const NativeEntry& found, uint64_t length) {
                                                 return field.early(query_.lists[l].position(found, 0), length);
                                             });
        return together(match, near_ != nullptr ? near_[hit] : nearness_.of(query_, entries_of(i), clock), hit);
    }

    // Whether a hit scores no more than the floor, by bounds of which each costs more than the one before.
    bool cannot_enter(size_t i, size_t hit) {
        double nearest;
        if (prunes_by_mask_) {
            const Bound& bound = bound_of(masks_[i], i);
            nearest = near_ != nullptr ? near_[hit] : bound.near;
            if (is_below(bound.match, nearest, hit)) return true;
        } else {
            nearest = near_ != nullptr ? near_[hit] : nearness_bound(i);
        }
        const auto at_best = [](const NativeField& field, size_t, const NativeEntry&, uint64_t) { return field.first.most; };
        double match = query_.matching(entries_of(i), lengths_of(i), at_best);
        if (is_below(match, nearest, hit)) return true;
        const double rounding = NATIVE_SLACK * together(match, nearest, hit);
        for (size_t l = 0; l < query_.lists.size(); ++l) {
            const NativeEntry& found = entry(l, i);
            if (found.frequency == 0) continue;
            const NativeList& list = query_.lists[l];
            const NativeField& field = query_.fields[list.field];
            const auto length = static_cast<uint64_t>(lengths_[list.field * CHUNK + i]);
            match -= (field.first.most - field.early(list.position(found, 0), length)) * early_weights_[l];
            if (together(match, nearest, hit) + rounding <= floor_) return true;
        }
        return false;
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
            for (size_t l = 0; l < query_.lists.size(); ++l) {
                const NativeList& list = query_.lists[l];
                const NativeField& field = query_.fields[list.field];
                if (mask & mask_of(l)) bound.match += field.worth(field.first.most, field.count.most) * query_.term_weights[list.owner];
            }
            if (query_.weights.match_divisor > 0) bound.match /= query_.weights.match_divisor;
        }
        return bound;
    }

    bool is_below(double match, double proximity, size_t hit) const {
        const double bound = together(match, proximity, hit);
        return bound + std::abs(bound) * NATIVE_SLACK <= floor_;
    }

    // What nativeProximity is at most.
    double nearness_bound(size_t i) const {
        return query_.nearness([&](const NativeField& field, const NativePair& pair) {
            return entry(pair.first, i).frequency == 0 || entry(pair.second, i).frequency == 0 ? field.far() : field.nearest();
        });
    }

    const NativeQuery& query_;
    const double *near_, *attribute_;  // of each hit; nullptr: `near_` is computed here, `attribute_` is the query's
    const double floor_;
    std::vector<Reading> readings_;     // by list
    std::vector<NativeEntry> entries_;  // [list][hit of the chunk]
    std::vector<int64_t> lengths_;      // [field][hit of the chunk]
    NativeNearness nearness_;
    std::vector<uint64_t> masks_;  // [hit of the chunk]: the lists that it is in
    std::vector<Bound> bounds_;
    std::vector<double> early_weights_;  // [list]: what the worth of a first occurrence is multiplied with
    bool prunes_ = false, prunes_by_mask_ = false;
};

// `given`: number of a list -> what it has in place of postings. A result for each hit is written.
void native_scores(const Reader& reader, In<uint32_t> lids, In<double> numbers, const nb::list& tables, In<uint32_t> lists,
                   const nb::dict& given, In<double> term_weights, In<uint32_t> pairs, In<double> pair_weights, In<double> weights,
                   In<double> proximity, In<double> attribute, double floor, Out<double> results) {
    const size_t hits = lids.size();
    NativeQuery query = read_native_query(reader, numbers, tables, lists, term_weights, pairs, pair_weights, weights);
    if (results.size() != hits || (proximity.size() != 0 && proximity.size() != hits) ||
        (attribute.size() != 0 && attribute.size() != hits))
        throw nb::value_error("one result for each hit");
    for (size_t i = 1; i < hits; ++i)
        if (lids.data()[i - 1] >= lids.data()[i]) throw nb::value_error("lids do not rise");
    for (auto [number, arrays] : given) {
        const auto l = nb::cast<size_t>(number);
        const auto pair = nb::cast<nb::tuple>(arrays);
        if (l >= query.lists.size()) throw nb::value_error("no such list");
        if (pair.size() != 2) throw nb::value_error("offsets and positions");
        give_positions(query.lists[l], as_given<uint32_t>(pair[0]), as_given<uint32_t>(pair[1]), hits);
    }
    NativeScores scores(query, proximity.size() != 0 ? proximity.data() : nullptr, attribute.size() != 0 ? attribute.data() : nullptr,
                        floor);
    Clock clock;
    const GilRelease unlocked(is_much(16 * hits * query.lists.size()));
    if (hits > 0) scores.run(reader, lids.data(), hits, results.data(), clock);
}

}  // namespace

void score_natively(const Reader& reader, const NativeQuery& query, const uint32_t* lids, size_t hits, double floor, double* results,
                    Clock& clock) {
    if (hits > 0) NativeScores(query, nullptr, nullptr, floor).run(reader, lids, hits, results, clock);
}

void bind_native_scores(nb::module_& m) {
    m.def("native_scores", &native_scores, nb::arg("reader"), nb::arg("lids").noconvert(), nb::arg("numbers").noconvert(),
          nb::arg("tables"), nb::arg("lists").noconvert(), nb::arg("given"), nb::arg("term_weights").noconvert(),
          nb::arg("pairs").noconvert(), nb::arg("pair_weights").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("proximity").noconvert(), nb::arg("attribute").noconvert(), nb::arg("floor"), nb::arg("results").noconvert(),
          "nativeRank of each hit; -infinity where it is not above `floor`. Twin: tests.oracles.native_scores.plain_native_scores");
}

}  // namespace paperwasp
