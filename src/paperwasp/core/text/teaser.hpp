// Teasers: of a long text, the parts around the words of the query. The plain twin, which says how, is search/show/teaser.py.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "clock.hpp"
#include "text/query_parts.hpp"

namespace paperwasp {

struct Tags {
    std::string open, close, separator;

    // Whether they stand in a JSON string as they are.
    bool are_plain() const {
        const auto is_plain = [](char c) { return static_cast<uint8_t>(c) >= 0x20 && c != '"' && c != '\\'; };
        const std::string all = open + close + separator;
        return std::all_of(all.begin(), all.end(), is_plain);
    }
};

struct Span {
    uint32_t start, end;
};

// Those of schema/teaser_settings.py, in bytes, and whether words are measured with what they are indexed as.
struct TeaserSettings {
    using Given = std::tuple<int64_t, int64_t, int64_t, bool, int64_t, int64_t, double, int64_t, bool>;
    explicit TeaserSettings(const Given& given);

    int64_t length, max_matches, min_length;
    bool prefix;
    int64_t surround_max, winsize;
    double winsize_fallback_multiplier;
    int64_t max_match_candidates;
    bool annotated;
};

// A text in which each word that is indexed otherwise than it is written stands with that, and where its words then stand.
struct AnnotatedText {
    std::string text;
    std::vector<Span> words;

    // notes[i]: what word i is indexed as; empty: as it is written.
    AnnotatedText(std::string_view plain, const std::vector<Span>& spans, const std::vector<std::string>& notes);
};

// Adds the teaser of a text of UTF-8, whose words stand at `words`; occurrences rise with their first word. Throws OutOfTime.
void write_teaser(std::string_view text, const std::vector<Span>& words, const std::vector<Occurrence>& occurrences,
                  const TeaserSettings& settings, const Tags& tags, Clock& clock, std::string& to);

}  // namespace paperwasp
