// The best hits by nativeRank: see native_best.hpp. What it must find is what scoring all of them finds (tests/oracles/native_scores.py).
//
// Works like the search for the best by BM25 (top_k.cpp), in windows of documents: what a term in a field is worth at most is added up by
// document, from a byte for each posting (native_worths.hpp). Beside the sum a document has a bit for each list that it is in, which says
// what the nearness of its terms is worth at most. Lists whose bounds together stay below a share of the threshold bring no candidates.
//
// A window's candidates are scored in the order of their bounds, until these are below the threshold: so that is high after the first
// window already. Sums are in fixed point, rounded up; what is scored is in double precision and in the order of the features.
#include "rank/native_best.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <numeric>

#include "arrays.hpp"
#include "rank/native_worths.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t WINDOW = 2048;         // documents, whose sums fit the first-level cache
constexpr size_t MOST_LISTS = 32;         // that have documents: a document's set of them is half a word
constexpr size_t TABLED_LISTS = 10;       // of so many, what nearness is worth is kept by set
constexpr double HIGHEST_SUM = 1u << 30;  // what a hit in all lists scores at most, in fixed point
constexpr double ESSENTIAL_SHARE = 0.4;   // of the threshold: up to it, lists bring no candidates, as in top_k.cpp
constexpr uint32_t NOT_KNOWN = 0xFFFFFFFFu;

struct Scored {
    double score;
    uint32_t lid;
    // Whether a is the better hit.
    friend bool operator<(const Scored& a, const Scored& b) { return a.score != b.score ? a.score > b.score : a.lid < b.lid; }
};

// A list of the query that has documents.
struct NativeReading {
    uint32_t list;
    const NativeFound* found;                        // nullptr: of a word
    double share;                                    // what the worth of occurrences is multiplied with
    std::vector<std::pair<uint32_t, double>> pairs;  // (reading, what their nearness adds at most)
    double most = 0;                                 // what it adds to a score at most, without its pairs
};

// The documents of one segment that a reading has.
struct OpenList {
    uint32_t reading;
    const NativeFound* found;
    NativeWorths worths;
    std::unique_ptr<Cursor> cursor;      // of a word
    size_t first = 0, last = 0, at = 0;  // of what was found: those of the segment; and where the window begins
    uint32_t block = 0;                  // of the cursor, where the window begins
    uint32_t most = 0;                   // in fixed point, with its pairs
    uint64_t values[256];                // by worth: what it adds to a document's sum, and the list's bit

    uint64_t bit() const { return uint64_t{1} << reading; }
};

// The hits that may still be among the best, of one window.
struct Candidate {
    uint32_t bound, document;
    uint64_t sum;
    // Whether b is looked at before a.
    friend bool operator<(const Candidate& a, const Candidate& b) {
        return a.bound != b.bound ? a.bound < b.bound : a.document > b.document;
    }
};

class NativeBest {
  public:
    NativeBest(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found, const uint64_t* hits,
               size_t words, uint32_t k, Clock& clock, const NativePart& part)
        : reader_(reader), query_(query), hits_(hits), words_(words), k_(k), clock_(clock), part_(part), entries_(query.lists.size()) {
        std::fill(entries_.begin(), entries_.end(), NativeEntry{0, 0, nullptr});
        for (const NativeField& field : query.fields) numbers_.push_back(worths_number(field));
        for (size_t l = 0; l < query.lists.size(); ++l) add_list(static_cast<uint32_t>(l), found[l]);
        lengths_.resize(query.fields.size());
    }

    std::optional<NativeHits> run() {
        if (readings_.size() > MOST_LISTS || !bound_lists()) return std::nullopt;
        try {
            for (const Segment& segment : reader_.segments) search(segment);
        } catch (const OutOfTime&) {
            if (best_.empty()) throw;
            return sorted(-std::numeric_limits<double>::infinity());
        }
        const size_t end = std::min(words_, (size_t{part_.last} + 63) / 64);
        for (size_t w = part_.first / 64; w < end; ++w) searched_ += static_cast<uint64_t>(__builtin_popcountll(hits_[w]));
        searched_ -= counted_;
        if (part_.floor == nullptr && (best_.size() < k_ || best_.front().score <= least_ + slack_)) return std::nullopt;
        return sorted(least_ + slack_);
    }

