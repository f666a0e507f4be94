// Vocabulary: what words of texts are indexed as, remembered between queries.
//
// A bounded cache in front of a Python function, which is called with all unknown words of a page of hits at once. A word that is
// indexed as several forms (its stem and itself) has them all; one that is cut into several words has none.
//
// Threads: any number, with or without the interpreter's lock. Who looks words up holds `reading()` as long as it uses their forms,
// and calls nothing of Python meanwhile; `learn` calls Python, and takes the lock only to add what that has said.
#pragma once

#include <cstdint>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <vector>

#include "core.hpp"
#include "text/word_characters.hpp"

namespace paperwasp {

using Forms = std::vector<std::string_view>;

class Vocabulary {
  public:
    // `forms_of`: from words to a tuple of forms for each. `folds`: words of ASCII are known by their lower case. `characters`: a
    // WordCharacters. `most_words`: beyond these it begins with nothing again.
    Vocabulary(nb::callable forms_of, bool folds, nb::object characters, uint32_t most_words);

    size_t size() const {
        const auto lock = reading();
        return entries_.size();
    }

    // While this is held no words are learned.
    std::shared_lock<std::shared_mutex> reading() const { return std::shared_lock(mutex_); }

    const WordCharacters& characters() const { return *table_; }

    // What a word is known by: itself, or where it is folded, its lower case in `room`.
    std::string_view key(std::string_view word, std::string& room) const;

    // The forms of the word that is known by `key`, which last as long as `reading()` is held. False: it is not known.
    bool find(std::string_view key, Forms& forms) const;

    // The forms of unknown words, which are known from then on if there is room for them. Other threads may run meanwhile.
    std::vector<std::vector<std::string>> learn(const std::vector<std::string>& keys);

  private:
    struct Slice {
        uint32_t at, size;
    };
    struct Entry {
        uint32_t hash;
        Slice key;
        uint32_t forms, count;  // forms_[forms..forms + count]
    };

    uint32_t lookup(std::string_view key, uint32_t hash) const;
    void add(std::string_view key, const std::vector<std::string>& forms);
    void place(uint32_t number);
    void clear();
    Slice keep(std::string_view text);
    std::string_view text(Slice slice) const { return {bytes_.data() + slice.at, slice.size}; }

    nb::callable forms_of_;
    nb::object characters_;  // keeps *table_ alive
    const WordCharacters* table_;
    bool folds_;
    uint32_t most_words_;
    mutable std::shared_mutex mutex_;  // of all below
    std::vector<uint32_t> slots_;      // open addressing: entry numbers; a power of two, at most half full
    std::vector<Entry> entries_;
    std::vector<Slice> forms_;
    std::string bytes_;
};

}  // namespace paperwasp
