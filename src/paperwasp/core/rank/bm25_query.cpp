// A query for the best documents by BM25: see bm25_query.hpp.
#include "rank/bm25_query.hpp"

#include <algorithm>
#include <functional>
#include <limits>

namespace paperwasp {
namespace {

constexpr uint64_t STEPS_OF_CANDIDATE = 50;  // to look a document up in the other lists, about
constexpr uint64_t POSTINGS_OF_STEP = 2;     // most are skipped: measured on 60,000 and 200,000 abstracts, 0.2 to 0.6 ns each

Found found_of(const Reader& reader, const In<uint32_t>& lids, const In<uint32_t>& offsets) {
    const Found found{lids.data(), offsets.data(), lids.size()};
    const size_t n = lids.size();
    if (offsets.size() != n + 1) throw nb::value_error("one offset for each document that is found, and one more");
    for (size_t i = 0; i < n; ++i) {
        if (found.lid(i) >= reader.limit() || (i > 0 && found.lid(i) <= found.lid(i - 1)))
            throw nb::value_error("documents that are found must ascend below the limit");
        if (offsets.data()[i] >= offsets.data()[i + 1]) throw nb::value_error("a document that is found has an occurrence");
    }
    return found;
}

}  // namespace

PlainPostings Found::in(const Segment& segment, const uint16_t* lengths, double average_length) const {
    PlainPostings postings;
    const auto from = static_cast<size_t>(std::lower_bound(lids, lids + count, segment.base) - lids);
    const auto to = static_cast<size_t>(std::lower_bound(lids + from, lids + count, segment.base + segment.documents) - lids);
    postings.reserve(to - from);
    for (size_t i = from; i < to; ++i) postings.add(lid(i) - segment.base, frequency(i), lengths, average_length);
    return postings;
}

void Query::add(const QueryTerm& term, const Found* found) {
    terms.push_back(term);
    const auto same =
        std::find_if(lists.begin(), lists.end(), [&](const QueryList& list) { return list.found == found && list.term.reads_as(term); });
    list_of.push_back(static_cast<uint32_t>(same - lists.begin()));
    if (same == lists.end())
        lists.push_back({term, found});
    else
        same->term.weight += term.weight;
}

uint64_t Query::postings(const Reader& reader) const {
    uint64_t total = 0;
    for (const QueryList& list : lists) total += list.frequency(reader);
    return total;
}

SegmentLists Query::in(const Segment& segment, Clock& clock) const {
    SegmentLists here;
    here.lists.reserve(lists.size());
    here.plain.reserve(lists.size());  // lists keep pointers into it
    std::vector<uint32_t> numbers(lists.size(), NO_INDEX);
    for (size_t i = 0; i < lists.size(); ++i) {
        const auto& [term, found] = lists[i];
        const FieldIndex& field_index = segment.field_indexes[term.field];
        if (field_index.header == nullptr) continue;
        if (found != nullptr) {
            PlainPostings postings = found->in(segment, field_index.field_lengths, term.average_length);
            if (postings.documents.empty()) continue;
            here.plain.push_back(std::move(postings));
            here.lists.emplace_back(term, field_index, here.plain.back());
        } else {
            const uint32_t place = field_index.find(term.term);
            if (place == NO_INDEX) continue;
            here.lists.emplace_back(term, field_index, place, segment.kept_bits(term.field, place, clock), segment.base & 63);
        }
        numbers[i] = static_cast<uint32_t>(here.lists.size() - 1);
    }
    for (const uint32_t list : list_of) here.of_term.push_back(numbers[list]);
    return here;
}

double floor_of(const Reader& reader, const Query& query, uint32_t k, const uint64_t* accept) {
    double floor = 0;
    std::vector<double> weights;
    for (const auto& [term, found] : query.lists) {
        if (found != nullptr || static_cast<float>(term.k1) != DEFAULT_K1 || static_cast<float>(term.b) != DEFAULT_B) continue;
        weights.clear();
        const double average_length = term.average_length, weight = term.weight;
        reader.for_each(term.field, term.term, [&](const Segment& segment, const FieldIndex& field_index, uint32_t place) {
            const uint32_t start = field_index.champion_starts[place];
            if (start == NO_INDEX) return;
            const double drift = std::min(1.0, average_length / field_index.header->average_length);
            for (uint32_t i = start; i < start + CHAMPIONS; ++i)
                if (accepts(accept, segment.base + field_index.champion_docs[i]))
                    weights.push_back(field_index.champion_weights[i] * drift * weight);
        });
        if (weights.size() < k) continue;
        std::nth_element(weights.begin(), weights.begin() + (k - 1), weights.end(), std::greater<>());
        floor = std::max(floor, weights[k - 1]);
    }
    // A hair below: a document that has just this score must still enter.
    return floor * (1 - 2 * static_cast<double>(SLACK));
}

uint64_t count_any(const Reader& reader, const Query& query, const Accepted& accept, Clock& clock) {
    if (accept.bitmap == nullptr && query.lists.size() == 1) return query.lists[0].frequency(reader);
    thread_local std::vector<uint64_t> words;
    words.assign(reader.limit() / 64 + 1, 0);
    for (const auto& [term, found] : query.lists) {
        const uint32_t field = term.field;
        if (found == nullptr)
            reader.for_each(field, term.term, [&](const Segment& segment, const FieldIndex&, uint32_t place) {
                segment.set_term(field, place, words.data(), clock);
            });
        for (size_t i = 0; found != nullptr && i < found->count; ++i) words[found->lid(i) >> 6] |= uint64_t{1} << (found->lid(i) & 63);
    }
    if (accept.bitmap == nullptr) return count_bits(words.data(), words.data(), words.size());
    return count_bits(words.data(), accept.bitmap, std::min(words.size(), accept.words));
}

std::vector<std::optional<Found>> read_found(const Reader& reader, size_t terms, const std::vector<FoundTuple>& found) {
    std::vector<std::optional<Found>> by_term(terms);
    for (const auto& [term, lids, offsets] : found) {
        if (term >= terms || by_term[term]) throw nb::value_error("documents are found of a term of the query, once");
        by_term[term] = found_of(reader, lids, offsets);
    }
    return by_term;
}

Query read_query(const Reader& reader, const std::vector<TermTuple>& terms, const std::vector<std::optional<Found>>& found) {
    Query query;
    for (size_t i = 0; i < terms.size(); ++i) {
        const auto [field, term, weight, k1, b, average] = terms[i];
        check_field(reader, field);
        if (!(weight >= 0) || !(k1 >= 0) || !(b >= 0 && b <= 1)) throw nb::value_error("weights must not be negative");
        query.add({field, term, weight, k1, b, average > 0 ? average : 1}, found[i] ? &*found[i] : nullptr);
    }
    return query;
}

uint64_t steps_of(const Reader& reader, const Query& query, bool all, bool count) {
    if (!all) {
        uint64_t steps = query.postings(reader) / POSTINGS_OF_STEP;
        for (const QueryList& list : query.lists)
            steps += count && list.found == nullptr ? reader.steps_of(list.term.field, list.term.term) : 0;
        return steps;
    }
    uint64_t least = query.lists.empty() ? 0 : std::numeric_limits<uint64_t>::max();
    for (const QueryList& list : query.lists) least = std::min(least, list.frequency(reader));
    return STEPS_OF_CANDIDATE * least;
}

}  // namespace paperwasp
