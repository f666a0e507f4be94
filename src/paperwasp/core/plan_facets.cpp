// Facets of a plan: see plan_facets.hpp.
#include "plan_facets.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>
#include <variant>

#include "group_rows.hpp"
#include "json_number.hpp"
#include "json_string.hpp"

namespace paperwasp {
namespace {

// Values are counted in a table of all between the least and the greatest, if these are not more than LEAST_SPAN, or than SPAN_OF_MATCH for
// each match.
constexpr size_t LEAST_SPAN = 1024, SPAN_OF_MATCH = 4;
// Matches are scored in runs that grow, since the first may show that no other matters. If one in DENSE_SHARE is asked for, all are scored.
constexpr size_t FIRST_SCORED = 64, MOST_SCORED = 1 << 13, DENSE_SHARE = 2;
constexpr size_t BLOCK_ROWS = 4096;  // between two looks at the clock
constexpr uint32_t NOT_SCORED = std::numeric_limits<uint32_t>::max();
constexpr double NO_SCORE = -std::numeric_limits<double>::infinity();

// The number of each match's value, and the value of each number.
struct Numbered {
    std::vector<uint32_t> numbers;
    std::vector<int64_t> values;
};

// False: a lid is beyond the column.
template <typename Value>
bool number_values(const In<Value>& column, const std::vector<uint32_t>& lids, Clock& clock, Numbered& found) {
    const size_t rows = lids.size();
    if (rows == 0) return true;
    if (lids.back() >= column.size()) return false;
    std::vector<Value> values(rows);  // each is read once: the writer may change it meanwhile
    Value least = std::numeric_limits<Value>::max(), most = std::numeric_limits<Value>::min();
    for (size_t start = 0; start < rows; start += BLOCK_ROWS) {
        clock.spend(2 * BLOCK_ROWS);
        for (size_t row = start, end = std::min(rows, start + BLOCK_ROWS); row < end; ++row) {
            const Value value = __atomic_load_n(column.data() + lids[row], __ATOMIC_RELAXED);
            values[row] = value;
            least = std::min(least, value);
            most = std::max(most, value);
        }
    }
    const uint64_t last = static_cast<uint64_t>(most) - static_cast<uint64_t>(least);
    if (last >= std::max(LEAST_SPAN, SPAN_OF_MATCH * rows)) {
        const std::vector<int64_t> keys(values.begin(), values.end());
        RowGroups groups = group_keys(keys, clock);
        found.numbers = std::move(groups.groups);
        for (const uint32_t row : groups.first) found.values.push_back(keys[row]);
        return true;
    }
    clock.spend(static_cast<int64_t>(rows + last));
    found.numbers.resize(rows);
    for (size_t row = 0; row < rows; ++row)
        found.numbers[row] = static_cast<uint32_t>(static_cast<uint64_t>(values[row]) - static_cast<uint64_t>(least));
    found.values.resize(last + 1);
    for (size_t number = 0; number <= last; ++number) found.values[number] = static_cast<int64_t>(least) + static_cast<int64_t>(number);
    return true;
}

// Counts the values of one list, and finds its first groups.
class FacetSearch {
  public:
    FacetSearch(const FacetList& list, Matches& matches, Clock& clock) : list_(list), matches_(matches), clock_(clock) {}

    bool run(const SnapshotColumn& column, FacetGroups& found) {
        const auto number = [this](const auto& values) {
            if constexpr (std::is_floating_point_v<std::decay_t<decltype(values.data()[0])>>)
                return false;
            else
                return number_values(values, matches_.lids, clock_, numbered_);
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
        std::vector<uint32_t> counts(numbered_.values.size());
        clock_.spend(static_cast<int64_t>(numbered_.numbers.size() + counts.size()));
        for (const uint32_t number : numbered_.numbers) ++counts[number];
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
        size_t open = 0;  // groups that may have a better hit still
        for (size_t i = 0; i < groups_.size(); ++i) {
            const bool is_alone =
                (i == 0 || is_before(groups_[i - 1], groups_[i])) && (i + 1 == groups_.size() || is_before(groups_[i], groups_[i + 1]));
            if (is_alone && list_.order != 0) continue;  // without an order, groups show their scores
            group_of[groups_[i].number] = static_cast<uint32_t>(i);
            ++open;
        }
        std::vector<uint32_t> rows;
        const size_t end = numbered_.numbers.size();
        size_t row = 0;
        for (size_t most = FIRST_SCORED; open > 0 && row < end; most = std::min(2 * most, MOST_SCORED)) {
            const size_t from = row;
            size_t taken = 0;
            rows.resize(most +
                        1);  // without a branch, which would be hard to foresee: each row is written, those not taken are written over
            for (; row < end && taken < most; ++row) {
                rows[taken] = static_cast<uint32_t>(row);
                taken += group_of[numbered_.numbers[row]] != NOT_SCORED;
            }
            rows.resize(taken);
            clock_.spend(static_cast<int64_t>(row - from));
            matches_.score(rows);
            for (const uint32_t each : rows) {
                uint32_t& number = group_of[numbered_.numbers[each]];
                if (number == NOT_SCORED) continue;
                const double score = matches_.score_of(each);
                if (!std::isfinite(score)) return false;
                FacetGroup& group = groups_[number];
                if (!(score > group.best)) continue;
                group.best = score;
                group.best_row = each;
                if (group.best < matches_.highest) continue;
                number = NOT_SCORED;
                --open;
            }
        }
        return true;
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
    Clock& clock_;
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

void Matches::score(const std::vector<uint32_t>& rows) {
    if (rows.empty()) return;
    if (scores_.empty()) scores_.assign(lids.size(), std::numeric_limits<double>::quiet_NaN());
    const uint32_t from = rows.front(), to = rows.back() + 1;
    // Where most are asked for, all between them are scored: whole blocks of postings are read faster than single ones are looked up.
    if (from >= scored_until_ && DENSE_SHARE * rows.size() >= to - from) {
        new_lids_.assign(lids.begin() + from, lids.begin() + to);
        score_(new_lids_, new_scores_);
        std::copy(new_scores_.begin(), new_scores_.end(), scores_.begin() + from);
    } else {
        new_rows_.clear();
        new_lids_.clear();
        for (const uint32_t row : rows) {
            if (!std::isnan(scores_[row])) continue;
            new_rows_.push_back(row);
            new_lids_.push_back(lids[row]);
        }
        if (!new_rows_.empty()) score_(new_lids_, new_scores_);
        for (size_t i = 0; i < new_rows_.size(); ++i) scores_[new_rows_[i]] = new_scores_[i];
    }
    scored_until_ = std::max(scored_until_, to);
}

bool find_facet(const FacetList& list, const SnapshotColumn& column, Matches& matches, Clock& clock, FacetGroups& found) {
    return FacetSearch(list, matches, clock).run(column, found);
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
