// The string segment match of queries and fields, for a block of hits. Its twin and specification is tests/oracles/field_match.py.
//
// A query is a row of words. A word belongs to a term, whose positions are lists (offsets[hits + 1], positions), rising in each hit; the
// word stands `shift` after them (words of a phrase have the positions of the phrase's first). `matched`: for each term and hit, whether
// the term matched there with or without a position; empty: where it has positions. `results` has METRICS values for each hit, hit after
// hit. The search of a hit tries every first word of a segment once, and up to max_alternatives further places; each try is one walk over
// the words. Reads its arguments only; memory is a few words for each word of the query.
#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "core.hpp"

namespace paperwasp {
namespace {

constexpr size_t METRICS = 30;
constexpr double LEAST_CONNECTEDNESS = 0.1;
constexpr double DEFAULT_CONNECTEDNESS = 0.1f;  // in single precision, so that neighbours tie with words that have no pair
constexpr size_t SHORT_LIST = 16;
constexpr int64_t STEPS_OF_WORD = 10;
constexpr uint64_t STEPS_OF_HIT = 2000;  // about

struct Importances {
    double proximity_completeness, relatedness, earliness, segment_proximity, occurrence, field_completeness;
};

// What is the same for all hits.
struct Query {
    std::vector<uint32_t> terms, shifts;
    const double *weights, *significances, *table;
    double total_weight, total_significance, average_connectedness;
    uint32_t limit, max_alternatives, max_occurrences;
    Importances importances;
    std::vector<const double*> worth;  // of a pair that ends with a word, by its distance: as `table`
    size_t words() const { return terms.size(); }
};

// What is known of a segmentation of the first words of the query.
struct Segmentation {
    uint32_t out_of_order = 0, segments = 0, gaps = 0, gap_length = 0, longest_sequence = 1, sequence = 0, matches = 0, pairs = 0;
    uint32_t first_start = 0, last_start = 0;  // the least and the greatest place where a segment starts
    int64_t head = -1, tail = -1;
    double proximity = 0, unweighted_proximity = 0, weight = 0, significance = 0;

    double absolute_proximity() const { return pairs == 0 ? DEFAULT_CONNECTEDNESS : proximity / pairs; }
    double score() const { return segments == 0 ? 0.0 : absolute_proximity() / (static_cast<double>(segments) * segments); }
};

// A word at which a segment may start: the best segmentation of the words before it, and how far starts were tried from its end.
struct Start {
    Segmentation best;
    uint32_t skipped = 0, previous = 0, explored = 0;
    bool open = false, valid = false;
};

// Where a word stands in the field of a hit.
struct Word {
    const uint32_t *begin = nullptr, *end = nullptr;
    uint32_t shift = 0, occurrences = 0;
    bool matched = false;

    uint32_t at(const uint32_t* p) const { return *p + shift; }
    // The first position from `place` on, or `end`.
    const uint32_t* from(int64_t place) const {
        if (static_cast<size_t>(end - begin) > SHORT_LIST)
            return std::partition_point(begin, end, [&](uint32_t p) { return int64_t{p} + shift < place; });
        const uint32_t* p = begin;
        while (p != end && int64_t{*p} + shift < place) ++p;
        return p;
    }
};

class Hit {
  public:
    Hit(const Query& query, Clock& clock) : query_(query), clock_(clock), words_(query.words()), starts_(query.words() + 1) {}

    Word& word(size_t i) { return words_[i]; }

    void run(uint32_t length, double* m) {
        length_ = length;
        uint32_t positioned = 0, matched = 0;
        double weight = 0;
        for (size_t i = 0; i < words_.size(); ++i) {
            Word& word = words_[i];
            word.occurrences = static_cast<uint32_t>(word.end - word.begin);
            word.matched = word.matched || word.occurrences > 0;
            while (word.begin != word.end && word.at(word.end - 1) >= length) --word.end;
            positioned += word.occurrences > 0;
            matched += word.matched;
            if (word.matched) weight += query_.weights[i];
        }
        std::fill(m, m + METRICS, 0.0);
        if (positioned > 0 && length > 0) {
            explore();
            describe(best_of_all(), m);
        } else if (matched > 0) {
            m[3] = static_cast<double>(matched) / static_cast<double>(words_.size());
            m[2] = m[3] * (1 - query_.importances.field_completeness);
            m[17] = query_.total_weight > 0 ? weight / query_.total_weight : 0;
            m[21] = matched;
        }
        m[29] = matched - positioned;
    }

  private:
    struct Found {
        int64_t distance = -1, place = -1;
    };

