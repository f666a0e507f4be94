// Teasers: what teaser.hpp declares. Names and order are those of the plain twin, search/show/teaser.py, where each step is explained.
#include "text/teaser.hpp"

#include <algorithm>
#include <limits>

namespace paperwasp {
namespace {

constexpr int64_t MIN_GAP = 8, MIN_SURROUND = 10, LONGEST_WORD = 64;
constexpr int64_t MOST = std::numeric_limits<int32_t>::max();
constexpr int64_t CANDIDATE_STEPS = 20;  // what looking at a candidate costs, in nanoseconds
// How a word and what it is indexed as are written, and what is put after each piece of such a text.
constexpr std::string_view ANCHOR = "\xEF\xBF\xB9", SEPARATOR = "\xEF\xBF\xBA", TERMINATOR = "\xEF\xBF\xBB";
constexpr char UNIT_END = '\x1f';

int64_t bounded(int64_t number) { return std::clamp<int64_t>(number, -MOST, MOST); }

// The whole part of a quotient, as Python's int(a / b).
int64_t quotient(double a, double b) { return static_cast<int64_t>(a / b); }

// Adds a piece of a text, without annotations.
void add_readable(std::string_view piece, std::string& to) {
    bool may_have_annotations = true;
    while (!piece.empty()) {
        const size_t anchor = may_have_annotations ? piece.find(ANCHOR) : std::string_view::npos;
        const size_t at = std::min(piece.find(UNIT_END), anchor);
        to += piece.substr(0, at);
        if (at == std::string_view::npos) return;
        if (at != anchor) {
            piece.remove_prefix(at + 1);
            continue;
        }
        const size_t word = at + ANCHOR.size();
        const size_t separator = piece.find(SEPARATOR, word);
        const size_t end = separator == std::string_view::npos ? separator : piece.find(TERMINATOR, separator + SEPARATOR.size());
        if (end == std::string_view::npos) {
            may_have_annotations = false;  // nor do the next: they would end at the same places
            piece.remove_prefix(at);
            continue;
        }
        to += piece.substr(word, separator - word);
        piece.remove_prefix(end + TERMINATOR.size());
    }
}

// Words of the query that stand close together: at most one occurrence of each part.
struct Match {
    Occurrence first;
    std::vector<uint32_t> parts, words;  // both sorted
    int64_t weight = 0;

    bool has(uint32_t part) const { return std::binary_search(parts.begin(), parts.end(), part); }

    void add(const Occurrence& found) {
        parts.insert(std::upper_bound(parts.begin(), parts.end(), found.part), found.part);
        weight += found.weight;
        for (uint32_t word = found.first; word < found.first + found.count; ++word) {
            const auto place = std::lower_bound(words.begin(), words.end(), word);
            if (place == words.end() || *place != word) words.insert(place, word);
        }
    }

    // Lower is better: parts of the query there, words between them, place.
    std::tuple<int64_t, int64_t, int64_t> rank() const {
        return {-weight, int64_t{words.back()} + 1 - words.front() - static_cast<int64_t>(words.size()), words.front()};
    }
};

struct Segment {
    int64_t start, end;
};

class Teaser {
  public:
    Teaser(std::string_view text, const std::vector<Span>& words, const TeaserSettings& settings, const Tags& tags, Clock& clock,
           std::string& to)
        : text_(text),
          words_(words),
          settings_(settings),
          tags_(tags),
          clock_(clock),
          to_(to),
          size_(static_cast<int64_t>(text.size())),
          surround_(std::max(settings.surround_max, MIN_SURROUND)) {}

    void write(const std::vector<Occurrence>& occurrences) {
        for (const Occurrence& found : occurrences)
            for (uint32_t word = found.first; word < found.first + found.count; ++word) places_.push_back(word);
        sort_once(places_);
        if (places_.empty()) {
            if (settings_.prefix) write_beginning();
        } else if (settings_.length + 4 * MIN_GAP > size_) {
            write_segments({{0, size_}});
        } else {
            write_parts(occurrences);
        }
    }

