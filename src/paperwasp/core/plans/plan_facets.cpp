// Facets of a plan: see plan_facets.hpp.
#include "plans/plan_facets.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <memory>
#include <optional>
#include <string_view>
#include <tuple>
#include <type_traits>
#include <utility>
#include <variant>

#include "attributes/group_rows.hpp"
#include "documents/json_number.hpp"
#include "documents/json_string.hpp"
#include "index/reader.hpp"
#include "plans/shared_parts.hpp"

namespace paperwasp {
namespace {

// Values are counted in a table of all between the least and the greatest, if these are not more than LEAST_SPAN, or than SPAN_OF_MATCH for
// each match.
constexpr size_t LEAST_SPAN = 1024, SPAN_OF_MATCH = 4;
// Matches are scored in runs that grow, since the first may show that no other matters. If one in DENSE_SHARE is asked for, all are scored.
constexpr size_t FIRST_SCORED = 64, MOST_SCORED = 1 << 13, DENSE_SHARE = 2;
constexpr size_t BLOCK_ROWS = 4096;                     // between two looks at the clock
constexpr size_t ROWS_OF_PART = 4096, MOST_PARTS = 16;  // that are numbered and scored apart
constexpr uint32_t NOT_SCORED = std::numeric_limits<uint32_t>::max();
constexpr double NO_SCORE = -std::numeric_limits<double>::infinity();

// The number of each match's value, and the value of each number.
struct Numbered {
    std::unique_ptr<uint32_t[]> numbers;
    std::vector<int64_t> values;
    std::vector<uint32_t> counts;  // of the matches with each value
};

// Runs of the matches, all about as long, which threads may share.
class RowParts {
  public:
    RowParts(size_t rows, size_t most_threads)
        : rows_(rows), count_(std::clamp<size_t>(rows / ROWS_OF_PART, 1, MOST_PARTS)), most_threads_(most_threads) {}

    size_t count() const { return count_; }

    // Calls run(part, first row, last row) for all parts.
    template <typename Run>
    void each(Run run) const {
        share_parts(count_, most_threads_, rows_, [&](size_t part) { run(part, rows_ * part / count_, rows_ * (part + 1) / count_); });
    }