  private:
    NativeHits sorted(double least) {
        std::sort(best_.begin(), best_.end());
        NativeHits found;
        found.searched = searched_;
        found.least = least;
        for (const Scored& hit : best_) {
            found.lids.push_back(hit.lid);
            found.scores.push_back(hit.score);
        }
        return found;
    }

    void add_list(uint32_t l, const NativeFound* found) {
        const NativeList& list = query_.lists[l];
        const NativeField& field = query_.fields[list.field];
        if (found != nullptr ? found->size == 0 : reader_.frequency(field.index, list.term) == 0) return;
        NativeReading reading{l, found, query_.term_weights[list.owner] * query_.weights.match / query_.weights.divisor, {}};
        if (query_.weights.match_divisor > 0) reading.share /= query_.weights.match_divisor;
        reading.most = field.worth(field.first.most, field.count.most) * reading.share;
        readings_.push_back(std::move(reading));
    }

    // Works out what lists add at most with their pairs. False: a list adds nothing, so that a document's sum does not say that it is
    // there.
    bool bound_lists() {
        const NativeWeights& weights = query_.weights;
        std::vector<uint32_t> place(query_.lists.size(), NO_INDEX);
        for (uint32_t j = 0; j < readings_.size(); ++j) place[readings_[j].list] = j;
        least_ =
            query_.together(0, query_.nearness([](const NativeField& field, const NativePair&) { return field.far(); }), query_.attribute);
        double highest = 0;
        for (const NativeReading& reading : readings_) highest += reading.most;
        for (const NativeField& field : query_.fields) {
            for (size_t p = field.first_pair; p < field.first_pair + field.pairs; ++p) {
                const NativePair& pair = query_.pairs[p];
                const uint32_t a = place[pair.first], b = place[pair.second];
                if (a == NO_INDEX || b == NO_INDEX) continue;
                double gain = (field.nearest() - field.far()) * pair.weight / field.near_highest * field.weight;
                if (field.pairs_weight > 0) gain /= field.pairs_weight;
                if (weights.pairs_divisor > 0) gain /= weights.pairs_divisor;
                gain *= weights.proximity / weights.divisor;
                readings_[a].pairs.emplace_back(b, gain);
                if (a != b) readings_[b].pairs.emplace_back(a, gain);
                highest += gain;
            }
        }
        slack_ = NATIVE_SLACK * (std::abs(least_) + highest);
        scale_ = HIGHEST_SUM / highest;
        if (!(highest > 0) || !std::isfinite(scale_)) return false;
        if (readings_.size() <= TABLED_LISTS) gains_.assign(size_t{1} << readings_.size(), NOT_KNOWN);
        return std::all_of(readings_.begin(), readings_.end(), [](const NativeReading& reading) { return reading.most > 0; });
    }

    // What pairs of the lists in a set add at most.
    uint32_t gain_of(uint64_t set) {
        if (gains_.empty()) return work_out_gain(set);
        uint32_t& gain = gains_[set];
        if (gain == NOT_KNOWN) gain = work_out_gain(set);
        return gain;
    }

    uint32_t work_out_gain(uint64_t set) const {
        double gain = 0;
        for (uint64_t rest = set; rest != 0; rest &= rest - 1) {
            const auto j = static_cast<uint32_t>(__builtin_ctzll(rest));
            for (const auto& [other, each] : readings_[j].pairs)
                if (other <= j && (set >> other & 1) != 0) gain += each;
        }
        return fixed(gain);
    }

    uint32_t fixed(double score) const { return static_cast<uint32_t>(score * scale_ * (1 + NATIVE_SLACK)) + 1; }

    // What the best k score at least.
    double reached() const {
        const double own = best_.size() < k_ ? -std::numeric_limits<double>::infinity() : best_.front().score;
        return part_.floor == nullptr ? own : std::max(own, part_.floor->score());
    }

