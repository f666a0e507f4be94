// The bm25 of some documents, term by term. Sums are made in the order in which core/rank/top_k.cpp makes them, so that numbers are the
// same to the last bit.
#include "plans/bm25_scores.hpp"

#include "index/visit_lids.hpp"

namespace paperwasp {
namespace {

// How often a term was found in each of the lids.
void count_found(const TermDocuments& documents, const std::vector<uint32_t>& lids, std::vector<int32_t>& occurrences) {
    size_t at = 0;
    for (size_t i = 0; i < lids.size(); ++i) {
        while (at < documents.lids.size() && documents.lids[at] < lids[i]) ++at;
        const bool is_there = at < documents.lids.size() && documents.lids[at] == lids[i];
        occurrences[i] = is_there ? static_cast<int32_t>(documents.offsets[at + 1] - documents.offsets[at]) : 0;
    }
}

}  // namespace

void score_by_bm25(const Reader& reader, const std::vector<ScoredTerm>& terms, const std::vector<uint32_t>& lids,
                   std::vector<double>& scores, Clock& clock) {
    const size_t n = lids.size();
    scores.assign(n, 0.0);
    std::vector<int32_t> lengths(n), occurrences(n);
    std::vector<double> of_field(n);
    for (size_t t = 0; t < terms.size();) {
        const uint32_t field = terms[t].term.field;
        read_lengths(reader, field, lids.data(), n, lengths.data());
        std::fill(of_field.begin(), of_field.end(), 0.0);
        for (; t < terms.size() && terms[t].term.field == field; ++t) {
            const auto& [term, documents] = terms[t];
            clock.spend(static_cast<int64_t>(2 * n));
            if (documents != nullptr)
                count_found(*documents, lids, occurrences);
            else
                read_occurrences(reader, field, term.term, lids.data(), n, occurrences.data());
            for (size_t i = 0; i < n; ++i)
                if (occurrences[i] > 0) of_field[i] += term.score(static_cast<uint32_t>(occurrences[i]), static_cast<uint32_t>(lengths[i]));
        }
        for (size_t i = 0; i < n; ++i) scores[i] += of_field[i];
    }
}

}  // namespace paperwasp