  private:
    const size_t rows_, count_, most_threads_;
};

template <typename Value>
struct Bounds {
    Value least = std::numeric_limits<Value>::max(), most = std::numeric_limits<Value>::min();
};

// Numbers the values from the least on, and counts each.
template <typename Value>
void number_by_table(const Value* values, size_t rows, Bounds<Value> bounds, const RowParts& parts, Numbered& found) {
    const auto number_of = [=](Value value) {
        return static_cast<uint32_t>(static_cast<uint64_t>(value) - static_cast<uint64_t>(bounds.least));
    };
    const size_t span = size_t{number_of(bounds.most)} + 1;
    found.numbers.reset(new uint32_t[rows]);
    std::vector<std::vector<uint32_t>> counts(span * parts.count() <= rows ? parts.count() : 1);
    const auto number_part = [&](size_t part, size_t from, size_t to) {
        Clock clock;
        std::vector<uint32_t>& own = counts[part];
        own.resize(span);
        for (size_t start = from; start < to; start += BLOCK_ROWS) {
            clock.spend(2 * BLOCK_ROWS);
            for (size_t row = start, end = std::min(to, start + BLOCK_ROWS); row < end; ++row)
                ++own[found.numbers[row] = number_of(values[row])];
        }
    };
    if (counts.size() == 1)
        number_part(0, 0, rows);
    else
        parts.each(number_part);
    found.counts = std::move(counts[0]);
    for (size_t part = 1; part < counts.size(); ++part)
        for (size_t number = 0; number < span; ++number) found.counts[number] += counts[part][number];
    found.values.resize(span);
    for (size_t number = 0; number < span; ++number)
        found.values[number] = static_cast<int64_t>(bounds.least) + static_cast<int64_t>(number);
}

// False: a lid is beyond the column.
template <typename Value>
bool number_values(const In<Value>& column, const Matches& matches, const RowParts& parts, Numbered& found) {
    const size_t rows = matches.count;
    const uint32_t* const lids = matches.lids.get();
    if (rows == 0) return true;
    if (lids[rows - 1] >= column.size()) return false;
    const std::unique_ptr<Value[]> values(new Value[rows]);  // each is read once: the writer may change it meanwhile
    std::vector<Bounds<Value>> bounds(parts.count());
    parts.each([&](size_t part, size_t from, size_t to) {
        Clock clock;
        Bounds<Value> own;
        for (size_t start = from; start < to; start += BLOCK_ROWS) {
            clock.spend(2 * BLOCK_ROWS);
            for (size_t row = start, end = std::min(to, start + BLOCK_ROWS); row < end; ++row) {
                const Value value = __atomic_load_n(column.data() + lids[row], __ATOMIC_RELAXED);
                values[row] = value;
                own.least = std::min(own.least, value);
                own.most = std::max(own.most, value);
            }
        }
        bounds[part] = own;
    });
    Bounds<Value> all;
    for (const Bounds<Value>& each : bounds) all = {std::min(all.least, each.least), std::max(all.most, each.most)};
    const uint64_t last = static_cast<uint64_t>(all.most) - static_cast<uint64_t>(all.least);
    if (last < std::max(LEAST_SPAN, SPAN_OF_MATCH * rows)) {
        number_by_table(values.get(), rows, all, parts, found);
        return true;
    }
    Clock clock;
    const std::vector<int64_t> keys(values.get(), values.get() + rows);
    const RowGroups groups = group_keys(keys, clock);
    found.numbers.reset(new uint32_t[rows]);
    std::copy(groups.groups.begin(), groups.groups.end(), found.numbers.get());
    for (const uint32_t row : groups.first) found.values.push_back(keys[row]);
    found.counts.resize(found.values.size());
    clock.spend(static_cast<int64_t>(rows));
    for (const uint32_t number : groups.groups) ++found.counts[number];
    return true;
}

// Some matches one after another, whose scores are found when they are first asked for.
// Threads: one; runs of the same matches that have none in common may be scored at once.
class ScoredRun {
  public:
    ScoredRun(Matches& matches, size_t first) : matches_(matches), scored_until_(std::max(first, matches.scored_until)) {}

    // Finds the scores of the matches with these numbers, which rise.
    void score(const std::vector<uint32_t>& rows) {
        if (rows.empty()) return;
        const size_t from = rows.front(), to = size_t{rows.back()} + 1;
        // Where most are asked for, all between them are scored: whole blocks of postings are read faster than single ones are looked up.
        if (from >= scored_until_ && DENSE_SHARE * rows.size() >= to - from) {
            new_lids_.assign(matches_.lids.get() + from, matches_.lids.get() + to);
            matches_.score(new_lids_, new_scores_);
            std::copy(new_scores_.begin(), new_scores_.end(), matches_.scores.get() + from);
        } else {
            new_rows_.clear();
            new_lids_.clear();
            for (const uint32_t row : rows) {
                if (!std::isnan(matches_.scores[row])) continue;
                new_rows_.push_back(row);
                new_lids_.push_back(matches_.lids[row]);
            }
            if (!new_rows_.empty()) matches_.score(new_lids_, new_scores_);
            for (size_t i = 0; i < new_rows_.size(); ++i) matches_.scores[new_rows_[i]] = new_scores_[i];
        }
        scored_until_ = std::max(scored_until_, to);
    }

    // Of one whose score was found.
    double score_of(uint32_t row) const { return matches_.scores[row]; }
    size_t scored_until() const { return scored_until_; }

  private:
    Matches& matches_;
    size_t scored_until_;
    std::vector<uint32_t> new_rows_, new_lids_;
    std::vector<double> new_scores_;
};

// Counts the values of one list, and finds its first groups.
class FacetSearch {
  public:
    FacetSearch(const FacetList& list, Matches& matches) : list_(list), matches_(matches), parts_(matches.count, matches.most_threads) {}