    // The place of a word that is nearest to `origin` in the order of search, not before `least`: up to `limit` forward, as far backward,
    // on to the end, back to the start.
    Found closest(const Word& word, uint32_t origin, uint32_t least) const {
        if (word.begin == word.end) return {};
        const int64_t z = origin, length = length_, limit = query_.limit;
        const int64_t ahead = std::min(limit, length - z), behind = std::min(limit, z), rest = length - z + behind;
        int64_t from = least;
        if (from < ahead) {
            const uint32_t* p = word.from(z + from);
            if (p != word.end && word.at(p) < z + ahead) return {word.at(p) - z, word.at(p)};
            from = ahead;
        }
        if (from < ahead + behind) {
            const uint32_t* p = word.from(z + ahead - from);
            if (p != word.begin && word.at(p - 1) >= z - behind) return {z + ahead - 1 - word.at(p - 1), word.at(p - 1)};
            from = ahead + behind;
        }
        if (from < rest) {
            const uint32_t* p = word.from(z + from - behind);
            if (p != word.end) return {word.at(p) - z + behind, word.at(p)};
            from = rest;
        }
        const uint32_t* p = word.from(length - from);
        if (p == word.begin) return {};
        return {length - 1 - word.at(p - 1), word.at(p - 1)};
    }

    void explore() {
        for (Start& start : starts_) start.valid = false;
        open_start(0, 0, Segmentation());
        uint32_t alternatives = 0;
        for (size_t at = 0; at < starts_.size();) {
            Start& start = starts_[at];
            const bool again = start.explored > 0;
            if (!start.valid || !start.open || (again && alternatives >= query_.max_alternatives)) {
                ++at;
                continue;
            }
            alternatives += again;
            clock_.spend(static_cast<int64_t>(words_.size()) * STEPS_OF_WORD);
            start.open = segment_from(at);
        }
    }

    void open_start(size_t word, uint32_t previous, const Segmentation& best) { starts_[word] = Start{best, 0, previous, 0, true, true}; }

    // Looks for one more segment that starts at a word, or at the first after it that the field has. Whether there was one.
    bool segment_from(size_t first) {
        Start& start = starts_[first];
        Segmentation now = start.best;
        uint32_t least = start.explored, previous = start.previous;
        size_t previous_word = 0;
        bool started = false, in_sequence = false;
        for (size_t i = first + start.skipped; i < words_.size(); ++i) {
            const Word& word = words_[i];
            const Found found = closest(word, previous, least);
            const int64_t place = found.place;
            if (place < 0 && least > 0 && !started) return false;
            if (in_sequence && place != int64_t{previous} + 1) {
                end_sequence(now, previous);
                in_sequence = false;
            }
            if (!started) {
                if (place < 0) {
                    ++start.skipped;
                } else {
                    start_segment(now, static_cast<uint32_t>(place));
                    start.explored = static_cast<uint32_t>(found.distance) + 1;
                    started = true;
                }
            } else if (std::abs(place - int64_t{previous}) >= int64_t{query_.limit}) {
                offer(i, previous, now);
                return true;
            } else if (place >= 0) {
                pair(now, i, place, previous, i == previous_word + 1);
            }
            if (place < 0) {
                if (word.matched && word.occurrences == 0) count(now, i);
                least = 0;
                continue;
            }
            count(now, i);
            if (!in_sequence) {
                if (now.head < 0 || place < now.head) now.head = place;
                now.sequence = 1;
                in_sequence = true;
            }
            least = 1;
            previous_word = i;
            previous = static_cast<uint32_t>(place);
        }
        if (in_sequence) end_sequence(now, previous);
        if (started) offer(words_.size(), previous, now);
        return started;
    }

    static void start_segment(Segmentation& now, uint32_t place) {
        now.first_start = now.segments == 0 ? place : std::min(now.first_start, place);
        now.last_start = now.segments == 0 ? place : std::max(now.last_start, place);
        ++now.segments;
    }

    void end_sequence(Segmentation& now, uint32_t place) const {
        const int64_t tail = int64_t{length_} - place - 1;
        if (now.tail < 0 || tail < now.tail) now.tail = tail;
        now.longest_sequence = std::max(now.longest_sequence, now.sequence);
        now.sequence = 0;
    }

    void pair(Segmentation& now, size_t word, int64_t place, int64_t previous, bool next_word) const {
        int64_t distance = place - previous - 1;
        if (distance < 0) ++distance;
        if (std::abs(distance) <= int64_t{query_.limit}) {
            now.unweighted_proximity += query_.table[distance + query_.limit];
            now.proximity += query_.worth[word][distance + query_.limit];
            ++now.pairs;
        }
        if (place == previous + 1 && next_word) {
            ++now.sequence;
            return;
        }
        ++now.gaps;
        now.gap_length += static_cast<uint32_t>(place > previous ? place - previous - 1 : previous - place);
        now.out_of_order += place <= previous;
    }

    void count(Segmentation& now, size_t word) const {
        if (now.matches >= length_) return;
        ++now.matches;
        if (query_.total_weight > 0) now.weight += query_.weights[word] / query_.total_weight;
        if (query_.total_significance > 0) now.significance += query_.significances[word] / query_.total_significance;
    }

