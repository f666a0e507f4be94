// Vocabulary and WordCharacters: what vocabulary.hpp declares.
#include "text/vocabulary.hpp"

#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <algorithm>

namespace paperwasp {
namespace {

constexpr uint32_t NOWHERE = 0xFFFFFFFFu;
constexpr size_t LONGEST_KEPT = 64, MOST_FORM_BYTES = 256;  // longer words are not met twice
constexpr size_t MOST_WORDS = 1 << 22;                      // so that places fit in 32 bits

uint32_t hash_of(std::string_view text) {
    uint64_t hash = 0xCBF29CE484222325ull;
    for (const char c : text) hash = (hash ^ static_cast<uint8_t>(c)) * 0x100000001B3ull;
    return static_cast<uint32_t>(hash ^ (hash >> 32));
}

}  // namespace

Vocabulary::Vocabulary(nb::callable forms_of, bool folds, nb::object characters, uint32_t most_words)
    : forms_of_(std::move(forms_of)),
      characters_(std::move(characters)),
      table_(nb::cast<const WordCharacters*>(characters_)),
      folds_(folds),
      most_words_(most_words) {
    if (most_words == 0 || most_words > MOST_WORDS) throw std::invalid_argument("a vocabulary has 1 to 4,194,304 words");
    if (table_ == nullptr) throw std::invalid_argument("a vocabulary needs the characters of words");
    clear();
}

std::string_view Vocabulary::key(std::string_view word, std::string& room) const {
    if (!folds_) return word;
    bool changes = false;
    for (const char c : word) {
        if (static_cast<uint8_t>(c) >= 0x80) return word;
        changes |= c >= 'A' && c <= 'Z';
    }
    if (!changes) return word;
    room.assign(word);
    for (char& c : room) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c;
    return room;
}

bool Vocabulary::find(std::string_view key, Forms& forms) const {
    const uint32_t found = lookup(key, hash_of(key));
    if (found == NOWHERE) return false;
    const Entry& entry = entries_[found];
    forms.clear();
    for (uint32_t i = 0; i < entry.count; ++i) forms.push_back(text(forms_[entry.forms + i]));
    return true;
}

std::vector<std::vector<std::string>> Vocabulary::learn(const std::vector<std::string>& keys) {
    const nb::object answer = forms_of_(nb::cast(keys));
    auto forms = nb::cast<std::vector<std::vector<std::string>>>(answer);
    if (forms.size() != keys.size()) throw std::invalid_argument("as many forms as words");
    const std::unique_lock lock(mutex_);
    if (entries_.size() + keys.size() > most_words_) clear();
    for (size_t i = 0; i < keys.size() && entries_.size() < most_words_; ++i) add(keys[i], forms[i]);
    return forms;
}

uint32_t Vocabulary::lookup(std::string_view key, uint32_t hash) const {
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask; slots_[at] != NOWHERE; at = (at + 1) & mask) {
        const Entry& entry = entries_[slots_[at]];
        if (entry.hash == hash && text(entry.key) == key) return slots_[at];
    }
    return NOWHERE;
}

void Vocabulary::add(std::string_view key, const std::vector<std::string>& forms) {
    size_t bytes = 0;
    for (const std::string& form : forms) bytes += form.size() + sizeof(Slice);
    const uint32_t hash = hash_of(key);
    // Another thread may have learned it meanwhile.
    if (key.size() > LONGEST_KEPT || bytes > MOST_FORM_BYTES || lookup(key, hash) != NOWHERE) return;
    Entry entry{hash, keep(key), static_cast<uint32_t>(forms_.size()), static_cast<uint32_t>(forms.size())};
    for (const std::string& form : forms) forms_.push_back(keep(form));
    entries_.push_back(entry);
    if (entries_.size() * 2 > slots_.size()) {
        slots_.assign(slots_.size() * 2, NOWHERE);
        for (size_t number = 0; number < entries_.size(); ++number) place(static_cast<uint32_t>(number));
    } else {
        place(static_cast<uint32_t>(entries_.size() - 1));
    }
}

void Vocabulary::place(uint32_t number) {
    const size_t mask = slots_.size() - 1;
    size_t at = entries_[number].hash & mask;
    while (slots_[at] != NOWHERE) at = (at + 1) & mask;
    slots_[at] = number;
}

void Vocabulary::clear() {
    slots_.assign(1024, NOWHERE);
    entries_.clear();
    forms_.clear();
    bytes_.clear();
}

Vocabulary::Slice Vocabulary::keep(std::string_view text) {
    const Slice slice{static_cast<uint32_t>(bytes_.size()), static_cast<uint32_t>(text.size())};
    bytes_ += text;
    return slice;
}

void bind_vocabulary(nb::module_& m) {
    nb::class_<WordCharacters>(m, "WordCharacters", "Which characters words consist of.").def(nb::init<In<uint32_t>>(), nb::arg("ranges"));
    nb::class_<Vocabulary>(m, "Vocabulary", "What words of texts are indexed as, remembered between queries.")
        .def(nb::init<nb::callable, bool, nb::object, uint32_t>(), nb::arg("forms_of"), nb::arg("folds"), nb::arg("characters"),
             nb::arg("most_words"))
        .def("__len__", &Vocabulary::size);
}

}  // namespace paperwasp