    // What a bound in fixed point must reach.
    int64_t threshold() const {
        const double score = reached();
        if (!std::isfinite(score)) return std::numeric_limits<int64_t>::min();
        return static_cast<int64_t>(std::max((score - slack_ - least_) * scale_ - 1, -1.0));
    }

    void search(const Segment& segment) {
        first_ = std::max(segment.base, part_.first);
        last_ = std::min(segment.base + segment.documents, part_.last);
        if (first_ >= last_) return;
        open(segment);
        if (lists_.empty()) return;
        for (uint32_t low = first_ - segment.base, end = last_ - segment.base; low < end;) {
            const uint32_t high = low + std::min(WINDOW, end - low);
            run_window(segment, low, high);
            low = high;
        }
    }

    // Opens the lists that the segment has documents of in the part, those that add least first.
    void open(const Segment& segment) {
        lists_.clear();
        std::fill(entries_.begin(), entries_.end(), NativeEntry{0, 0, nullptr});  // nothing is left of the segment before
        for (uint32_t j = 0; j < readings_.size(); ++j) {
            const NativeReading& reading = readings_[j];
            const NativeList& list = query_.lists[reading.list];
            const NativeField& field = query_.fields[list.field];
            if (reading.found != nullptr) {
                const NativeFound& found = *reading.found;
                const uint32_t *begin = found.lids, *end = found.lids + found.size;
                const auto first = static_cast<size_t>(std::lower_bound(begin, end, first_) - begin);
                const auto last = static_cast<size_t>(std::lower_bound(begin, end, last_) - begin);
                if (first == last) continue;
                clock_.spend(STEPS_OF_WORTH * static_cast<int64_t>(last - first));
                add_open(j, NativeWorths(field, &segment, found.lids, found.offsets, found.positions, first, last));
                lists_.back()->first = lists_.back()->at = first;
                lists_.back()->last = last;
            } else {
                const FieldIndex& field_index = segment.field_indexes[field.index];
                const uint32_t place = field_index.header != nullptr ? field_index.find(list.term) : NO_INDEX;
                if (place == NO_INDEX) continue;
                add_open(j, NativeWorths(field, numbers_[list.field], segment, place, clock_));
                lists_.back()->cursor = std::make_unique<Cursor>(field_index, place);
            }
        }
        std::sort(lists_.begin(), lists_.end(), [](const auto& a, const auto& b) { return a->most < b->most; });
    }

    void add_open(uint32_t j, NativeWorths worths) {
        const NativeReading& reading = readings_[j];
        auto list = std::make_unique<OpenList>(OpenList{j, reading.found, std::move(worths), nullptr, 0, 0, 0, 0, 0, {}});
        const double step = worth_step(query_.fields[query_.lists[reading.list].field]) * reading.share;
        const uint8_t highest = list->worths.highest();
        for (uint32_t worth = 0; worth <= highest; ++worth) list->values[worth] = uint64_t{fixed(worth * step)} << 32 | list->bit();
        list->most = static_cast<uint32_t>(list->values[highest] >> 32);
        for (const auto& [other, gain] : reading.pairs) list->most += fixed(gain);
        lists_.push_back(std::move(list));
    }

    void run_window(const Segment& segment, uint32_t low, uint32_t high) {
        const int64_t threshold = this->threshold();
        uint64_t together = 0;
        skipped_ = 0;
        while (skipped_ < lists_.size() &&
               static_cast<double>(together + lists_[skipped_]->most) <= ESSENTIAL_SHARE * static_cast<double>(threshold))
            together += lists_[skipped_++]->most;
        skipped_most_ = together;
        for (size_t j = 0; j < lists_.size(); ++j) {
            enter(*lists_[j], segment, low);
            if (j >= skipped_) accumulate(*lists_[j], segment, low, high);
        }
        const uint64_t count = gather(segment, low, high, threshold);
        std::fill(sums_, sums_ + (high - low), 0);
        clock_.spend(static_cast<int64_t>(WINDOW / 4 + 2 * count + 8 * candidates_.size()));
        std::make_heap(candidates_.begin(), candidates_.end());
        while (!candidates_.empty() && candidates_.front().bound >= this->threshold()) {
            std::pop_heap(candidates_.begin(), candidates_.end());
            look_at(segment, candidates_.back());
            candidates_.pop_back();
        }
        counted_ += count;
        searched_ += count;
    }

