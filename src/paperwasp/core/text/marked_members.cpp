// Marking words of the query in members of documents that are JSON, for all hits of a page together.
#include <nanobind/stl/tuple.h>

#include <deque>
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"
#include "documents/json_string.hpp"
#include "documents/json_text.hpp"
#include "text/text_marker.hpp"
#include "text/word_set.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t HEAD_CHARACTERS = 256;  // by which a language is detected: LOOKED_AT_CHARACTERS of text/linguistics/detection.py
constexpr uint32_t FOREIGN_WORDS = 2;      // below which a text of ASCII is taken for English

// A member of JSON objects in which words are marked.
struct MarkedMember {
    std::string_view key;  // as JSON, with the colon
    const TextMarker* marker;
    const WordSet* foreign;  // nullptr: the language of a text is no matter
};

// The texts of all objects.
struct Texts {
    std::vector<MarkedText> marked;
    std::vector<std::string_view> insides;  // where each stands in its JSON
    std::deque<std::string> unescaped;      // of those that teasers are made of
};

// Whether the text within a JSON string is detected as English, or says nothing: its beginning is of ASCII, and has next to no word of
// another language.
bool is_english(std::string_view escaped, const WordSet& foreign) {
    uint8_t head[HEAD_CHARACTERS];
    size_t size = 0;
    const char* at = escaped.data();
    const char* const end = at + escaped.size();
    while (at < end && size < HEAD_CHARACTERS) {
        int character = static_cast<uint8_t>(*at);
        if (character >= 0x80) return false;
        if (character == '\\') {
            character = read_escape(at, end);
            if (character == NO_ESCAPE) return false;
        } else {
            ++at;
        }
        const auto byte = static_cast<uint8_t>(character);
        const bool is_white = byte == ' ' || (byte >= 0x09 && byte <= 0x0D) || (byte >= 0x1C && byte <= 0x1F);
        if (size > 0 || !is_white) head[size++] = byte;
    }
    return !foreign.has(head, size, FOREIGN_WORDS);
}

// Adds a text. False: it may be in another language than English, or is an empty one to make a teaser of, which is left out.
bool add_text(std::string_view inside, const MarkedMember& member, Texts& texts) {
    if (member.foreign != nullptr && !is_english(inside, *member.foreign)) return false;
    MarkedText text{};
    text.marker = member.marker;
    text.text = inside;
    text.escaped = member.marker->teaser() == nullptr;
    if (!text.escaped) {
        texts.unescaped.emplace_back();
        if (inside.empty() || !unescape(inside, texts.unescaped.back())) return false;
        text.text = texts.unescaped.back();
    }
    texts.marked.push_back(std::move(text));
    texts.insides.push_back(inside);
    return true;
}

// Adds the texts of a value: a string, or an array of strings. False: it is neither, or one of them cannot be added.
bool add_texts(const char* at, const char* end, const MarkedMember& member, Texts& texts) {
    const bool is_array = at < end && *at == '[';
    if (is_array && end - at == 2) return end[-1] == ']';
    if (is_array) ++at;
    for (;;) {
        const char* after = at < end && *at == '"' ? after_string(at, end) : nullptr;
        if (after == nullptr) return false;
        const std::string_view inside(at + 1, static_cast<size_t>(after - at - 2));
        if (!add_text(inside, member, texts)) return false;
        if (!is_array) return after == end;
        if (after == end) return false;
        if (*after == ']') return after + 1 == end;
        if (*after != ',') return false;
        at = after + 1;
    }
}

// Adds the texts of the marked members of an object, in their order. False: it is not compact JSON, or a member is no text.
bool add_texts_of(std::string_view object, const std::vector<MarkedMember>& members, Texts& texts) {
    bool is_read = true;
    const bool is_object = for_each_member(object, [&](std::string_view key, std::string_view text) {
        const char* value = text.data() + key.size();
        for (const MarkedMember& member : members) {
            if (key != member.key) continue;
            is_read = is_read && add_texts(value, text.data() + text.size(), member, texts);
            break;
        }
    });
    return is_object && is_read;
}

struct Object {
    nb::bytes bytes;
    size_t first, last;  // its texts
    bool is_whole;
};

nb::object marked_object(const Object& object, const Texts& texts, Clock& clock) {
    bool is_whole = object.is_whole, is_unchanged = true;
    for (size_t i = object.first; i < object.last; ++i) {
        is_whole &= texts.marked[i].is_readable;
        is_unchanged &= texts.marked[i].is_unchanged();
    }
    if (!is_whole) return nb::none();
    if (is_unchanged) return object.bytes;
    std::string written, shown;
    const char* at = object.bytes.c_str();
    const char* const end = at + object.bytes.size();
    for (size_t i = object.first; i < object.last; ++i) {
        const std::string_view inside = texts.insides[i];
        written.append(at, inside.data());
        if (texts.marked[i].escaped) {
            texts.marked[i].write(written, clock);
        } else {
            shown.clear();
            texts.marked[i].write(shown, clock);
            escape(shown, written);
        }
        at = inside.data() + inside.size();
    }
    written.append(at, end);
    return nb::bytes(written.data(), written.size());
}

nb::list mark_members(nb::list objects, nb::list members) {
    std::vector<MarkedMember> marked;
    std::vector<nb::object> kept;
    for (nb::handle each : members) {
        auto [key, marker, foreign] = nb::cast<std::tuple<nb::bytes, const TextMarker*, const WordSet*>>(each);
        if (marker == nullptr) throw std::invalid_argument("a member has a marker");
        if (!marker->tags().are_plain()) throw std::invalid_argument("tags in JSON may not have what JSON escapes");
        marked.push_back({std::string_view(key.c_str(), key.size()), marker, foreign});
        kept.push_back(std::move(key));
    }
    std::vector<Object> found;
    Texts texts;
    for (nb::handle each : objects) {
        const size_t first = texts.marked.size();
        if (each.is_none()) {
            found.push_back({nb::bytes("", 0), first, first, false});
            continue;
        }
        nb::bytes bytes = nb::cast<nb::bytes>(each);
        const bool is_whole = add_texts_of({bytes.c_str(), bytes.size()}, marked, texts);
        if (!is_whole) {
            texts.marked.resize(first);
            texts.insides.resize(first);
        }
        found.push_back({std::move(bytes), first, texts.marked.size(), is_whole});
    }
    Clock clock;
    look_through(texts.marked, clock);
    nb::list result;
    for (const Object& object : found) result.append(marked_object(object, texts, clock));
    return result;
}

}  // namespace

void bind_marked_members(nb::module_& m) {
    m.def("mark_members", &mark_members, nb::arg("objects"), nb::arg("members"),
          "Compact JSON objects with the words of the query marked in the texts of some members, or teasers of these texts. Of each member:"
          " its key as JSON with the colon, its marker, and words of other languages than that of the marker's vocabulary. None where an"
          " object is None or not compact JSON, where such a member is neither text nor array of texts, where a text may be in another"
          " language, or where an empty text would become a teaser.");
}

}  // namespace paperwasp