    // A segmentation of the words before `word`, the last of which is at `place`.
    void offer(size_t word, uint32_t place, const Segmentation& found) {
        Start& start = starts_[word];
        if (!start.valid) {
            open_start(word, place, found);
        } else if (found.score() > start.best.score()) {
            start.previous = place;
            start.best = found;
        }
    }

    const Segmentation& best_of_all() const {
        size_t last = starts_.size() - 1;
        while (!starts_[last].valid) --last;
        return starts_[last].best;
    }

    void describe(const Segmentation& s, double* m) {
        const Importances& by = query_.importances;
        const double matches = s.matches, length = length_;
        const double head = static_cast<double>(std::max<int64_t>(s.head, 0));
        m[28] = s.segments > 1 ? static_cast<double>(s.last_start - s.first_start) + s.segments - 1 : 0;
        m[11] = s.absolute_proximity();
        m[1] = m[11] / query_.average_connectedness;
        m[3] = matches / static_cast<double>(words_.size());
        m[4] = matches / length;
        m[2] = m[3] * (1 - by.field_completeness) + by.field_completeness * m[4];
        m[5] = s.pairs == 0 ? 1 : 1 - static_cast<double>(s.out_of_order) / s.pairs;
        m[6] = s.matches == 0 ? 0 : s.matches == 1 ? 1 : 1 - (static_cast<double>(s.segments) - 1) / (matches - 1);
        m[7] = s.matches == 0 ? 0 : length_ == 1 ? 1 : 1 - head / (std::max(6.0, length) - 1);
        m[8] = s.matches == 0 ? 0 : s.longest_sequence / matches;
        m[9] = s.matches == 0 ? 0 : 1 - m[28] / length;
        m[10] = s.pairs == 0 ? 1 : s.unweighted_proximity / s.pairs;
        describe_occurrences(m);
        m[17] = s.weight;
        m[18] = s.significance;
        m[19] = (s.significance + s.weight) / 2;
        m[20] = s.segments;
        m[21] = matches;
        m[22] = s.out_of_order;
        m[23] = s.gaps;
        m[24] = s.gap_length;
        m[25] = s.longest_sequence;
        m[26] = head;
        m[27] = static_cast<double>(std::max<int64_t>(s.tail, 0));
        const double related = 1 - by.relatedness + by.relatedness * m[6];
        m[0] = (by.proximity_completeness * related * m[1] * m[2] * m[2] + by.earliness * m[7] + by.segment_proximity * m[9] +
                by.occurrence * m[12]) /
               (by.proximity_completeness + by.earliness + by.segment_proximity + by.occurrence);
    }

    // Words that first occur at the same place count once, by the first of them.
    void describe_occurrences(double* m) {
        firsts_.clear();
        for (size_t i = 0; i < words_.size(); ++i)
            if (words_[i].occurrences > 0) firsts_.emplace_back(words_[i].at(words_[i].begin), i);
        std::sort(firsts_.begin(), firsts_.end());
        const auto same = [](const auto& a, const auto& b) { return a.first == b.first; };
        firsts_.erase(std::unique(firsts_.begin(), firsts_.end(), same), firsts_.end());
        const double count = static_cast<double>(firsts_.size());
        const double most = query_.max_occurrences, each = std::min<double>(length_, most);
        const double divider = std::min<double>(length_, most * count);
        double weights = 0, weighted = 0, all_weighted = 0, significant = 0, all_significant = 0;
        for (const auto& [place, i] : firsts_) {
            const double times = std::min<double>(words_[i].occurrences, most);
            const double weight = query_.weights[i], significance = query_.significances[i];
            m[12] += times / divider;
            m[13] += times / (most * count);
            m[15] += times * weight / most;
            weights += weight;
            all_weighted += each * weight / divider;
            weighted += times * weight / divider;
            all_significant += each * significance / divider;
            significant += times * significance / divider;
        }
        m[15] /= weights > 0 ? weights : 1;
        m[14] = all_weighted > 0 ? weighted / all_weighted : 0;
        m[16] = all_significant > 0 ? significant / all_significant : 0;
    }

