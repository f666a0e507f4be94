// Lexicon: every word that was ever indexed, by number, and the tokenizer that turns text into those numbers.
//
// One table of strings holds surfaces (words as they stand in text, lower-cased) and terms (what they are indexed under, their
// stems); a word that is its own stem is stored once. Ids are dense, rise in order of first appearance and never change, so
// postings can be keyed by them. For each stemmer, stems_[stemmer][surface] is the term; NONE where it is not known yet. Which
// stemmer a number stands for is the caller's to know.
//
// Threads: one writer (tokenize, learn, add). Readers (find, find_many, text) may run beside it at any time: the writer reads without
// a lock, since only it writes, and takes the lock alone for the moment it adds words.
#include "core.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "arrays.hpp"
#include "documents/plain_change.hpp"
#include "index/field_index.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t NONE = 0xFFFFFFFFu;
constexpr uint32_t MOST_STEMMERS = 256;
constexpr uint32_t LONGEST_TOKEN = 1000;                      // characters; longer ones are not indexed, unless the caller says otherwise
constexpr size_t MUCH_TEXT = 1 << 14, MANY_TOKENS = 1 << 17;  // beyond these, other threads may run meanwhile
constexpr size_t TEXT_BYTES_A_WORD = 6;                       // about: what room is made for
// Words are looked up so many at once, so that what is read for one comes from memory while that of others does.
constexpr size_t WORDS_AT_ONCE = 32, WORD_BYTES_AT_ONCE = 1 << 10;

// What becomes of each byte of a word, ASCII letters in lower case unless `cased`; 0 for what separates words. Bytes from 0x80 are
// letters: such text comes normalized already.
struct WordBytes {
    uint8_t of[256];
    constexpr explicit WordBytes(bool cased) : of() {
        for (int c = 0; c < 256; ++c) {
            const bool capital = c >= 'A' && c <= 'Z';
            const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c >= 0x80 || (capital && cased);
            of[c] = word ? static_cast<uint8_t>(c) : capital ? static_cast<uint8_t>(c + 32) : 0;
        }
    }
};
constexpr WordBytes LOWERING(false), KEEPING(true);

// Whether UTF-8 has at most `limit` characters.
inline bool at_most(const char* at, size_t size, uint32_t limit) {
    if (size <= limit) return true;
    size_t characters = 0;
    for (size_t i = 0; i < size; ++i) characters += (static_cast<uint8_t>(at[i]) & 0xC0) != 0x80;
    return characters <= limit;
}

inline uint32_t hash_of(const char* at, size_t size) {
    uint64_t hash = size * 0x9E3779B97F4A7C15ull;
    while (size >= 8) {
        uint64_t word;
        std::memcpy(&word, at, 8);
        hash = (hash ^ word) * 0xFF51AFD7ED558CCDull;
        hash ^= hash >> 32;
        at += 8;
        size -= 8;
    }
    uint64_t word = 0;
    std::memcpy(&word, at, size);
    hash = (hash ^ word) * 0xC4CEB9FE1A85EC53ull;
    return static_cast<uint32_t>(hash ^ (hash >> 29));
}

class Lexicon {
  public:
    Lexicon() : slots_(1024), offsets_{0} {}

    size_t size() const { return offsets_.size() - 1; }