    void enter(OpenList& list, const Segment& segment, uint32_t low) {
        if (list.found != nullptr) {
            while (list.at < list.last && list.found->lids[list.at] < segment.base + low) ++list.at;
            return;
        }
        list.cursor->return_to(list.block);
        list.cursor->shallow_seek(low);
        list.block = list.cursor->block();
    }

    // Adds what the list's documents of the window are worth.
    void accumulate(OpenList& list, const Segment& segment, uint32_t low, uint32_t high) {
        if (list.found != nullptr) {
            for (size_t i = list.at; i < list.last && list.found->lids[i] < segment.base + high; ++i)
                if (const uint8_t worth = list.worths.bytes()[i - list.first]; worth > 0)
                    sums_[list.found->lids[i] - segment.base - low] += list.values[worth];
            return;
        }
        Cursor& cursor = *list.cursor;
        for (; !cursor.exhausted(); cursor.next_block()) {
            const uint32_t *documents = cursor.documents(), n = cursor.count();
            const uint32_t from = documents[0] < low ? count_below(documents, low) : 0;
            const uint32_t to = documents[n - 1] >= high ? count_below(documents, high) : n;
            const uint8_t* worths = list.worths.bytes() + size_t{cursor.block()} * BLOCK;
            for (uint32_t i = from; i < to; ++i) sums_[documents[i] - low] += list.values[worths[i]];
            clock_.spend(n);
            if (cursor.last_of(cursor.block()) >= high - 1) return;
        }
    }

    // The window's candidates. Returns how many hits it has.
    uint64_t gather(const Segment& segment, uint32_t low, uint32_t high, int64_t threshold) {
        candidates_.clear();
        uint64_t count = 0;
        const uint32_t first = segment.base + low, end = segment.base + high;
        for (uint32_t w = first >> 6; uint64_t{w} * 64 < end; ++w) {
            uint64_t bits = hits_[w];
            if (w * 64 < first) bits &= ~uint64_t{0} << (first & 63);
            if (end - w * 64 < 64) bits &= (uint64_t{1} << (end & 63)) - 1;
            count += static_cast<uint64_t>(__builtin_popcountll(bits));
            for (; bits != 0; bits &= bits - 1) {
                const uint32_t at = w * 64 + static_cast<uint32_t>(__builtin_ctzll(bits)) - first;
                const uint64_t sum = sums_[at];
                if (sum == 0) continue;
                const uint64_t bound = (sum >> 32) + gain_of((sum & NOT_KNOWN)) + skipped_most_;
                if (static_cast<int64_t>(bound) >= threshold) candidates_.push_back({static_cast<uint32_t>(bound), low + at, sum});
            }
        }
        return count;
    }

    auto entry_of() const {
        return [this](size_t l) -> const NativeEntry& { return entries_[l]; };
    }

    void look_at(const Segment& segment, const Candidate& candidate) {
        clock_.spend(static_cast<int64_t>(64 * lists_.size()));
        uint64_t sum = candidate.sum;
        for (size_t j = 0; j < skipped_; ++j) {
            OpenList& list = *lists_[j];
            const size_t at = find(list, segment, candidate.document);
            if (at != NO_INDEX) sum += list.values[list.worths.bytes()[worth_of(list, at)]];
        }
        if (skipped_ > 0 && static_cast<int64_t>((sum >> 32) + gain_of(sum & NOT_KNOWN)) < threshold()) return;
        for (size_t f = 0; f < query_.fields.size(); ++f)
            lengths_[f] = query_.fields[f].length_of(segment.length(query_.fields[f].index, candidate.document));
        for (const auto& open : lists_) {
            OpenList& list = *open;
            const NativeReading& reading = readings_[list.reading];
            NativeEntry& entry = entries_[reading.list];
            entry.frequency = 0;
            if ((sum & list.bit()) == 0) continue;
            const size_t at = find(list, segment, candidate.document);
            if (at == NO_INDEX) continue;
            if (list.found != nullptr)
                entry = {list.found->offsets[at + 1] - list.found->offsets[at], list.found->offsets[at], nullptr};
            else
                read_word(*list.cursor, static_cast<uint32_t>(at), entry);
        }
        const double match = matching();
        const double most = query_.together(match, 0, 0) + least_ + gain_of(sum & NOT_KNOWN) / scale_;
        if (most < reached() - slack_) return;
        add(query_.together(match, nearness_.of(query_, entry_of(), clock_), query_.attribute), segment.base + candidate.document);
    }