    const Query& query_;
    Clock& clock_;
    std::vector<Word> words_;
    std::vector<Start> starts_;
    std::vector<std::pair<uint32_t, size_t>> firsts_;
    uint32_t length_ = 0;
};

// The positions of a term, hit by hit. Throws ValueError where the offsets do not fit.
struct Positions {
    In<uint32_t> offsets, positions;
    Positions(nb::handle o, nb::handle p, size_t hits) : offsets(as_given<uint32_t>(o)), positions(as_given<uint32_t>(p)) {
        if (offsets.size() != hits + 1) throw nb::value_error("offsets do not fit the number of hits");
        for (size_t i = 0; i < hits; ++i)
            if (offsets.data()[i] > offsets.data()[i + 1]) throw nb::value_error("offsets must rise");
        if (offsets.data()[hits] > positions.size()) throw nb::value_error("offsets beyond the positions");
    }
};

// What pairs are worth to a word of some connectedness, by their distance.
std::vector<double> worth_of(const In<double>& table, double connectedness) {
    std::vector<double> worth(table.size());
    for (size_t i = 0; i < table.size(); ++i)
        worth[i] = std::pow(table.data()[i], connectedness / LEAST_CONNECTEDNESS) * std::max(LEAST_CONNECTEDNESS, connectedness);
    return worth;
}

double average_connectedness(const In<double>& connectedness) {
    if (connectedness.size() < 2) return DEFAULT_CONNECTEDNESS;
    double sum = 0;
    for (size_t i = 1; i < connectedness.size(); ++i) sum += std::max(LEAST_CONNECTEDNESS, connectedness.data()[i]);
    return sum / static_cast<double>(connectedness.size() - 1);
}

Importances importances_of(const In<double>& given) {
    if (given.size() != 6) throw nb::value_error("there are six importances");
    const double* by = given.data();
    return {by[0], by[1], by[2], by[3], by[4], by[5]};
}

void field_match(const nb::list& offsets, const nb::list& positions, In<uint8_t> matched, In<int32_t> lengths, In<uint32_t> terms,
                 In<uint32_t> shifts, In<double> weights, In<double> significances, In<double> connectedness, double total_weight,
                 double total_significance, In<double> table, In<double> importances, uint32_t max_alternatives, uint32_t max_occurrences,
                 Out<double> results) {
    const size_t hits = lengths.size(), words = terms.size();
    if (offsets.size() != positions.size()) throw nb::value_error("terms need offsets and positions each");
    if (shifts.size() != words || weights.size() != words || significances.size() != words || connectedness.size() != words)
        throw nb::value_error("words of different numbers");
    if (results.size() != METRICS * hits || (matched.size() != 0 && matched.size() != offsets.size() * hits))
        throw nb::value_error("results or matches that do not fit the hits");
    if (table.size() % 2 == 0 || max_occurrences == 0) throw nb::value_error("a table has 2 * limit + 1 values, and occurrences count");
    std::vector<Positions> lists;
    for (size_t i = 0; i < offsets.size(); ++i) lists.emplace_back(offsets[i], positions[i], hits);
    Query query{{terms.data(), terms.data() + words},
                {shifts.data(), shifts.data() + words},
                weights.data(),
                significances.data(),
                table.data(),
                total_weight,
                total_significance,
                average_connectedness(connectedness),
                static_cast<uint32_t>(table.size() / 2),
                max_alternatives,
                max_occurrences,
                importances_of(importances),
                {}};
    std::map<double, std::vector<double>> worth;
    for (size_t i = 0; i < words; ++i) {
        if (terms.data()[i] >= lists.size()) throw nb::value_error("a word of no term");
        auto& values = worth[connectedness.data()[i]];
        if (values.empty()) values = worth_of(table, connectedness.data()[i]);
        query.worth.push_back(values.data());
    }
    Clock clock;
    const GilRelease unlocked(is_much(STEPS_OF_HIT * hits));
    Hit hit(query, clock);
    for (size_t i = 0; i < hits; ++i) {
        clock.spend(static_cast<int64_t>(METRICS + words * STEPS_OF_WORD));
        for (size_t w = 0; w < words; ++w) {
            const Positions& list = lists[query.terms[w]];
            const uint32_t *from = list.offsets.data() + i, *all = list.positions.data();
            const bool there = matched.size() != 0 && matched.data()[query.terms[w] * hits + i] != 0;
            hit.word(w) = Word{all + from[0], all + from[1], query.shifts[w], 0, there};
        }
        hit.run(static_cast<uint32_t>(std::max(lengths.data()[i], 0)), results.data() + i * METRICS);
    }
}

}  // namespace

void bind_field_match(nb::module_& m) {
    m.def("field_match", &field_match, nb::arg("offsets"), nb::arg("positions"), nb::arg("matched").noconvert(),
          nb::arg("lengths").noconvert(), nb::arg("terms").noconvert(), nb::arg("shifts").noconvert(), nb::arg("weights").noconvert(),
          nb::arg("significances").noconvert(), nb::arg("connectedness").noconvert(), nb::arg("total_weight"),
          nb::arg("total_significance"), nb::arg("table").noconvert(), nb::arg("importances").noconvert(), nb::arg("max_alternatives"),
          nb::arg("max_occurrences"), nb::arg("results").noconvert(),
          "The metrics of the string segment match of each hit. Twin: tests.oracles.field_match.field_match");
}

}  // namespace paperwasp
