// TextMarker: marks the words of one query in texts of one field, in the whole text (bolding) or in a teaser of it.
//
// Works on all texts of a page of hits together: the words that no query met before are asked of the vocabulary at once.
//
// Threads: any number; nothing of it changes once it is made but the vocabulary, which has its own lock.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "clock.hpp"
#include "core.hpp"
#include "text/query_parts.hpp"
#include "text/teaser.hpp"
#include "text/vocabulary.hpp"

namespace paperwasp {

class TextMarker {
  public:
    // `parts`: a QueryParts; `vocabulary`: a Vocabulary; `tags`: what stands before and behind a marked word, and where text is left
    // out; `teaser`: how teasers are made; none: the text is bolded.
    TextMarker(nb::object parts, nb::object vocabulary, std::tuple<std::string, std::string, std::string> tags,
               std::optional<TeaserSettings::Given> teaser);

    const QueryParts& parts() const { return *query_; }
    Vocabulary& vocabulary() const { return *words_; }
    const Tags& tags() const { return tags_; }
    const TeaserSettings* teaser() const { return teaser_ ? &*teaser_ : nullptr; }

  private:
    nb::object parts_, vocabulary_;  // keep alive what the next point to
    const QueryParts* query_;
    Vocabulary* words_;
    Tags tags_;
    std::optional<TeaserSettings> teaser_;
};

// One text, the words of it that were looked at, and what they meet.
struct MarkedText {
    const TextMarker* marker;
    std::string_view text;  // UTF-8, or with `escaped` the inside of a JSON string
    bool escaped;
    bool is_readable = true;          // whether it is UTF-8, and has no escapes but those of control characters and marks
    bool is_complete = false;         // whether all forms were known
    std::vector<Span> words;          // in bytes
    std::vector<uint32_t> ends, met;  // met[ends[i]..ends[i + 1]]: what word i meets
    std::vector<std::string> notes;   // what each word is indexed as, where teasers measure that and it is not the word itself
    std::vector<Occurrence> occurrences;

    // Whether it is shown as it is.
    bool is_unchanged() const { return occurrences.empty() && marker->teaser() == nullptr; }

    // Adds what is shown: the text with its words of the query marked, or its teaser; as the inside of a JSON string if it is one. A
    // teaser needs the text without escapes: `escaped` is off.
    void write(std::string& to, Clock& clock) const;

  private:
    void write_bold(std::string& to) const;
};

// Looks through texts for the words of their queries. Python may be called, and other threads may run meanwhile. Throws OutOfTime.
void look_through(std::vector<MarkedText>& texts, Clock& clock);

}  // namespace paperwasp
