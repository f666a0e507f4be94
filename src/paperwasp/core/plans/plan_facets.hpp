// Facets of a plan: the first values of attributes among the matches, by their counts, as JSON.
//
//     matches, column → FacetGroups → JSON
//
// Groups are ordered by their counts. Documents are scored only where equally large groups compete for a place: then the group with the
// better hit comes first, and of equal ones that with the lower value. search/grouping/facets.py and search/grouping/shown_groups.py are
// the specification.
//
// Threads: all of it is one run's. The writer may store into columns meanwhile.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "clock.hpp"
#include "plans/snapshot.hpp"

namespace paperwasp {

// The list of the values of an attribute.
struct FacetList {
    std::string attribute;
    int order;                        // of counts: 1 rising, -1 falling; 0: groups are in the order of their best hits
    size_t most;                      // groups that are left of all, one at least
    size_t shown;                     // on the page, one at least
    std::string head;                 // the JSON of the list up to its label
    std::string turn;                 // what follows where more are left than are shown: the continuation
    std::vector<std::string> counts;  // of each group, the names of its count as JSON with the colon
};

// The lists of one statement.
struct FacetRoot {
    std::string head;  // the JSON of the root group up to its children
    std::vector<FacetList> lists;
};

struct FacetGroup {
    int64_t value;  // of a string: its code
    uint64_t count;
    double best;        // the score of the best hit, where it decides something
    uint32_t best_row;  // the number of the first match with that score
    uint32_t number;    // of the value, among all of the list
};

// The first groups of a list. Strings that are equal in count and best hit are in no order yet.
struct FacetGroups {
    std::vector<FacetGroup> first;
    bool has_more = false;  // than are shown
};

// Scores documents, whose lids rise. Any thread may call it.
using ScoreLids = std::function<void(const std::vector<uint32_t>& lids, std::vector<double>& scores)>;

// The matches, whose lids rise, and their scores, each of which is found when it is first asked for.
struct Matches {
    // The matches in a bitmap of `words` 64-bit words. most_threads: how many may share the work; 0: any number. highest: the most that a
    // match can score.
    Matches(const uint64_t* bitmap, size_t words, size_t most_threads, double highest, ScoreLids score);

    const size_t count, most_threads;
    const double highest;
    const ScoreLids score;
    // Not filled when they are made: the threads that do so first ask for the memory.
    const std::unique_ptr<uint32_t[]> lids;
    std::unique_ptr<double[]> scores;  // by match; NaN: not yet; nullptr: none
    size_t scored_until = 0;           // no match from here on has a score
};

// Finds the groups of a list. False: a score or lid is none. Throws OutOfTime.
bool find_facet(const FacetList& list, const SnapshotColumn& column, Matches& matches, FacetGroups& found);

// Appends a root group. The lists' columns and groups begin at these. False: a string is not known yet, or no text.
bool append_facets(const FacetRoot& root, const SnapshotColumn* const* columns, const FacetGroups* groups, std::string& to);

}  // namespace paperwasp
