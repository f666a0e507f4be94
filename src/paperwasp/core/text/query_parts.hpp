// QueryParts: the words and phrases that one query looks for in one field, and where in a text they stand.
//
// A part is what counts as one thing in the query: a word or phrase, or several of which any will do (its ways). A word of a text is
// one of the query if one of its forms is one of the word's terms, or begins with it where the word is a prefix. A way of one word is
// met by a word that goes a little further than a long term too. Immutable once built: any thread.
#pragma once

#include <bitset>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core.hpp"
#include "text/vocabulary.hpp"

namespace paperwasp {

using QueryWord = std::pair<std::vector<std::string>, bool>;   // terms, and whether they are prefixes
using QueryWay = std::vector<QueryWord>;                       // words one after the other
using QueryPart = std::pair<uint32_t, std::vector<QueryWay>>;  // how many times the query has it, and its ways

// One place in a text where a part stands.
struct Occurrence {
    uint32_t part, weight;
    uint32_t first, count;  // its words in the text
};

class QueryParts {
  public:
    // `long_term`: terms of more characters than that are met by words up to `further` characters longer. `firsts`: the characters of
    // ASCII that words of the query begin with, where no other word is to be looked at; none: all are.
    QueryParts(const std::vector<QueryPart>& parts, uint32_t long_term, uint32_t further, const std::optional<std::string>& firsts);
    QueryParts(const QueryParts&) = delete;  // terms are found by where they are
    QueryParts& operator=(const QueryParts&) = delete;

    // Whether a word that begins with this byte is looked at; those beyond ASCII all are.
    bool may_begin_with(uint8_t byte) const { return byte >= 0x80 || firsts_[byte]; }

    // Adds what a word with these forms meets: numbers that only `occurrences_at` understands.
    void add_met(const Forms& forms, std::vector<uint32_t>& met) const;

    // Adds the parts that stand at word `first`, in their order. met[ends[i]..ends[i + 1]] is what word i meets. Returns how many ways
    // were looked at.
    int64_t add_occurrences(uint32_t first, const std::vector<uint32_t>& ends, const std::vector<uint32_t>& met,
                            std::vector<Occurrence>& found) const;

  private:
    struct Way {
        std::vector<uint32_t> words;  // what each word must meet
        uint32_t further;             // or, of a way of one word, this
    };
    struct Part {
        uint32_t weight;
        std::vector<Way> ways;
    };

    uint32_t add_word(const QueryWord& word);
    uint32_t add_further(const QueryWord& word, uint32_t long_term);

    std::vector<Part> parts_;
    std::unordered_map<std::string_view, std::vector<uint32_t>> exact_, longer_;  // term → what a word with it meets
    std::vector<std::pair<std::string_view, uint32_t>> prefixes_;
    std::vector<std::vector<uint32_t>> begun_;  // by what is met: the parts that may stand there
    std::vector<QueryPart> given_;              // what the terms point into
    uint32_t further_;
    std::bitset<128> firsts_;
};

}  // namespace paperwasp