    bool run(const SnapshotColumn& column, FacetGroups& found) {
        const auto number = [this](const auto& values) {
            if constexpr (std::is_floating_point_v<std::decay_t<decltype(values.data()[0])>>)
                return false;
            else
                return number_values(values, matches_, parts_, numbered_);
        };
        if (!std::visit(number, column.values)) return false;
        count();
        const size_t all = std::min(groups_.size(), list_.most);
        leave_first();
        if (!score_equal()) return false;
        sort_first(column.strings != nullptr);
        found.has_more = all > list_.shown;
        found.first = std::move(groups_);
        return true;
    }

  private:
    // Whether a group is before another by their counts.
    bool is_before(const FacetGroup& a, const FacetGroup& b) const {
        return list_.order < 0 ? a.count > b.count : list_.order > 0 && a.count < b.count;
    }

    void count() {
        const std::vector<uint32_t>& counts = numbered_.counts;
        clock_.spend(static_cast<int64_t>(counts.size()));
        for (size_t number = 0; number < counts.size(); ++number)
            if (counts[number] > 0)
                groups_.push_back({numbered_.values[number], counts[number], NO_SCORE, 0, static_cast<uint32_t>(number)});
    }

    // Leaves the groups that may be shown: those that are not behind the last one that is, by their counts.
    void leave_first() {
        if (list_.order == 0 || groups_.size() <= list_.shown) return;
        clock_.spend(static_cast<int64_t>(8 * groups_.size()));
        const auto last = groups_.begin() + static_cast<std::ptrdiff_t>(list_.shown) - 1;
        std::nth_element(groups_.begin(), last, groups_.end(), [this](const auto& a, const auto& b) { return is_before(a, b); });
        const uint64_t count = last->count;
        groups_.erase(std::partition(last, groups_.end(), [=](const FacetGroup& group) { return group.count == count; }), groups_.end());
    }

    // Finds the best scores of groups that are as large as others. False: a score is no number.
    bool score_equal() {
        sort([this](const FacetGroup& a, const FacetGroup& b) { return is_before(a, b); });
        std::vector<uint32_t> group_of(numbered_.values.size(), NOT_SCORED);
        bool is_any = false;
        for (size_t i = 0; i < groups_.size(); ++i) {
            const bool is_alone =
                (i == 0 || is_before(groups_[i - 1], groups_[i])) && (i + 1 == groups_.size() || is_before(groups_[i], groups_[i + 1]));
            if (is_alone && list_.order != 0) continue;  // without an order, groups show their scores
            group_of[groups_[i].number] = static_cast<uint32_t>(i);
            is_any = true;
        }
        if (!is_any) return true;
        if (!matches_.scores) {
            matches_.scores.reset(new double[matches_.count]);
            parts_.each([&](size_t, size_t from, size_t to) {
                std::fill(matches_.scores.get() + from, matches_.scores.get() + to, std::numeric_limits<double>::quiet_NaN());
            });
        }
        std::vector<BestOfPart> found(parts_.count());
        std::vector<std::atomic<size_t>> done_in(groups_.size());  // by group: the first part that has a best hit; no later one matters
        for (auto& part : done_in) part = parts_.count();
        parts_.each([&](size_t part, size_t from, size_t to) {
            std::vector<uint32_t> open_groups = group_of;
            for (size_t i = 0; i < groups_.size(); ++i)
                if (done_in[i] < part) open_groups[groups_[i].number] = NOT_SCORED;
            found[part] = score_part(from, to, std::move(open_groups));
            for (size_t i = 0; i < found[part].best.size(); ++i)
                if (found[part].best[i].first >= matches_.highest && part < done_in[i]) done_in[i] = part;
        });
        for (const BestOfPart& part : found) {  // in the order of their matches: of equal scores the first counts
            if (part.best.empty()) return false;
            for (size_t i = 0; i < groups_.size(); ++i)
                if (part.best[i].first > groups_[i].best) std::tie(groups_[i].best, groups_[i].best_row) = part.best[i];
            matches_.scored_until = std::max(matches_.scored_until, part.scored_until);
        }
        return true;
    }

