// Lexicon: every word that was ever indexed, by number, and the tokenizer that turns text into those numbers.
//
// One table of strings holds surfaces (words as they stand in text, lower-cased) and terms (what they are indexed under, their
// stems); a word that is its own stem is stored once. Ids are dense, rise in order of first appearance and never change, so
// postings can be keyed by them. For each stemming profile, stem_of[surface] is the term; NONE where it is not known yet.
//
// Threads: one writer (tokenize, learn, add). Readers (find, find_many, text) may run beside it at any time: the writer reads without
// a lock, since only it writes, and takes the lock alone for the moment it adds words.
#include "core.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "arrays.hpp"

namespace paperwasp {
namespace {

constexpr uint32_t NONE = 0xFFFFFFFFu;
constexpr uint32_t PROFILES = 2;
constexpr size_t LONGEST_TOKEN = 1000;  // bytes; longer ones are not indexed
constexpr size_t MUCH_TEXT = 1 << 17, MANY_TOKENS = 1 << 17;  // beyond these, other threads may run meanwhile
constexpr uint32_t ELEMENT_GAP = 100;   // positions between the elements of an array: no phrase crosses it

// Lower-cases ASCII letters; 0 for what separates tokens. Bytes from 0x80 are letters: such text comes normalized already.
struct WordBytes {
    uint8_t lower[256];
    constexpr WordBytes() : lower() {
        for (int c = 0; c < 256; ++c) {
            const bool word = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c >= 0x80;
            lower[c] = word ? static_cast<uint8_t>(c) : (c >= 'A' && c <= 'Z') ? static_cast<uint8_t>(c + 32) : 0;
        }
    }
};
constexpr WordBytes WORD_BYTES;

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
    // Returns (surface ids, positions, token_offsets[documents + 1]).
    nb::tuple tokenize(const nb::list& texts, In<uint32_t> owners, uint32_t documents) {
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
        {
            size_t bytes = 0;
            for (const Text& view : views) bytes += view.size;
            const GilRelease unlocked(bytes > MUCH_TEXT);
            uint32_t current = 0, position = 0;
            for (size_t i = 0; i < views.size(); ++i) {
                const uint32_t owner = owners.data()[i];
                if (owner >= documents || owner < current) throw std::invalid_argument("owners must rise below documents");
                for (; current < owner; ++current) (*offsets)[current + 1] = ids->size();
                position = i > 0 && owners.data()[i - 1] == owner ? position + ELEMENT_GAP : 0;
                tokenize_text(views[i].at, views[i].size, position, *ids, *positions);
            }
            for (; current < documents; ++current) (*offsets)[current + 1] = ids->size();
        }
        return nb::make_tuple(own(std::move(ids)), own(std::move(positions)), own(std::move(offsets)));
    }