    // Tokens of texts as surface ids (words seen for the first time are added). Text i belongs to document owners[i]; owners rise.
    // Returns (surface ids, positions, token_offsets[documents + 1], ends[texts]): a text's end is the position after its last token's.
    // `cased` keeps capitals; `whole` makes each text one token, as it is; a token of more than `longest` characters is left out.
    nb::tuple tokenize(const nb::list& texts, In<uint32_t> owners, uint32_t documents, bool cased, bool whole, uint32_t longest) {
        struct Text {
            const char* at;
            size_t size;
        };
        std::vector<Text> views;
        views.reserve(texts.size());
        for (nb::handle text : texts) {
            Py_ssize_t size = 0;
            const char* at = PyUnicode_AsUTF8AndSize(text.ptr(), &size);
            if (at == nullptr) throw nb::python_error();
            views.push_back({at, static_cast<size_t>(size)});
        }
        if (owners.size() != views.size()) throw nb::value_error("one owner for each text");
        auto ids = std::make_unique<std::vector<uint32_t>>();
        auto positions = std::make_unique<std::vector<uint32_t>>();
        auto offsets = std::make_unique<std::vector<uint64_t>>(documents + 1, 0);
        auto ends = std::make_unique<std::vector<uint32_t>>(views.size());
        {
            size_t bytes = 0;
            for (const Text& view : views) bytes += view.size;
            ids->reserve(bytes / TEXT_BYTES_A_WORD);
            positions->reserve(bytes / TEXT_BYTES_A_WORD);
            const GilRelease unlocked(bytes > MUCH_TEXT);
            uint32_t current = 0, position = 0;
            for (size_t i = 0; i < views.size(); ++i) {
                const uint32_t owner = owners.data()[i];
                if (owner >= documents || owner < current) throw std::invalid_argument("owners must rise below documents");
                for (; current < owner; ++current) (*offsets)[current + 1] = ids->size();
                position = i > 0 && owners.data()[i - 1] == owner ? position + ELEMENT_GAP : 0;
                if (whole) {
                    if (views[i].size > 0 && at_most(views[i].at, views[i].size, longest)) {
                        ids->push_back(find_or_add(views[i].at, views[i].size));
                        positions->push_back(position++);
                    }
                } else {
                    tokenize_text(views[i].at, views[i].size, cased ? KEEPING : LOWERING, longest, position, *ids, *positions);
                }
                (*ends)[i] = position;
            }
            for (; current < documents; ++current) (*offsets)[current + 1] = ids->size();
        }
        return nb::make_tuple(own(std::move(ids)), own(std::move(positions)), own(std::move(offsets)), own(std::move(ends)));
    }

    // As `tokenize` does it of fields that have one text each, of ASCII and of at most `most` characters, or none: values[d] is document
    // d's. Returns None, with nothing done, where one is something else; else (surface ids, positions, token_offsets[documents + 1],
    // how many documents have tokens).
    nb::object tokenize_plain(const nb::list& values, size_t most, uint32_t longest) {
        std::vector<std::string_view> texts;
        texts.reserve(values.size());
        size_t bytes = 0;
        for (nb::handle value : values) {
            PyObject* text = value.ptr();
            if (text == Py_None) {
                texts.emplace_back();
                continue;
            }
            if (!PyUnicode_CheckExact(text) || !PyUnicode_IS_ASCII(text)) return nb::none();
            const auto size = static_cast<size_t>(PyUnicode_GET_LENGTH(text));
            if (size > most) return nb::none();
            texts.emplace_back(reinterpret_cast<const char*>(PyUnicode_1BYTE_DATA(text)), size);
            bytes += size;
        }
        return tokenize_views(texts, bytes, longest);
    }

    // The same of what plain puts have in a field.
    nb::object tokenize_puts(const nb::list& puts, std::string_view name, size_t most, uint32_t longest) {
        const auto texts = ascii_texts_of(puts, name);
        if (!texts) return nb::none();
        size_t bytes = 0;
        for (const std::string_view text : *texts) {
            if (text.size() > most) return nb::none();
            bytes += text.size();
        }
        return tokenize_views(*texts, bytes, longest);
    }

    // Of `surfaces`, those whose term is not known for a stemmer: ids, each once.
    std::vector<uint32_t> unknown(uint32_t stemmer, In<uint32_t> surfaces) {
        auto& stems = stems_of(stemmer);
        std::vector<uint32_t> found;
        const GilRelease unlocked(surfaces.size() > MANY_TOKENS);
        stems.resize(size(), NONE);
        for (size_t i = 0; i < surfaces.size(); ++i) {
            const uint32_t surface = check(surfaces.data()[i]);
            if (stems[surface] == NONE) {
                stems[surface] = NONE - 1;  // listed: not twice
                found.push_back(surface);
            }
        }
        for (uint32_t surface : found) stems[surface] = NONE;
        return found;
    }

    // Says what the terms of surfaces are.
    void learn(uint32_t stemmer, const std::vector<uint32_t>& surfaces, const std::vector<std::string>& terms) {
        if (surfaces.size() != terms.size()) throw nb::value_error("one term for each surface");
        auto& stems = stems_of(stemmer);
        for (size_t i = 0; i < surfaces.size(); ++i) {
            const uint32_t term = find_or_add(terms[i].data(), terms[i].size());
            stems.resize(size(), NONE);
            stems[check(surfaces[i])] = term;
            if (surfaces[i] < saved_) late_.push_back({stemmer, surfaces[i], term});
        }
    }

    // Replaces surface ids by term ids, in place. All must be known.
    void to_terms(uint32_t stemmer, Out<uint32_t> surfaces) {
        auto& stems = stems_of(stemmer);
        const GilRelease unlocked(surfaces.size() > MANY_TOKENS);
        uint32_t* ids = surfaces.data();
        for (size_t i = 0; i < surfaces.size(); ++i) {
            if (ids[i] >= stems.size() || stems[ids[i]] == NONE) throw std::invalid_argument("a surface without a term");
            ids[i] = stems[ids[i]];
        }
    }