    // By group: the best score of some matches, and the number of the first of them that has it.
    struct BestOfPart {
        std::vector<std::pair<double, uint32_t>> best;  // empty: a score is no number
        size_t scored_until = 0;
    };

    // group_of: by value, of groups that may have a better hit.
    BestOfPart score_part(size_t from, size_t to, std::vector<uint32_t> group_of) const {
        BestOfPart found;
        auto open = group_of.size() - static_cast<size_t>(std::count(group_of.begin(), group_of.end(), NOT_SCORED));
        found.best.assign(groups_.size(), {NO_SCORE, 0});
        Clock clock;
        ScoredRun run(matches_, from);
        std::vector<uint32_t> rows;
        size_t row = from;
        for (size_t most = FIRST_SCORED; open > 0 && row < to; most = std::min(2 * most, MOST_SCORED)) {
            const size_t begin = row;
            size_t taken = 0;
            rows.resize(most +
                        1);  // without a branch, which would be hard to foresee: each row is written, those not taken are written over
            for (; row < to && taken < most; ++row) {
                rows[taken] = static_cast<uint32_t>(row);
                taken += group_of[numbered_.numbers[row]] != NOT_SCORED;
            }
            rows.resize(taken);
            clock.spend(static_cast<int64_t>(row - begin));
            run.score(rows);
            for (const uint32_t each : rows) {
                uint32_t& number = group_of[numbered_.numbers[each]];
                if (number == NOT_SCORED) continue;
                const double score = run.score_of(each);
                if (!std::isfinite(score)) return {};
                auto& [best, best_row] = found.best[number];
                if (!(score > best)) continue;
                best = score;
                best_row = each;
                if (best < matches_.highest) continue;
                number = NOT_SCORED;
                --open;
            }
        }
        found.scored_until = run.scored_until();
        return found;
    }

    // Leaves as many as are left of all, and puts them in their order, strings but for their texts.
    void sort_first(bool are_strings) {
        const auto by_score = [this](const FacetGroup& a, const FacetGroup& b, auto then) {
            if (a.count != b.count && list_.order != 0) return is_before(a, b);
            return a.best != b.best ? a.best > b.best : then(a) < then(b);
        };
        sort([=](const FacetGroup& a, const FacetGroup& b) {
            return by_score(a, b, [](const FacetGroup& group) { return group.best_row; });
        });
        if (groups_.size() > list_.most) groups_.resize(list_.most);
        if (are_strings) return;
        sort([=](const FacetGroup& a, const FacetGroup& b) { return by_score(a, b, [](const FacetGroup& group) { return group.value; }); });
        if (groups_.size() > list_.shown) groups_.resize(list_.shown);
    }

    template <typename Before>
    void sort(Before before) {
        int64_t levels = 1;
        for (size_t left = groups_.size(); left > 1; left /= 2) ++levels;
        clock_.spend(static_cast<int64_t>(groups_.size()) * levels * 4);
        std::sort(groups_.begin(), groups_.end(), before);
    }

