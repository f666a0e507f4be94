// The documents of words that are more than a term: see word_finder.hpp.
#include "plans/word_finder.hpp"

#include "clock.hpp"
#include "index/phrase.hpp"
#include "index/visit_lids.hpp"
#include "rank/weak_and.hpp"

namespace paperwasp {
namespace {

TermDocuments documents_among(const Reader& reader, const WordMatch& match, const std::vector<uint32_t>& lids) {
    TermDocuments found;
    visit_lids(reader, match.field, match.terms[0], lids.data(), lids.size(), [&](size_t i, Cursor& cursor, uint32_t at) {
        const size_t from = found.positions.size();
        found.positions.resize(from + cursor.frequencies()[at]);
        cursor.positions(at, found.positions.data() + from);
        found.lids.push_back(lids[i]);
        found.offsets.push_back(static_cast<uint32_t>(found.positions.size()));
    });
    return found;
}

}  // namespace

const std::vector<uint32_t>& WordFinder::whole(const Word& word) {
    const auto [known, is_new] = wholes_.try_emplace(&word);
    if (!is_new) return known->second;
    std::vector<WeakChild> parts;
    for (const WordPart& part : word.parts) {
        WeakChild& child = parts.emplace_back();
        child.score = 1;
        for (const WordMatch& match : part.matches) child.words.emplace_back(match.field, match.terms[0]);
    }
    const In<uint64_t>& live = *snapshot_.live;
    const Reader& reader = *snapshot_.reader;
    std::vector<uint64_t> found(live.size(), 0);
    Clock clock;
    const auto all_parts = static_cast<int64_t>(parts.size());
    find_weakly(reader, parts, live.data(), live.size(), reader.limit() + 1, all_parts, found.data(), clock);
    known->second = lids_of(found.data(), found.size());
    clock.spend(static_cast<int64_t>(found.size() + known->second.size()));
    return known->second;
}

const TermDocuments& WordFinder::term(const WordMatch& match, const Word* whole) {
    const auto [known, is_new] = terms_.try_emplace({&match, whole});
    TermDocuments& found = known->second;
    if (is_new && whole != nullptr)
        found = documents_among(*snapshot_.reader, match, this->whole(*whole));
    else if (is_new)
        find_phrase(*snapshot_.reader, match.field, match.terms.data(), match.terms.size(), snapshot_.live->data(),
                    {found.lids, found.offsets, found.positions});
    return found;
}

const uint64_t* WordFinder::bitmap_of(const std::vector<uint32_t>& lids) {
    Clock().spend(static_cast<int64_t>(snapshot_.live->size() + lids.size()));
    std::vector<uint64_t>& bitmap = bitmaps_.emplace_back(snapshot_.live->size(), 0);
    for (const uint32_t lid : lids) bitmap[lid >> 6] |= uint64_t{1} << (lid & 63);
    return bitmap.data();
}

}  // namespace paperwasp