    // The id of a word, or -1.
    int64_t find(const std::string& word) const {
        std::shared_lock lock(mutex_);
        const uint32_t id = lookup(word.data(), word.size(), hash_of(word.data(), word.size()));
        return id == NONE ? -1 : static_cast<int64_t>(id);
    }

    std::string text(uint32_t id) const {
        std::shared_lock lock(mutex_);
        check(id);
        return std::string(bytes_.data() + offsets_[id], offsets_[id + 1] - offsets_[id]);
    }

    // Words from id `first` on: (bytes, sizes), for saving.
    nb::tuple words_from(uint32_t first) const {
        if (first > size()) throw nb::value_error("no such word");
        auto sizes = std::make_unique<std::vector<uint32_t>>();
        for (size_t id = first; id < size(); ++id) sizes->push_back(static_cast<uint32_t>(offsets_[id + 1] - offsets_[id]));
        return nb::make_tuple(nb::bytes(bytes_.data() + offsets_[first], bytes_.size() - offsets_[first]), own(std::move(sizes)));
    }

    // The stemmers that stemmed any word.
    std::vector<uint32_t> stemmers() const {
        std::vector<uint32_t> found;
        for (uint32_t stemmer = 0; stemmer < stems_.size(); ++stemmer)
            if (!stems_[stemmer].empty()) found.push_back(stemmer);
        return found;
    }

    // The term of every surface from id `first` on, NONE where unknown, for saving.
    nb::object stems_from(uint32_t stemmer, uint32_t first) {
        auto& stems = stems_of(stemmer);
        stems.resize(size(), NONE);
        if (first > size()) throw nb::value_error("no such word");
        return own(std::make_unique<std::vector<uint32_t>>(stems.begin() + first, stems.end()));
    }

    // Terms that were learned of words that `late_stems` had met before, for saving: (stemmers, surfaces, terms, end), in the order in
    // which they were learned, from place `from` on of all such. Those before `from` are forgotten; `end` is where the next one goes.
    nb::tuple late_stems(uint64_t from) {
        if (from < forgotten_ || from > forgotten_ + late_.size()) throw nb::value_error("no such place");
        late_.erase(late_.begin(), late_.begin() + static_cast<ptrdiff_t>(from - forgotten_));
        forgotten_ = from;
        saved_ = static_cast<uint32_t>(size());
        auto stemmers = std::make_unique<std::vector<uint32_t>>();
        auto surfaces = std::make_unique<std::vector<uint32_t>>();
        auto terms = std::make_unique<std::vector<uint32_t>>();
        for (const LateStem& late : late_) {
            stemmers->push_back(late.stemmer);
            surfaces->push_back(late.surface);
            terms->push_back(late.term);
        }
        return nb::make_tuple(own(std::move(stemmers)), own(std::move(surfaces)), own(std::move(terms)), forgotten_ + late_.size());
    }

    // Adds saved words, which must all be new.
    void add_words(const nb::bytes& bytes, In<uint32_t> sizes) {
        size_t at = 0;
        std::unique_lock lock(mutex_);
        reserve(size() + sizes.size(), bytes_.size() + bytes.size());
        for (size_t i = 0; i < sizes.size(); ++i) {
            const uint32_t length = sizes.data()[i];
            if (at + length > bytes.size()) throw nb::value_error("sizes exceed the bytes");
            const char* word = bytes.c_str() + at;
            const uint32_t hash = hash_of(word, length);
            if (lookup(word, length, hash) != NONE) throw nb::value_error("a word twice");
            add(word, length, hash);
            at += length;
        }
        if (at != bytes.size()) throw nb::value_error("bytes left over");
    }

    // Restores saved stems; replaces those from id `first` on.
    void set_stems(uint32_t stemmer, uint32_t first, In<uint32_t> terms) {
        auto& stems = stems_of(stemmer);
        if (first + terms.size() > size()) throw nb::value_error("more stems than words");
        stems.resize(size(), NONE);
        for (size_t i = 0; i < terms.size(); ++i) {
            const uint32_t term = terms.data()[i];
            if (term != NONE) check(term);
            stems[first + i] = term;
        }
    }

