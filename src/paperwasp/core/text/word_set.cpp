// WordSet: what word_set.hpp declares.
#include "text/word_set.hpp"

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <string>
#include <vector>

#include "documents/plain_change.hpp"

namespace paperwasp {
namespace {

constexpr size_t LONGEST = 12;  // letters, of five bits each; no longer word is in the set
constexpr uint8_t SEPARATOR = 0, OTHER = 31;
constexpr uint64_t TOO_LONG = ~uint64_t{0};

// The key of a word with one letter more.
inline uint64_t with_letter(uint64_t key, uint8_t code) { return key >> (5 * (LONGEST - 1)) == 0 ? key << 5 | code : TOO_LONG; }

// A letter's place in the alphabet, whatever its case; SEPARATOR between words, OTHER for what no word of the set has.
struct Codes {
    uint8_t of[256];
    constexpr Codes() : of() {
        for (int c = 0; c < 256; ++c) {
            const bool separates = c == ' ' || c == '\'' || (c >= 0x09 && c <= 0x0D) || (c >= 0x1C && c <= 0x1F);
            const int lower = c | 0x20;
            of[c] = separates ? SEPARATOR : (c >= 'A' && lower >= 'a' && lower <= 'z') ? static_cast<uint8_t>(c & 31) : OTHER;
        }
    }
};
constexpr Codes CODES;

}  // namespace

WordSet::WordSet(const std::vector<std::string>& words) {
    std::vector<uint64_t> keys;
    for (const std::string& word : words) {
        uint64_t key = 0;
        for (const char c : word) key = c >= 'a' && c <= 'z' ? with_letter(key, static_cast<uint8_t>(c & 31)) : TOO_LONG;
        if (key != 0 && key != TOO_LONG) keys.push_back(key);
    }
    size_t slots = 64;
    while (slots < keys.size() * 4) slots *= 2;
    slots_.assign(slots, 0);
    for (const uint64_t key : keys) {
        size_t at = slot(key);
        while (slots_[at] != 0 && slots_[at] != key) at = (at + 1) & (slots - 1);
        slots_[at] = key;
    }
}

std::vector<uint32_t> WordSet::with(const nb::list& texts, uint32_t least, uint32_t characters) const {
    struct Head {
        const uint8_t* at;  // null: it is not ASCII
        size_t size;
    };
    std::vector<Head> heads;
    heads.reserve(texts.size());
    uint64_t bytes = 0;
    for (nb::handle text : texts) {
        if (!PyUnicode_Check(text.ptr())) throw nb::type_error("texts are strings");
        const size_t size = std::min<size_t>(static_cast<size_t>(PyUnicode_GET_LENGTH(text.ptr())), characters);
        const bool is_ascii = PyUnicode_IS_COMPACT_ASCII(text.ptr()) != 0;
        heads.push_back({is_ascii ? static_cast<const uint8_t*>(PyUnicode_DATA(text.ptr())) : nullptr, size});
        bytes += size;
    }
    std::vector<uint32_t> found;
    const GilRelease unlocked(is_much(2 * bytes));
    for (uint32_t number = 0; number < heads.size(); ++number) {
        const Head& head = heads[number];
        if (head.at == nullptr || has(head.at, head.size, least)) found.push_back(number);
    }
    return found;
}

std::optional<std::vector<uint32_t>> WordSet::with_puts(const nb::list& puts, std::string_view name, uint32_t least,
                                                        uint32_t characters) const {
    const auto texts = ascii_texts_of(puts, name);
    if (!texts) return std::nullopt;
    std::vector<uint32_t> found;
    for (uint32_t number = 0; number < texts->size(); ++number) {
        std::string_view text = (*texts)[number];
        while (!text.empty() && text[0] != '\'' && CODES.of[static_cast<uint8_t>(text[0])] == SEPARATOR) text.remove_prefix(1);
        const auto* const at = reinterpret_cast<const uint8_t*>(text.data());
        if (has(at, std::min<size_t>(text.size(), characters), least)) found.push_back(number);
    }
    return found;
}

bool WordSet::contains(uint64_t key) const {
    for (size_t at = slot(key); slots_[at] != 0; at = (at + 1) & (slots_.size() - 1))
        if (slots_[at] == key) return true;
    return false;
}

bool WordSet::has(const uint8_t* text, size_t size, uint32_t least) const {
    uint64_t key = 0;  // of the word so far
    uint32_t count = 0;
    for (size_t i = 0; i <= size; ++i) {
        const uint8_t code = i < size ? CODES.of[text[i]] : SEPARATOR;
        if (code == SEPARATOR) {
            if (key != 0 && contains(key) && ++count >= least) return true;
            key = 0;
        } else {
            key = with_letter(key, code);
        }
    }
    return count >= least;
}

void bind_word_set(nb::module_& m) {
    nb::class_<WordSet>(m, "WordSet", "Finds texts with words of a set.")
        .def(nb::init<const std::vector<std::string>&>(), nb::arg("words"))
        .def("texts_with", &WordSet::with, nb::arg("texts"), nb::arg("least"), nb::arg("characters"))
        .def("puts_with", &WordSet::with_puts, nb::arg("puts"), nb::arg("name"), nb::arg("least"), nb::arg("characters"));
}

}  // namespace paperwasp
