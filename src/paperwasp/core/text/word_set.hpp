// WordSet: counts words of ASCII texts that belong to a fixed set.
//
// The language of every text that is indexed is asked for, and most texts have next to no word of any language but English: this
// finds the few that need a closer look. Words are what Python's str.split() would give of the text in lower case, with apostrophes
// for spaces. Immutable once built: any thread.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"

namespace paperwasp {

class WordSet {
  public:
    // Words of more than twelve letters, or with others than a to z, are left out: the latter stand in no ASCII text.
    explicit WordSet(const std::vector<std::string>& words);

    // The numbers of the texts that have at least `least` words of the set among their first `characters`, or are not ASCII.
    std::vector<uint32_t> with(const nb::list& texts, uint32_t least, uint32_t characters) const;

    // The same of the texts that plain puts have in a field, without the white space before them; nothing where one is no text of ASCII.
    std::optional<std::vector<uint32_t>> with_puts(const nb::list& puts, std::string_view name, uint32_t least, uint32_t characters) const;

    // Whether a text of ASCII has at least `least` words of the set.
    bool has(const uint8_t* text, size_t size, uint32_t least) const;

  private:
    size_t slot(uint64_t key) const { return (key * 0x9E3779B97F4A7C15ull >> 32) & (slots_.size() - 1); }
    bool contains(uint64_t key) const;

    std::vector<uint64_t> slots_;  // open addressing; a power of two, at most a quarter full; 0: empty
};

}  // namespace paperwasp