    // Restores saved stems of some words.
    void set_stems_of(uint32_t stemmer, In<uint32_t> surfaces, In<uint32_t> terms) {
        if (surfaces.size() != terms.size()) throw nb::value_error("one term for each surface");
        auto& stems = stems_of(stemmer);
        stems.resize(size(), NONE);
        for (size_t i = 0; i < surfaces.size(); ++i) stems[check(surfaces.data()[i])] = check(terms.data()[i]);
    }

    size_t memory_bytes() const {
        size_t total = slots_.capacity() * sizeof(Slot) + offsets_.capacity() * 8 + bytes_.capacity();
        for (const auto& stems : stems_) total += stems.capacity() * 4;
        return total;
    }

  private:
    struct Slot {
        uint32_t hash = 0;
        uint32_t id = NONE;
    };
    struct LateStem {
        uint32_t stemmer, surface, term;
    };
    struct Word {
        const char* at;
        size_t size;
        uint32_t hash;
    };

    uint32_t check(uint32_t id) const {
        if (id >= size()) throw std::invalid_argument("no such word");
        return id;
    }

    std::vector<uint32_t>& stems_of(uint32_t stemmer) {
        if (stemmer >= MOST_STEMMERS) throw nb::value_error("no such stemmer");
        if (stemmer >= stems_.size()) stems_.resize(stemmer + 1);
        return stems_[stemmer];
    }

    // The tokens of texts of ASCII, one for each document: see `tokenize_plain`. bytes: the size of all texts together.
    nb::object tokenize_views(const std::vector<std::string_view>& texts, size_t bytes, uint32_t longest) {
        auto ids = std::make_unique<std::vector<uint32_t>>();
        auto positions = std::make_unique<std::vector<uint32_t>>();
        auto offsets = std::make_unique<std::vector<uint64_t>>();
        uint32_t filled = 0;
        {
            ids->reserve(bytes / TEXT_BYTES_A_WORD);
            positions->reserve(bytes / TEXT_BYTES_A_WORD);
            offsets->reserve(texts.size() + 1);
            const GilRelease unlocked(bytes > MUCH_TEXT);
            offsets->push_back(0);
            for (const std::string_view text : texts) {
                uint32_t position = 0;
                tokenize_text(text.data(), text.size(), LOWERING, longest, position, *ids, *positions);
                filled += position > 0;
                offsets->push_back(ids->size());
            }
        }
        return nb::make_tuple(own(std::move(ids)), own(std::move(positions)), own(std::move(offsets)), filled);
    }

    void tokenize_text(const char* text, size_t size, const WordBytes& bytes, uint32_t longest, uint32_t& position,
                       std::vector<uint32_t>& ids, std::vector<uint32_t>& positions) {
        const size_t room = std::min<uint64_t>(size, uint64_t{4} * longest);  // a character has at most four bytes
        if (word_bytes_.size() < WORD_BYTES_AT_ONCE + room) word_bytes_.resize(WORD_BYTES_AT_ONCE + room);
        char* word = word_bytes_.data();
        size_t length = 0;
        for (size_t i = 0; i <= size; ++i) {
            const uint8_t byte = i < size ? bytes.of[static_cast<uint8_t>(text[i])] : 0;
            if (byte != 0) {
                if (length < room) word[length] = static_cast<char>(byte);
                ++length;
            } else if (length > 0) {
                if (length <= room && at_most(word, length, longest)) {
                    const uint32_t hash = hash_of(word, length);
                    __builtin_prefetch(&slots_[hash & (slots_.size() - 1)]);
                    words_.push_back({word, length, hash});
                    positions.push_back(position++);
                    word += length;
                    if (words_.size() == WORDS_AT_ONCE || word > word_bytes_.data() + WORD_BYTES_AT_ONCE) {
                        number_words(ids);
                        word = word_bytes_.data();
                    }
                }
                length = 0;
            }
        }
        number_words(ids);
    }

    // Gives the words that were read their ids, in order.
    void number_words(std::vector<uint32_t>& ids) {
        const size_t mask = slots_.size() - 1;
        for (const Word& word : words_) {
            const uint32_t id = slots_[word.hash & mask].id;
            if (id != NONE) __builtin_prefetch(&offsets_[id]);
        }
        for (const Word& word : words_) {
            const uint32_t id = slots_[word.hash & mask].id;
            if (id != NONE) __builtin_prefetch(bytes_.data() + offsets_[id]);
        }
        for (const Word& word : words_) ids.push_back(find_or_add(word.at, word.size, word.hash));
        words_.clear();
    }