    // Not by occurrence_starts(), which are worked out for all documents of the block.
    static void read_word(Cursor& cursor, uint32_t at, NativeEntry& entry) {
        const uint32_t* frequencies = cursor.frequencies();
        entry = {frequencies[at], std::accumulate(frequencies, frequencies + at, 0u), cursor.position_run()};
    }

    // Where a document of the window is in a list: in the cursor's block, or among all that were found; NO_INDEX: nowhere.
    static size_t find(OpenList& list, const Segment& segment, uint32_t document) {
        if (list.found != nullptr) {
            const uint32_t *lids = list.found->lids, lid = segment.base + document;
            const auto at = static_cast<size_t>(std::lower_bound(lids + list.at, lids + list.last, lid) - lids);
            return at < list.last && lids[at] == lid ? at : NO_INDEX;
        }
        list.cursor->return_to(list.block);
        return list.cursor->find(document);
    }

    static size_t worth_of(const OpenList& list, size_t at) {
        return list.found != nullptr ? at - list.first : size_t{list.cursor->block()} * BLOCK + at;
    }

    double matching() const {
        const auto early = [this](const NativeField& field, size_t l, const NativeEntry& found, uint64_t length) {
            return field.early(query_.lists[l].position(found, 0), length);
        };
        return query_.matching(entry_of(), [this](size_t field) { return lengths_[field]; }, early);
    }

    void add(double score, uint32_t lid) {
        const Scored hit{score, lid};
        if (best_.size() < k_) {
            best_.push_back(hit);
        } else if (hit < best_.front()) {
            std::pop_heap(best_.begin(), best_.end());
            best_.back() = hit;
        } else {
            return;
        }
        std::push_heap(best_.begin(), best_.end());
        if (part_.floor != nullptr && best_.size() == k_) part_.floor->raise(best_.front().score);
    }

    const Reader& reader_;
    const NativeQuery& query_;
    const uint64_t* hits_;
    const size_t words_;
    const uint32_t k_;
    Clock& clock_;
    const NativePart part_;
    uint32_t first_ = 0, last_ = 0;  // lids of the segment that are in the part
    std::vector<uint64_t> numbers_;  // by field, of its tables
    std::vector<NativeReading> readings_;
    std::vector<uint32_t> gains_;               // by set of lists; empty: there are too many
    double least_ = 0, slack_ = 0, scale_ = 0;  // what a hit in no list scores
    std::vector<std::unique_ptr<OpenList>> lists_;
    size_t skipped_ = 0;  // lists_[0..skipped_) bring no candidates
    uint64_t skipped_most_ = 0;
    uint64_t sums_[WINDOW] = {};  // by document of the window: sum << 32 | the set of its lists
    std::vector<Candidate> candidates_;
    std::vector<Scored> best_;          // a heap, the worst in front
    std::vector<NativeEntry> entries_;  // by list, of the hit that is looked at
    std::vector<int64_t> lengths_;      // by field, of the same
    NativeNearness nearness_;
    uint64_t searched_ = 0, counted_ = 0;  // hits of the windows that were searched
};

