// What the words of a query that are more than a term are found in: looked for once in a run, whoever needs it.
#pragma once

#include <cstdint>
#include <map>
#include <vector>

#include "snapshot.hpp"

namespace paperwasp {

// Live documents, and where terms that stand next to each other begin in them: document i has positions[offsets[i]..offsets[i + 1]).
struct PhraseDocuments {
    std::vector<uint32_t> lids, offsets{0}, positions;
};

// The live documents with all parts of a word, and of each part the offsets of its occurrences.
struct WholeDocuments {
    std::vector<uint32_t> lids;
    std::vector<std::vector<uint32_t>> offsets;
};

class PlanFinds {
  public:
    explicit PlanFinds(const Snapshot& snapshot) : snapshot_(snapshot) {}

    // The documents of terms next to each other. Throws OutOfTime.
    const PhraseDocuments& phrase(const WordMatch& match);

    // The documents of a word each part of which is one term of one field. Throws OutOfTime.
    const WholeDocuments& whole(const Word& word);

    // A bitmap of some documents, which stays where it is.
    const uint64_t* bitmap_of(const std::vector<uint32_t>& lids);

  private:
    const Snapshot& snapshot_;
    std::map<const WordMatch*, PhraseDocuments> phrases_;
    std::map<const Word*, WholeDocuments> wholes_;
    std::vector<std::vector<uint64_t>> bitmaps_;
};

}  // namespace paperwasp
