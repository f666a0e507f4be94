// WordFinder: the documents of those words of a query that are more than a term of the index. A run of a plan (plan_run.hpp) has one, which
// looks for each once, whoever needs it.
//
// Threads: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <utility>
#include <vector>

#include "plans/snapshot.hpp"

namespace paperwasp {

// Documents, and where a term stands in them: document i has positions[offsets[i]..offsets[i + 1]), one at least.
struct TermDocuments {
    std::vector<uint32_t> lids, offsets{0}, positions;
};

class WordFinder {
  public:
    explicit WordFinder(const Snapshot& snapshot) : snapshot_(snapshot) {}

    // The live documents that have all parts of a word, each of which is one term a field. Throws OutOfTime.
    const std::vector<uint32_t>& whole(const Word& word);

    // Where the terms of a match stand, in live documents: next to each other; or, of one that is part of a word, where all of the word is.
    // Throws OutOfTime.
    const TermDocuments& term(const WordMatch& match, const Word* whole);

    // A bitmap of some documents, which stays where it is. Throws OutOfTime.
    const uint64_t* bitmap_of(const std::vector<uint32_t>& lids);

  private:
    const Snapshot& snapshot_;
    std::map<const Word*, std::vector<uint32_t>> wholes_;
    std::map<std::pair<const WordMatch*, const Word*>, TermDocuments> terms_;
    std::deque<std::vector<uint64_t>> bitmaps_;
};

}  // namespace paperwasp