  private:
    static void sort_once(std::vector<uint32_t>& numbers) {
        std::sort(numbers.begin(), numbers.end());
        numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
    }

    int64_t start_of(size_t word) const { return words_[word].start; }
    int64_t end_of(size_t word) const { return words_[word].end; }

    // Whole words of the beginning.
    void write_beginning() {
        if (size_ <= settings_.length) return add_readable(text_, to_);
        int64_t shown = 0, units = 0, counted = 0;
        for (const Span& word : words_) {
            for (; counted < word.end; ++counted) units += text_[static_cast<size_t>(counted)] == UNIT_END;
            if (word.end - units > settings_.length) break;
            shown = word.end;
        }
        add_readable(text_.substr(0, static_cast<size_t>(shown)), to_);
        to_ += tags_.separator;
    }

    void write_parts(const std::vector<Occurrence>& occurrences) {
        std::vector<Match> matches = matches_of(occurrences);
        std::stable_sort(matches.begin(), matches.end(), [](const Match& a, const Match& b) { return a.rank() < b.rank(); });
        int64_t length = 0;
        const std::vector<Match> chosen = choose(matches, length);
        if (chosen.empty()) return write_beginning();
        std::vector<uint32_t> keys;
        for (const Match& match : chosen) keys.insert(keys.end(), match.words.begin(), match.words.end());
        sort_once(keys);
        write_segments(completed(segments_of(keys, around(chosen, keys, length))));
    }

    std::vector<Match> matches_of(const std::vector<Occurrence>& occurrences) {
        std::vector<uint32_t> parts;
        for (const Occurrence& found : occurrences) parts.push_back(found.part);
        sort_once(parts);
        const double fallback = static_cast<double>(settings_.winsize) * settings_.winsize_fallback_multiplier;
        int64_t complete_wanted = settings_.max_matches;
        std::vector<Match> found_matches, open, kept;
        for (const Occurrence& found : occurrences) {
            const int64_t start = start_of(found.first);
            if (complete_wanted <= 0) {
                const auto is_current = [&](const Match& match) { return start - start_of(match.first.first) < settings_.winsize; };
                const auto first = std::find_if(open.begin(), open.end(), is_current);
                found_matches.insert(found_matches.end(), std::make_move_iterator(open.begin()), std::make_move_iterator(first));
                open.erase(open.begin(), first);
            }
            if (static_cast<int64_t>(open.size()) < settings_.max_match_candidates) open.push_back({found, {}, {}});
            kept.clear();
            while (!open.empty() && !open.back().has(found.part)) {
                clock_.spend(CANDIDATE_STEPS);
                Match match = std::move(open.back());
                open.pop_back();
                match.add(found);
                if (static_cast<double>(start - start_of(match.first.first)) >= fallback) continue;
                if (match.parts.size() == parts.size()) {
                    --complete_wanted;
                    found_matches.push_back(std::move(match));
                } else {
                    kept.push_back(std::move(match));
                }
            }
            std::move(kept.rbegin(), kept.rend(), std::back_inserter(open));
        }
        std::move(open.begin(), open.end(), std::back_inserter(found_matches));
        return found_matches;
    }

    // The best matches that do not overlap, in the order of the text, and about how long a teaser of them would be.
    std::vector<Match> choose(const std::vector<Match>& matches, int64_t& length) {
        std::vector<Match> chosen;
        for (const Match& match : matches) {
            clock_.spend(CANDIDATE_STEPS * static_cast<int64_t>(1 + chosen.size()));
            const auto overlaps = [&](const Match& other) { return this->overlap(match.words, other.words); };
            if (std::any_of(chosen.begin(), chosen.end(), overlaps)) continue;
            chosen.push_back(match);
            const uint32_t first = match.words.front();
            length += end_of(match.words.back()) - start_of(first) + 2 * surround_ + MIN_GAP;
            length -= std::max<int64_t>(0, surround_ - first);
            if (static_cast<int64_t>(chosen.size()) >= settings_.max_matches && length >= settings_.min_length) break;
        }
        std::stable_sort(chosen.begin(), chosen.end(), [](const Match& a, const Match& b) { return a.words < b.words; });
        return chosen;
    }