    uint32_t lookup(const char* word, size_t length, uint32_t hash) const {
        const size_t mask = slots_.size() - 1;
        for (size_t at = hash & mask; slots_[at].id != NONE; at = (at + 1) & mask) {
            if (slots_[at].hash != hash) continue;
            const uint64_t start = offsets_[slots_[at].id];
            if (offsets_[slots_[at].id + 1] - start == length && std::memcmp(bytes_.data() + start, word, length) == 0)
                return slots_[at].id;
        }
        return NONE;
    }

    uint32_t find_or_add(const char* word, size_t length) { return find_or_add(word, length, hash_of(word, length)); }

    uint32_t find_or_add(const char* word, size_t length, uint32_t hash) {
        const uint32_t found = lookup(word, length, hash);
        if (found != NONE) return found;
        std::unique_lock lock(mutex_);
        return add(word, length, hash);
    }

    // A word that is new. The lock is held.
    uint32_t add(const char* word, size_t length, uint32_t hash) {
        const auto id = static_cast<uint32_t>(size());
        bytes_.insert(bytes_.end(), word, word + length);
        offsets_.push_back(bytes_.size());
        if (size() * 2 > slots_.size()) grow();
        place({hash, id});
        return id;
    }

    void place(Slot slot) {
        const size_t mask = slots_.size() - 1;
        size_t at = slot.hash & mask;
        while (slots_[at].id != NONE) at = (at + 1) & mask;
        slots_[at] = slot;
    }

    void grow() { rehash(slots_.size() * 2); }

    // Makes room for so many words, of so many bytes together. The lock is held.
    void reserve(size_t words, size_t bytes) {
        bytes_.reserve(bytes);
        offsets_.reserve(words + 1);
        size_t slots = slots_.size();
        while (words * 2 > slots) slots *= 2;
        if (slots > slots_.size()) rehash(slots);
    }

    void rehash(size_t slots) {
        std::vector<Slot> old(slots);
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.id != NONE) place(slot);
    }

    mutable std::shared_mutex mutex_;
    std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
    std::vector<uint64_t> offsets_;
    std::vector<char> bytes_;
    std::vector<std::vector<uint32_t>> stems_;
    std::vector<LateStem> late_;  // the writer's: those of all late stems from place forgotten_ on
    uint64_t forgotten_ = 0;
    uint32_t saved_ = 0;  // words below this are saved by what `late_stems` was asked for
    // The writer's: words that it has read and not looked up yet, and their bytes.
    std::vector<Word> words_;
    std::vector<char> word_bytes_;
};

}  // namespace

void bind_lexicon(nb::module_& m) {
    m.attr("NO_TERM") = NONE;
    nb::class_<Lexicon>(m, "Lexicon")
        .def(nb::init<>())
        .def("__len__", &Lexicon::size)
        .def("tokenize", &Lexicon::tokenize, nb::arg("texts"), nb::arg("owners"), nb::arg("documents"), nb::arg("cased") = false,
             nb::arg("whole") = false, nb::arg("longest") = LONGEST_TOKEN)
        .def("tokenize_plain", &Lexicon::tokenize_plain, nb::arg("values"), nb::arg("most"), nb::arg("longest"))
        .def("tokenize_puts", &Lexicon::tokenize_puts, nb::arg("puts"), nb::arg("name"), nb::arg("most"), nb::arg("longest"))
        .def("unknown", &Lexicon::unknown, nb::arg("stemmer"), nb::arg("surfaces"))
        .def("learn", &Lexicon::learn, nb::arg("stemmer"), nb::arg("surfaces"), nb::arg("terms"))
        .def("to_terms", &Lexicon::to_terms, nb::arg("stemmer"), nb::arg("surfaces").noconvert())
        .def("find", &Lexicon::find, nb::arg("word"))
        .def("text", &Lexicon::text, nb::arg("id"))
        .def("words_from", &Lexicon::words_from, nb::arg("first"))
        .def("stemmers", &Lexicon::stemmers)
        .def("stems_from", &Lexicon::stems_from, nb::arg("stemmer"), nb::arg("first"))
        .def("late_stems", &Lexicon::late_stems, nb::arg("from_place"))
        .def("add_words", &Lexicon::add_words, nb::arg("words"), nb::arg("sizes"))
        .def("set_stems", &Lexicon::set_stems, nb::arg("stemmer"), nb::arg("first"), nb::arg("terms"))
        .def("set_stems_of", &Lexicon::set_stems_of, nb::arg("stemmer"), nb::arg("surfaces"), nb::arg("terms"))
        .def("memory_bytes", &Lexicon::memory_bytes);
}

}  // namespace paperwasp