std::vector<NativeFound> read_found(const nb::dict& given, NativeQuery& query, size_t words, std::vector<const NativeFound*>& by_list) {
    std::vector<NativeFound> found;
    found.reserve(given.size());
    for (auto [number, arrays] : given) {
        const auto l = nb::cast<size_t>(number);
        const auto three = nb::cast<nb::tuple>(arrays);
        if (l >= query.lists.size()) throw nb::value_error("no such list");
        if (three.size() != 3) throw nb::value_error("lids, offsets and positions");
        const auto lids = as_given<uint32_t>(three[0]), offsets = as_given<uint32_t>(three[1]), positions = as_given<uint32_t>(three[2]);
        give_positions(query.lists[l], offsets, positions, lids.size());
        for (size_t i = 0; i < lids.size(); ++i)
            if ((i > 0 && lids.data()[i - 1] >= lids.data()[i]) || lids.data()[i] / 64 >= words)
                throw nb::value_error("lids do not rise, or are too large");
        found.push_back({lids.data(), offsets.data(), positions.data(), lids.size()});
        by_list[l] = &found.back();
    }
    return found;
}

nb::object best_native(const Reader& reader, In<double> numbers, const nb::list& tables, In<uint32_t> lists, const nb::dict& given,
                       In<double> term_weights, In<uint32_t> pairs, In<double> pair_weights, In<double> weights, In<uint64_t> hits,
                       uint32_t k, uint32_t first, uint32_t last, NativeFloor* floor) {
    NativeQuery query = read_native_query(reader, numbers, tables, lists, term_weights, pairs, pair_weights, weights);
    if (k == 0) throw nb::value_error("k must be positive");
    if (first % 64 != 0 || (last % 64 != 0 && last < reader.limit()))
        throw nb::value_error("parts begin and end with a word of the bitmap");
    if (floor == nullptr && (first > 0 || last < reader.limit())) throw nb::value_error("parts have a floor");
    if (hits.size() * 64 < reader.limit()) throw nb::value_error("the bitmap does not cover all documents");
    std::vector<const NativeFound*> by_list(query.lists.size(), nullptr);
    const std::vector<NativeFound> found = read_found(given, query, hits.size(), by_list);
    std::optional<NativeHits> best;
    Clock clock;
    {
        uint64_t postings = 0;
        for (const NativeList& list : query.lists) postings += reader.frequency(query.fields[list.field].index, list.term);
        const GilRelease unlocked(floor != nullptr || is_much(2 * postings + hits.size()));  // who asks for parts has much to do
        best = best_by_native_rank(reader, query, by_list, hits.data(), hits.size(), k, clock, NativePart{first, last, floor});
    }
    if (!best) return nb::none();
    auto lids = std::make_unique<std::vector<uint32_t>>(std::move(best->lids));
    auto scores = std::make_unique<std::vector<double>>(std::move(best->scores));
    return nb::make_tuple(own(std::move(lids)), own(std::move(scores)), best->searched, best->least);
}

}  // namespace

std::optional<NativeHits> best_by_native_rank(const Reader& reader, const NativeQuery& query, const std::vector<const NativeFound*>& found,
                                              const uint64_t* hits, size_t words, uint32_t k, Clock& clock, const NativePart& part) {
    if (!query.is_positive()) return std::nullopt;
    return NativeBest(reader, query, found, hits, words, k, clock, part).run();
}

void bind_native_best(nb::module_& m) {
    nb::class_<NativeFloor>(m, "NativeFloor").def(nb::init<>());
    m.def(
        "best_native", &best_native, nb::arg("reader"), nb::arg("numbers").noconvert(), nb::arg("tables"), nb::arg("lists").noconvert(),
        nb::arg("given"), nb::arg("term_weights").noconvert(), nb::arg("pairs").noconvert(), nb::arg("pair_weights").noconvert(),
        nb::arg("weights").noconvert(), nb::arg("hits").noconvert(), nb::arg("k"), nb::arg("first") = 0, nb::arg("last") = UINT32_MAX,
        nb::arg("floor").none() = nb::none(),
        "(lids, scores, hits searched in time, what is in no list scores at most; -inf where the time was over) of the best k of a\n"
        "bitmap's hits by nativeRank, best first; None where there is no bound for what they score, or fewer than k score more than what\n"
        "is in no list. `given`: number of a list -> (lids, offsets, positions) in place of postings. `first`, `last`,\n"
        "`floor`: of the hits with these lids alone; parts of the same search share a floor, and may give fewer than k.\n"
        "Twin: tests.oracles.native_scores.plain_native_scores, of all hits.");
}

}  // namespace paperwasp