    // As Vespa compares them: the byte where the first ends with the number of the second's first word.
    bool overlap(const std::vector<uint32_t>& a, const std::vector<uint32_t>& b) const {
        const bool in_order = a <= b;
        const std::vector<uint32_t>&first = in_order ? a : b, &second = in_order ? b : a;
        return end_of(first.back()) > second.front();
    }

    // Bytes before and after each word of the query that the wanted length leaves room for.
    int64_t around(const std::vector<Match>& chosen, const std::vector<uint32_t>& keys, int64_t length) const {
        if (length <= settings_.length) return surround_;
        int64_t sides = 0;
        for (const Match& match : chosen) sides += 2 * static_cast<int64_t>(match.parts.size());
        const auto wanted = static_cast<double>(settings_.length), parts = static_cast<double>(sides);
        const Outcome outcome = outcome_of(keys, std::max(MIN_SURROUND, quotient(wanted - 5 * parts / 2, parts)));
        const int64_t left = settings_.length - outcome.marked_bytes;
        int64_t share = std::max(MIN_SURROUND, quotient(static_cast<double>(left), parts));
        if (outcome.cut > 0 && settings_.length > outcome.length + MIN_SURROUND) {
            const int64_t spare = left - (outcome.length + MIN_SURROUND);
            share = std::max(MIN_SURROUND, share + quotient(static_cast<double>(spare), static_cast<double>(outcome.cut)));
        }
        return share;
    }

    struct Outcome {
        int64_t length, cut, marked_bytes;
    };

    Outcome outcome_of(const std::vector<uint32_t>& keys, int64_t around) const {
        Outcome found{0, 0, 0};
        int64_t end = 0, whole = around, shown = around;
        for (const uint32_t key : keys) {
            const int64_t gap = start_of(key) - end;
            if (gap <= 0) continue;
            found.marked_bytes += end_of(key) - start_of(key);
            found.cut += gap <= whole ? 0 : end > 0 ? 2 : 1;
            found.length += gap <= whole ? gap : shown;
            whole = 2 * around;
            shown = 2 * around + MIN_GAP;
            end = end_of(key);
        }
        const int64_t after = size_ - end_of(keys.back());
        return {found.length + std::min(after, around), found.cut + (after >= around), found.marked_bytes};
    }

    // What is shown, before words are completed.
    std::vector<Segment> segments_of(const std::vector<uint32_t>& keys, int64_t around) const {
        std::vector<Segment> segments{{std::max<int64_t>(0, start_of(keys[0]) - around), end_of(keys[0])}};
        for (size_t i = 1; i < keys.size(); ++i) {
            const int64_t start = start_of(keys[i]), end = end_of(keys[i]);
            if (start - segments.back().end <= 2 * around + MIN_GAP) {
                segments.back().end = end;
            } else {
                segments.back().end += around;
                segments.push_back({start - around, end});
            }
        }
        segments.back().end = std::min(segments.back().end + around, size_);
        return segments;
    }

    // Segments that begin and end with whole words, those that meet joined.
    std::vector<Segment> completed(const std::vector<Segment>& segments) const {
        std::vector<Segment> whole;
        for (const Segment& segment : segments) {
            const int64_t start = segment.start > 0 ? word_start(segment.start) : 0;
            const int64_t end = segment.end < size_ ? word_end(segment.end) : segment.end;
            if (!whole.empty() && start <= whole.back().end) {
                whole.back().end = end;
            } else {
                whole.push_back({start, end});
            }
        }
        return whole;
    }

    // The start of the word that `at` is in, or of the next one.
    int64_t word_start(int64_t at) const {
        const auto ends_later = [](int64_t place, const Span& word) { return place < word.end; };
        const auto word = std::upper_bound(words_.begin(), words_.end(), at, ends_later);
        if (word == words_.end()) return at;
        return at - word->start <= LONGEST_WORD || is_annotated(word->start) ? word->start : character_start(at);
    }