    // Of `surfaces`, those whose term is not known for `profile`: ids, each once.
    std::vector<uint32_t> unknown(uint32_t profile, In<uint32_t> surfaces) {
        auto& stems = stems_of(profile);
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
    void learn(uint32_t profile, const std::vector<uint32_t>& surfaces, const std::vector<std::string>& terms) {
        if (surfaces.size() != terms.size()) throw nb::value_error("one term for each surface");
        auto& stems = stems_of(profile);
        for (size_t i = 0; i < surfaces.size(); ++i) {
            const uint32_t term = find_or_add(terms[i].data(), terms[i].size());
            stems.resize(size(), NONE);
            stems[check(surfaces[i])] = term;
        }
    }

    // Replaces surface ids by term ids, in place. All must be known.
    void to_terms(uint32_t profile, Out<uint32_t> surfaces) {
        auto& stems = stems_of(profile);
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

    // The term of every surface from id `first` on, NONE where unknown, for saving.
    nb::object stems_from(uint32_t profile, uint32_t first) {
        auto& stems = stems_of(profile);
        stems.resize(size(), NONE);
        if (first > size()) throw nb::value_error("no such word");
        return own(std::make_unique<std::vector<uint32_t>>(stems.begin() + first, stems.end()));
    }

    // Adds saved words, which must all be new.
    void add_words(const nb::bytes& bytes, In<uint32_t> sizes) {
        size_t at = 0;
        for (size_t i = 0; i < sizes.size(); ++i) {
            const uint32_t length = sizes.data()[i];
            if (at + length > bytes.size()) throw nb::value_error("sizes exceed the bytes");
            const size_t before = size();
            if (find_or_add(bytes.c_str() + at, length) != before) throw nb::value_error("a word twice");
            at += length;
        }
        if (at != bytes.size()) throw nb::value_error("bytes left over");
    }

    // Restores saved stems; replaces those from id `first` on.
    void set_stems(uint32_t profile, uint32_t first, In<uint32_t> terms) {
        auto& stems = stems_of(profile);
        if (first + terms.size() > size()) throw nb::value_error("more stems than words");
        stems.resize(size(), NONE);
        for (size_t i = 0; i < terms.size(); ++i) {
            const uint32_t term = terms.data()[i];
            if (term != NONE) check(term);
            stems[first + i] = term;
        }
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

    uint32_t check(uint32_t id) const {
        if (id >= size()) throw std::invalid_argument("no such word");
        return id;
    }

    std::vector<uint32_t>& stems_of(uint32_t profile) {
        if (profile >= PROFILES) throw nb::value_error("no such stemming profile");
        return stems_[profile];
    }

    void tokenize_text(const char* text, size_t size, uint32_t& position, std::vector<uint32_t>& ids,
                       std::vector<uint32_t>& positions) {
        char word[LONGEST_TOKEN];
        size_t length = 0;
        for (size_t i = 0; i <= size; ++i) {
            const uint8_t lower = i < size ? WORD_BYTES.lower[static_cast<uint8_t>(text[i])] : 0;
            if (lower != 0) {
                if (length < LONGEST_TOKEN) word[length] = static_cast<char>(lower);
                ++length;
            } else if (length > 0) {
                if (length <= LONGEST_TOKEN) {
                    ids.push_back(find_or_add(word, length));
                    positions.push_back(position++);
                }
                length = 0;
            }
        }
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

    uint32_t find_or_add(const char* word, size_t length) {
        const uint32_t hash = hash_of(word, length);
        const uint32_t found = lookup(word, length, hash);
        if (found != NONE) return found;
        std::unique_lock lock(mutex_);
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

    void grow() {
        std::vector<Slot> old(slots_.size() * 2);
        old.swap(slots_);
        for (const Slot& slot : old)
            if (slot.id != NONE) place(slot);
    }

    mutable std::shared_mutex mutex_;
    std::vector<Slot> slots_;  // open addressing; a power of two, at most half full
    std::vector<uint64_t> offsets_;
    std::vector<char> bytes_;
    std::vector<uint32_t> stems_[PROFILES];
};

}  // namespace

void bind_lexicon(nb::module_& m) {
    m.attr("NO_TERM") = NONE;
    nb::class_<Lexicon>(m, "Lexicon")
        .def(nb::init<>())
        .def("__len__", &Lexicon::size)
        .def("tokenize", &Lexicon::tokenize, nb::arg("texts"), nb::arg("owners"), nb::arg("documents"))
        .def("unknown", &Lexicon::unknown, nb::arg("profile"), nb::arg("surfaces"))
        .def("learn", &Lexicon::learn, nb::arg("profile"), nb::arg("surfaces"), nb::arg("terms"))
        .def("to_terms", &Lexicon::to_terms, nb::arg("profile"), nb::arg("surfaces"))
        .def("find", &Lexicon::find, nb::arg("word"))
        .def("text", &Lexicon::text, nb::arg("id"))
        .def("words_from", &Lexicon::words_from, nb::arg("first"))
        .def("stems_from", &Lexicon::stems_from, nb::arg("profile"), nb::arg("first"))
        .def("add_words", &Lexicon::add_words, nb::arg("words"), nb::arg("sizes"))
        .def("set_stems", &Lexicon::set_stems, nb::arg("profile"), nb::arg("first"), nb::arg("terms"))
        .def("memory_bytes", &Lexicon::memory_bytes);
}

}  // namespace paperwasp