    const FacetList& list_;
    Matches& matches_;
    const RowParts parts_;
    Clock clock_;
    Numbered numbered_;
    std::vector<FacetGroup> groups_;
};

// What an id shows of a text: as Vespa's URIs, it ends before `#`, and not with a blank.
std::string_view in_id(std::string_view text) {
    text = text.substr(0, text.find('#'));
    while (!text.empty() && static_cast<uint8_t>(text.back()) <= ' ') text.remove_suffix(1);
    return text;
}

struct ShownGroup {
    const FacetGroup* group;
    std::string text;  // of strings
};

// The groups that are shown, in their order. False: a string is not known yet, or no text.
bool shown_groups(const FacetList& list, const SnapshotColumn& column, const std::vector<FacetGroup>& groups,
                  std::vector<ShownGroup>& shown) {
    std::string buffer;
    for (const FacetGroup& group : groups) {
        ShownGroup& each = shown.emplace_back(ShownGroup{&group, {}});
        if (column.strings == nullptr) continue;
        const std::optional<std::string_view> text = column.strings->text(static_cast<uint64_t>(group.value), buffer);
        if (!text) return false;
        each.text = *text;
    }
    const auto is_equal = [&](const ShownGroup& a, const ShownGroup& b) {
        return (list.order == 0 || a.group->count == b.group->count) && a.group->best == b.group->best;
    };
    for (auto start = shown.begin(); column.strings != nullptr && start != shown.end();) {
        const auto end = std::find_if_not(start, shown.end(), [&](const ShownGroup& each) { return is_equal(*start, each); });
        std::sort(start, end, [](const ShownGroup& a, const ShownGroup& b) { return a.text < b.text; });
        start = end;
    }
    if (shown.size() > list.shown) shown.resize(list.shown);
    return true;
}

void append_groups(const FacetList& list, const std::vector<ShownGroup>& shown, bool are_strings, std::string& to) {
    const size_t count = shown.size();
    for (size_t place = 0; place < count; ++place) {
        const FacetGroup& group = *shown[place].group;
        const std::string number = are_strings ? std::string() : std::to_string(group.value);
        if (place > 0) to += ',';
        to += are_strings ? "{\"id\":\"group:string:" : "{\"id\":\"group:long:";
        escape(are_strings ? in_id(shown[place].text) : number, to);
        to += "\",\"relevance\":";
        append_number(list.order == 0 ? group.best : static_cast<double>(count - place) / static_cast<double>(count), to);
        to += ",\"value\":\"";
        escape(are_strings ? shown[place].text : number, to);
        to += '"';
        for (size_t i = 0; i < list.counts.size(); ++i)
            ((to += i == 0 ? ",\"fields\":{" : ",") += list.counts[i]) += std::to_string(group.count);
        to += list.counts.empty() ? "}" : "}}";
    }
}

}  // namespace

Matches::Matches(const uint64_t* bitmap, size_t words, size_t most_threads, double highest, ScoreLids score)
    : count(count_bits(bitmap, bitmap, words)),
      most_threads(most_threads),
      highest(highest),
      score(std::move(score)),
      lids(new uint32_t[count]) {
    const RowParts parts(count, most_threads);
    std::vector<size_t> first_words{0}, first_rows{0};
    for (size_t part = 0; part < parts.count(); ++part) {
        const size_t from = first_words.back(), to = words * (part + 1) / parts.count();
        first_rows.push_back(first_rows.back() + count_bits(bitmap + from, bitmap + from, to - from));
        first_words.push_back(to);
    }
    parts.each([&](size_t part, size_t, size_t) {
        Clock().spend(static_cast<int64_t>(first_rows[part + 1] - first_rows[part]));
        uint32_t* to = lids.get() + first_rows[part];
        for (size_t word = first_words[part]; word < first_words[part + 1]; ++word)
            for (uint64_t bits = bitmap[word]; bits != 0; bits &= bits - 1)
                *to++ = static_cast<uint32_t>(64 * word + static_cast<size_t>(__builtin_ctzll(bits)));
    });
}

bool find_facet(const FacetList& list, const SnapshotColumn& column, Matches& matches, FacetGroups& found) {
    return FacetSearch(list, matches).run(column, found);
}

bool append_facets(const FacetRoot& root, const SnapshotColumn* const* columns, const FacetGroups* groups, std::string& to) {
    to += root.head;
    bool is_first = true;
    for (const FacetList& list : root.lists) {
        const SnapshotColumn& column = **columns++;
        const FacetGroups& found = *groups++;
        if (found.first.empty()) continue;
        std::vector<ShownGroup> shown;
        if (!shown_groups(list, column, found.first, shown)) return false;
        (to += is_first ? ",\"children\":[" : ",") += list.head;
        if (found.has_more) to += list.turn;
        to += ",\"children\":[";
        append_groups(list, shown, column.strings != nullptr, to);
        to += "]}";
        is_first = false;
    }
    to += is_first ? "}" : "]}";
    return true;
}

}  // namespace paperwasp
