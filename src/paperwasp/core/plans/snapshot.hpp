// Snapshot: the documents of one type in one published view, as plans read them (plan_run.hpp).
//
// It holds counted references to all that it points into, so a plan that runs needs no object of Python. What words stand for is found by
// the general steps, the first time that a query of the view has them, and kept here.
//
// Threads: any number may read. Words and columns are added under a lock and never changed; fields are read as copies, under it. Of what it
// points into, two are written meanwhile, by the writer, and read as atomics: bytes of `changed` go from 0 to 1, and values of columns are
// changed in place.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <variant>
#include <vector>

#include "attributes/column_strings.hpp"
#include "core.hpp"
#include "index/reader.hpp"
#include "plans/plan_near.hpp"

namespace paperwasp {

constexpr size_t MOST_INDEXES = 256;  // whose words a snapshot keeps, languages apart
constexpr size_t MOST_FULL = 4;       // indexes whose words may be as many as those of one may
constexpr size_t WORD_BYTES = 64;     // of a word that counts as one

// What a word of a query matches in one field: a term, or terms next to each other.
struct WordMatch {
    uint32_t field;
    std::vector<uint32_t> terms;  // at least one
    uint64_t frequency;           // live documents that have it; of a phrase: those with its rarest term
};

// A token of a word: it matches in any of these ways.
struct WordPart {
    double idf;
    double significance;  // for nativeRank
    uint32_t length;      // in words
    std::vector<WordMatch> matches;
};

// What a word of a query is in one view. It matches where all of its parts do, and its parts count only there.
struct Word {
    std::string text;
    int64_t weak_score;           // in a weakAnd
    std::vector<WordPart> parts;  // empty: it matches in another way
};

// The words of one index and language.
class Words {
  public:
    explicit Words(size_t most) : most_(most) {}

    // nullptr: the general steps have not found it yet.
    std::shared_ptr<const Word> find(std::string_view text) const;
    // When full, all words are dropped first.
    void add(Word word);

  private:
    const size_t most_;
    mutable std::mutex mutex_;
    std::unordered_map<std::string_view, std::shared_ptr<const Word>> known_;  // keys are in the words
};

// A column with one string or number for each lid. The least integer, or NaN, stands for none.
struct SnapshotColumn {
    std::variant<In<uint32_t>, In<int8_t>, In<int32_t>, In<int64_t>, In<float>, In<double>> values;
    const ColumnStrings* strings;  // by code, where values are codes; nullptr: they are numbers
    nb::object strings_owner;
    bool are_truths;  // whether positive numbers stand for true, and all others for false
};

class Snapshot {
  public:
    // The live documents of the type, by lid.
    std::optional<In<uint64_t>> live;
    // Whether the index may hold documents that are not live.
    bool has_dead = false;
    uint64_t documents = 0;
    In<uint8_t> changed;
    In<uint8_t> gids;
    uint32_t first_lid = 0;  // rows below are of an earlier layout
    size_t most_words = 0;   // of each index; of all together MOST_FULL times as many
    const Reader* reader = nullptr;
    nb::object reader_owner;

    std::shared_ptr<Words> words(const std::string& index) const;
    // Says what a word of an index is. When the snapshot is full, the words of all indexes are dropped first.
    void add_word(const std::string& index, Word word);

    // A field's number, and its average length in tokens, where a plan has asked for it.
    struct Field {
        uint32_t number;
        std::optional<double> average_length;
    };
    std::optional<Field> field(const std::string& name) const;
    void add_field(const std::string& name, Field field);

    // The vectors of a field, for as long as the snapshot is there; nullptr: no plan has asked for them.
    const NearVectors* vectors(const std::string& name) const;
    // Vectors that are known stay as they are.
    void add_vectors(const std::string& name, NearVectors vectors);

    // The same of a column whose values are counted, sorted by, or shown.
    const SnapshotColumn* column(const std::string& name) const;
    void add_column(const std::string& name, SnapshotColumn column);

  private:
    mutable std::mutex mutex_;
    mutable std::map<std::string, std::shared_ptr<Words>> words_;
    size_t added_ = 0;  // words since all were dropped; long ones count as several
    std::map<std::string, Field> fields_;
    std::map<std::string, NearVectors> vectors_;
    std::map<std::string, SnapshotColumn> columns_;
};

}  // namespace paperwasp
