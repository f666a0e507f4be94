// What words that are more than a term are found in: see plan_finds.hpp.
#include "plan_finds.hpp"

#include "clock.hpp"
#include "phrase.hpp"

namespace paperwasp {
namespace {

WholeDocuments find_whole(const Reader& reader, const Word& word, const uint64_t* live) {
    const size_t parts = word.parts.size();
    WholeDocuments found;
    found.offsets.assign(parts, {0});
    Clock clock;
    std::vector<uint32_t> frequencies(parts);
    for (const Segment& segment : reader.segments) {
        std::vector<Cursor> cursors;
        for (const WordPart& part : word.parts) {
            const WordMatch& match = part.matches[0];
            const FieldIndex& field_index = segment.field_indexes[match.field];
            const uint32_t place = field_index.header == nullptr ? NO_INDEX : field_index.find(match.terms[0]);
            if (place == NO_INDEX) break;
            cursors.emplace_back(field_index, place);
        }
        if (cursors.size() < parts) continue;
        size_t lead = 0;
        for (size_t i = 1; i < parts; ++i)
            if (cursors[i].frequency() < cursors[lead].frequency()) lead = i;
        for (Cursor& rarest = cursors[lead]; !rarest.exhausted(); rarest.next_block()) {
            clock.spend(static_cast<int64_t>(8 * BLOCK * parts));
            const uint32_t* documents = rarest.documents();
            for (uint32_t i = 0, n = rarest.count(); i < n; ++i) {
                if (!accepts(live, segment.base + documents[i])) continue;
                frequencies[lead] = rarest.frequencies()[i];
                size_t part = 0;
                for (; part < parts; ++part) {
                    if (part == lead) continue;
                    Cursor& other = cursors[part];
                    other.shallow_seek(documents[i]);
                    const uint32_t at = other.exhausted() ? NO_INDEX : other.find(documents[i]);
                    if (at == NO_INDEX) break;
                    frequencies[part] = other.frequencies()[at];
                }
                if (part < parts) continue;
                found.lids.push_back(segment.base + documents[i]);
                for (size_t j = 0; j < parts; ++j) found.offsets[j].push_back(found.offsets[j].back() + frequencies[j]);
            }
        }
    }
    return found;
}

}  // namespace

const PhraseDocuments& PlanFinds::phrase(const WordMatch& match) {
    const auto [found, is_new] = phrases_.try_emplace(&match);
    PhraseDocuments& documents = found->second;
    if (is_new)
        find_phrase(*snapshot_.reader, match.field, match.terms.data(), match.terms.size(), snapshot_.live->data(),
                    {documents.lids, documents.offsets, documents.positions});
    return documents;
}

const WholeDocuments& PlanFinds::whole(const Word& word) {
    const auto [found, is_new] = wholes_.try_emplace(&word);
    if (is_new) found->second = find_whole(*snapshot_.reader, word, snapshot_.live->data());
    return found->second;
}

const uint64_t* PlanFinds::bitmap_of(const std::vector<uint32_t>& lids) {
    std::vector<uint64_t>& bitmap = bitmaps_.emplace_back(snapshot_.live->size(), 0);
    for (const uint32_t lid : lids) bitmap[lid >> 6] |= uint64_t{1} << (lid & 63);
    return bitmap.data();
}

}  // namespace paperwasp
