// QueryParts: what query_parts.hpp declares.
#include "text/query_parts.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace paperwasp {
namespace {

constexpr uint32_t NOTHING = 0xFFFFFFFFu;
constexpr uint32_t MOST_FURTHER = 64;

bool is_continued(char c) { return (static_cast<uint8_t>(c) & 0xC0) == 0x80; }

size_t characters_of(std::string_view text) {
    return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return !is_continued(c); }));
}

// The text without its last character; empty text stays so.
std::string_view shortened(std::string_view text) {
    while (!text.empty() && is_continued(text.back())) text.remove_suffix(1);
    if (!text.empty()) text.remove_suffix(1);
    return text;
}

template <typename Map>
void add_found(const Map& map, std::string_view term, std::vector<uint32_t>& met) {
    const auto found = map.find(term);
    if (found != map.end()) met.insert(met.end(), found->second.begin(), found->second.end());
}

}  // namespace

QueryParts::QueryParts(const std::vector<QueryPart>& parts, uint32_t long_term, uint32_t further, const std::optional<std::string>& firsts)
    : given_(parts), further_(std::min(further, MOST_FURTHER)) {
    if (!firsts) firsts_.set();
    for (const char c : firsts.value_or("")) {
        if (static_cast<uint8_t>(c) < 0x80) firsts_.set(static_cast<uint8_t>(c));
    }
    for (const auto& [weight, ways] : given_) {
        const auto number = static_cast<uint32_t>(parts_.size());
        parts_.push_back({weight, {}});
        for (const QueryWay& way : ways) {
            if (way.empty()) throw std::invalid_argument("a way has words");
            Way kept{{}, way.size() == 1 ? add_further(way[0], long_term) : NOTHING};
            for (const QueryWord& word : way) kept.words.push_back(add_word(word));
            for (const uint32_t met : {kept.words[0], kept.further}) {
                if (met != NOTHING && (begun_[met].empty() || begun_[met].back() != number)) begun_[met].push_back(number);
            }
            parts_.back().ways.push_back(std::move(kept));
        }
    }
}

uint32_t QueryParts::add_word(const QueryWord& word) {
    const auto number = static_cast<uint32_t>(begun_.size());
    begun_.emplace_back();
    for (const std::string& term : word.first) {
        if (word.second) {
            prefixes_.emplace_back(term, number);
        } else {
            exact_[term].push_back(number);
        }
    }
    return number;
}

uint32_t QueryParts::add_further(const QueryWord& word, uint32_t long_term) {
    if (word.second || further_ == 0) return NOTHING;  // what goes further than a prefix meets it anyway
    uint32_t number = NOTHING;
    for (const std::string& term : word.first) {
        if (characters_of(term) <= long_term) continue;
        if (number == NOTHING) {
            number = static_cast<uint32_t>(begun_.size());
            begun_.emplace_back();
        }
        longer_[term].push_back(number);
    }
    return number;
}

void QueryParts::add_met(const Forms& forms, std::vector<uint32_t>& met) const {
    const size_t start = met.size();
    for (const std::string_view form : forms) {
        add_found(exact_, form, met);
        for (const auto& [prefix, number] : prefixes_) {
            if (form.substr(0, prefix.size()) == prefix) met.push_back(number);
        }
        if (longer_.empty()) continue;
        std::string_view shorter = form;
        for (uint32_t cut = 0; cut < further_; ++cut) {
            shorter = shortened(shorter);
            if (shorter.empty()) break;
            add_found(longer_, shorter, met);
        }
    }
    std::sort(met.begin() + static_cast<ptrdiff_t>(start), met.end());
    met.erase(std::unique(met.begin() + static_cast<ptrdiff_t>(start), met.end()), met.end());
}

int64_t QueryParts::add_occurrences(uint32_t first, const std::vector<uint32_t>& ends, const std::vector<uint32_t>& met,
                                    std::vector<Occurrence>& found) const {
    const size_t words = ends.size() - 1;
    const auto meets = [&](size_t word, uint32_t number) {
        const auto begin = met.begin() + ends[word], end = met.begin() + ends[word + 1];
        return number != NOTHING && std::binary_search(begin, end, number);
    };
    int64_t looked_at = 0;
    const auto stands = [&](const Way& way) {
        ++looked_at;
        if (words - first < way.words.size()) return false;
        if (meets(first, way.further)) return true;
        for (size_t i = 0; i < way.words.size(); ++i) {
            if (!meets(first + i, way.words[i])) return false;
        }
        return true;
    };
    std::vector<uint32_t> begun;
    for (uint32_t i = ends[first]; i < ends[first + 1]; ++i) begun.insert(begun.end(), begun_[met[i]].begin(), begun_[met[i]].end());
    std::sort(begun.begin(), begun.end());
    begun.erase(std::unique(begun.begin(), begun.end()), begun.end());
    for (const uint32_t number : begun) {
        const Part& part = parts_[number];
        const auto way = std::find_if(part.ways.begin(), part.ways.end(), stands);
        if (way != part.ways.end()) found.push_back({number, part.weight, first, static_cast<uint32_t>(way->words.size())});
    }
    return looked_at;
}

void bind_query_parts(nb::module_& m) {
    nb::class_<QueryParts>(m, "QueryParts", "The words and phrases that one query looks for in one field.")
        .def(nb::init<const std::vector<QueryPart>&, uint32_t, uint32_t, const std::optional<std::string>&>(), nb::arg("parts"),
             nb::arg("long_term"), nb::arg("further"), nb::arg("firsts").none());
}

}  // namespace paperwasp
