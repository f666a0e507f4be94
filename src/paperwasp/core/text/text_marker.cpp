// TextMarker: what text_marker.hpp declares, and marking in strings. The plain twin is search/show/marking.py.
#include "text/text_marker.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <unordered_map>

#include "clock.hpp"
#include "documents/json_string.hpp"
#include "text/word_characters.hpp"

namespace paperwasp {
namespace {

constexpr size_t LONGEST_TEXT = 1 << 24;  // bytes; longer ones are left to others
constexpr int64_t WORD_STEPS = 40;        // what a word costs, in nanoseconds

// The words of one call that its vocabulary did not know.
struct Unknown {
    Vocabulary* vocabulary;
    std::unordered_map<std::string, size_t> numbers;
    std::vector<std::string> keys;                // those that are to be learned
    std::vector<std::vector<std::string>> forms;  // of those that were, by number

    // The forms of a word. False: they are to be learned.
    bool find(std::string_view key, Forms& found) {
        const auto [at, is_new] = numbers.try_emplace(std::string(key), forms.size() + keys.size());
        if (is_new) keys.emplace_back(key);
        found.clear();
        if (at->second >= forms.size()) return false;
        found.assign(forms[at->second].begin(), forms[at->second].end());
        return true;
    }

    void learn() {
        if (keys.empty()) return;
        std::vector<std::vector<std::string>> learned = vocabulary->learn(keys);
        std::move(learned.begin(), learned.end(), std::back_inserter(forms));
        keys.clear();
    }
};

// The next word of a text, at or after `at`, which moves behind it. False: there is none, or with is_readable off, it cannot be read.
bool next_word(const char*& at, const char* end, bool escaped, const WordCharacters& characters, std::string_view& word,
               bool& is_readable) {
    const char* start = nullptr;
    while (at < end) {
        const auto byte = static_cast<uint8_t>(*at);
        const char* before = at;
        bool is_in_word = false;
        if (byte >= 0x80) {
            const uint32_t character = read_character(at, end);
            if (character == NO_CHARACTER) return is_readable = false;
            is_in_word = characters.has(character);
        } else if (is_ascii_word(byte)) {
            ++at;
            is_in_word = true;
        } else if (start == nullptr) {
            if (escaped && byte == '\\') {
                if (read_escape(at, end) == NO_ESCAPE) return is_readable = false;
            } else {
                ++at;
            }
        }
        if (is_in_word) {
            if (start == nullptr) start = before;
        } else if (start != nullptr) {
            at = before;
            break;
        }
    }
    if (start == nullptr) return false;
    word = std::string_view(start, static_cast<size_t>(at - start));
    return true;
}

// What a word is indexed as; empty: as it is written, or as nothing.
std::string note_of(std::string_view word, const Forms& forms) {
    std::string note;
    if (forms.size() == 1 && forms[0] == word) return note;
    for (const std::string_view form : forms) {
        if (!note.empty()) note += ' ';
        note += form;
    }
    return note;
}

void look(MarkedText& text, Unknown& unknown, Clock& clock) {
    const TextMarker& marker = *text.marker;
    const bool is_annotated = marker.teaser() != nullptr && marker.teaser()->annotated;
    text.words.clear();
    text.met.clear();
    text.notes.clear();
    text.ends.assign(1, 0);
    text.is_complete = true;
    if (text.text.size() > LONGEST_TEXT) {
        text.is_readable = false;
        return;
    }
    clock.spend(static_cast<int64_t>(text.text.size()));
    const char* at = text.text.data();
    const char* const end = at + text.text.size();
    std::string_view word;
    std::string room;
    Forms forms;
    const auto reading = marker.vocabulary().reading();
    while (next_word(at, end, text.escaped, marker.vocabulary().characters(), word, text.is_readable)) {
        if (!marker.parts().may_begin_with(static_cast<uint8_t>(word[0]))) continue;
        clock.spend(WORD_STEPS);
        const std::string_view key = marker.vocabulary().key(word, room);
        if (!marker.vocabulary().find(key, forms) && !unknown.find(key, forms)) text.is_complete = false;
        marker.parts().add_met(forms, text.met);
        const auto start = static_cast<uint32_t>(word.data() - text.text.data());
        text.words.push_back({start, start + static_cast<uint32_t>(word.size())});
        text.ends.push_back(static_cast<uint32_t>(text.met.size()));
        if (is_annotated) text.notes.push_back(note_of(word, forms));
    }
}

Unknown& unknown_of(std::vector<Unknown>& all, Vocabulary* vocabulary) {
    const auto found = std::find_if(all.begin(), all.end(), [=](const Unknown& each) { return each.vocabulary == vocabulary; });
    if (found != all.end()) return *found;
    all.push_back({vocabulary, {}, {}, {}});
    return all.back();
}

}  // namespace

TextMarker::TextMarker(nb::object parts, nb::object vocabulary, std::tuple<std::string, std::string, std::string> tags,
                       std::optional<TeaserSettings::Given> teaser)
    : parts_(std::move(parts)),
      vocabulary_(std::move(vocabulary)),
      query_(nb::cast<const QueryParts*>(parts_)),
      words_(nb::cast<Vocabulary*>(vocabulary_)),
      tags_{std::get<0>(tags), std::get<1>(tags), std::get<2>(tags)} {
    if (query_ == nullptr || words_ == nullptr) throw std::invalid_argument("a marker has parts of a query and a vocabulary");
    if (teaser) teaser_.emplace(*teaser);
}

void look_through(std::vector<MarkedText>& texts, Clock& clock) {
    std::vector<Unknown> unknown;
    for (bool is_complete = false; !is_complete;) {
        is_complete = true;
        for (MarkedText& text : texts) {
            if (text.is_complete || !text.is_readable) continue;
            look(text, unknown_of(unknown, &text.marker->vocabulary()), clock);
            is_complete &= text.is_complete || !text.is_readable;
        }
        for (Unknown& each : unknown) each.learn();
    }
    for (MarkedText& text : texts) {
        for (uint32_t i = 0; i < text.words.size(); ++i) {
            if (text.ends[i + 1] == text.ends[i]) continue;
            clock.spend(WORD_STEPS * text.marker->parts().add_occurrences(i, text.ends, text.met, text.occurrences));
        }
    }
}

void MarkedText::write(std::string& to, Clock& clock) const {
    const TeaserSettings* teaser = marker->teaser();
    if (teaser == nullptr) return write_bold(to);
    if (!teaser->annotated) return write_teaser(text, words, occurrences, *teaser, marker->tags(), clock, to);
    const AnnotatedText annotated(text, words, notes);
    write_teaser(annotated.text, annotated.words, occurrences, *teaser, marker->tags(), clock, to);
}

void MarkedText::write_bold(std::string& to) const {
    std::vector<bool> is_marked(words.size(), false);
    for (const Occurrence& found : occurrences) std::fill_n(is_marked.begin() + found.first, found.count, true);
    size_t written = 0;
    for (size_t i = 0; i < words.size(); ++i) {
        if (!is_marked[i]) continue;
        to += text.substr(written, words[i].start - written);
        to += marker->tags().open;
        to += text.substr(words[i].start, words[i].end - words[i].start);
        to += marker->tags().close;
        written = words[i].end;
    }
    to += text.substr(written);
}

namespace {

nb::object mark(nb::str text, const TextMarker& marker) {
    Py_ssize_t size = 0;
    const char* at = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
    if (at == nullptr) {
        PyErr_Clear();
        return nb::none();
    }
    Clock clock;
    std::vector<MarkedText> texts(1);
    texts[0].marker = &marker;
    texts[0].text = std::string_view(at, static_cast<size_t>(size));
    look_through(texts, clock);
    if (!texts[0].is_readable) return nb::none();
    if (texts[0].is_unchanged()) return text;
    std::string shown;
    texts[0].write(shown, clock);
    return nb::str(shown.data(), shown.size());
}

}  // namespace

void bind_text_marker(nb::module_& m) {
    nb::class_<TextMarker>(m, "TextMarker", "Marks the words of one query in texts of one field.")
        .def(nb::init<nb::object, nb::object, std::tuple<std::string, std::string, std::string>, std::optional<TeaserSettings::Given>>(),
             nb::arg("parts"), nb::arg("vocabulary"), nb::arg("tags"), nb::arg("teaser").none());
    m.def("mark", &mark, nb::arg("text"), nb::arg("marker"),
          "The text with its words of the query marked, or its teaser. None where it has half of a surrogate pair, or is very long.");
}

}  // namespace paperwasp