    // The end of the word that `at` is in, or of the one before.
    int64_t word_end(int64_t at) const {
        const auto begins_before = [](const Span& word, int64_t place) { return word.start < place; };
        auto word = std::lower_bound(words_.begin(), words_.end(), at, begins_before);
        if (word == words_.begin()) return at;
        --word;
        return word->end - at <= LONGEST_WORD || is_annotated(word->start) ? word->end : character_start(at);
    }

    // Whether a word stands there with what it is indexed as: such a word is never cut.
    bool is_annotated(size_t start) const { return text_.substr(start, ANCHOR.size()) == ANCHOR; }

    int64_t character_start(int64_t at) const {
        while (at > 0 && (static_cast<uint8_t>(text_[static_cast<size_t>(at)]) & 0xC0) == 0x80) --at;
        return at;
    }

    void write_segments(const std::vector<Segment>& segments) {
        for (const Segment& segment : segments) {
            if (segment.start > 0) to_ += tags_.separator;
            write_piece(segment.start, segment.end);
        }
        if (segments.back().end < size_) to_ += tags_.separator;
    }

    // A part of the text, with every word of the query in it marked, also those of no chosen match.
    void write_piece(int64_t start, int64_t end) {
        const auto begins_before = [&](uint32_t place, int64_t at) { return start_of(place) < at; };
        for (auto place = std::lower_bound(places_.begin(), places_.end(), start, begins_before); place != places_.end(); ++place) {
            if (end_of(*place) > end) break;
            add_readable(piece(start, start_of(*place)), to_);
            to_ += tags_.open;
            add_readable(piece(start_of(*place), end_of(*place)), to_);
            to_ += tags_.close;
            start = end_of(*place);
        }
        add_readable(piece(start, end), to_);
    }

    std::string_view piece(int64_t start, int64_t end) const {
        return start < end ? text_.substr(static_cast<size_t>(start), static_cast<size_t>(end - start)) : std::string_view();
    }

    std::string_view text_;
    const std::vector<Span>& words_;
    const TeaserSettings& settings_;
    const Tags& tags_;
    Clock& clock_;
    std::string& to_;
    int64_t size_, surround_;
    std::vector<uint32_t> places_;  // the numbers of all words to mark
};

}  // namespace

TeaserSettings::TeaserSettings(const Given& given)
    : length(bounded(std::get<0>(given))),
      max_matches(bounded(std::get<1>(given))),
      min_length(bounded(std::get<2>(given))),
      prefix(std::get<3>(given)),
      surround_max(bounded(std::get<4>(given))),
      winsize(bounded(std::get<5>(given))),
      winsize_fallback_multiplier(std::get<6>(given)),
      max_match_candidates(bounded(std::get<7>(given))),
      annotated(std::get<8>(given)) {}

AnnotatedText::AnnotatedText(std::string_view plain, const std::vector<Span>& spans, const std::vector<std::string>& notes) {
    uint32_t end = 0;
    for (size_t i = 0; i < spans.size(); ++i) {
        if (spans[i].start > end) (text += plain.substr(end, spans[i].start - end)) += UNIT_END;
        const std::string_view word = plain.substr(spans[i].start, spans[i].end - spans[i].start);
        const auto start = static_cast<uint32_t>(text.size());
        if (notes[i].empty()) {
            text += word;
        } else {
            ((((text += ANCHOR) += word) += SEPARATOR) += notes[i]) += TERMINATOR;
        }
        words.push_back({start, static_cast<uint32_t>(text.size())});
        text += UNIT_END;
        end = spans[i].end;
    }
    if (end < plain.size()) (text += plain.substr(end)) += UNIT_END;
}

void write_teaser(std::string_view text, const std::vector<Span>& words, const std::vector<Occurrence>& occurrences,
                  const TeaserSettings& settings, const Tags& tags, Clock& clock, std::string& to) {
    clock.spend(static_cast<int64_t>(text.size()));
    Teaser(text, words, settings, tags, clock, to).write(occurrences);
}

}  // namespace paperwasp
