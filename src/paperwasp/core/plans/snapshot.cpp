// The documents of one type in one view: see snapshot.hpp.
#include "plans/snapshot.hpp"

#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "documents/page.hpp"
#include "rank/weak_and.hpp"

namespace paperwasp {

std::shared_ptr<const Word> Words::find(std::string_view text) const {
    const std::lock_guard lock(mutex_);
    const auto found = known_.find(text);
    return found == known_.end() ? nullptr : found->second;
}

void Words::add(Word word) {
    auto kept = std::make_shared<const Word>(std::move(word));
    const std::lock_guard lock(mutex_);
    if (known_.size() >= most_) known_.clear();
    known_.emplace(kept->text, kept);
}

std::shared_ptr<Words> Snapshot::words(const std::string& index) const {
    const std::lock_guard lock(mutex_);
    const auto found = words_.find(index);
    if (found != words_.end()) return found->second;
    if (words_.size() >= MOST_INDEXES) words_.clear();
    return words_.emplace(index, std::make_shared<Words>(most_words)).first->second;
}

void Snapshot::add_word(const std::string& index, Word word) {
    {
        const std::lock_guard lock(mutex_);
        added_ += 1 + word.text.size() / WORD_BYTES;
        if (added_ > MOST_FULL * most_words) {
            words_.clear();
            added_ = 1 + word.text.size() / WORD_BYTES;
        }
    }
    words(index)->add(std::move(word));
}

std::optional<Snapshot::Field> Snapshot::field(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = fields_.find(name);
    if (found == fields_.end()) return std::nullopt;
    return found->second;
}

void Snapshot::add_field(const std::string& name, Field field) {
    const std::lock_guard lock(mutex_);
    const auto [known, is_new] = fields_.try_emplace(name, field);
    if (!is_new && field.average_length) known->second = field;
}

const NearVectors* Snapshot::vectors(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = vectors_.find(name);
    return found == vectors_.end() ? nullptr : &found->second;
}

void Snapshot::add_vectors(const std::string& name, NearVectors vectors) {
    const std::lock_guard lock(mutex_);
    vectors_.try_emplace(name, std::move(vectors));
}

const SnapshotColumn* Snapshot::column(const std::string& name) const {
    const std::lock_guard lock(mutex_);
    const auto found = columns_.find(name);
    return found == columns_.end() ? nullptr : &found->second;
}

void Snapshot::add_column(const std::string& name, SnapshotColumn column) {
    const std::lock_guard lock(mutex_);
    columns_.try_emplace(name, std::move(column));
}

namespace {

void make_snapshot(Snapshot* self, nb::object reader, const In<uint64_t>& live, bool has_dead, uint64_t documents, In<uint8_t> changed,
                   In<uint8_t> gids, uint32_t first_lid, size_t most_words) {
    const Reader& opened = nb::cast<const Reader&>(reader);
    if (live.size() * 64 < opened.limit()) throw nb::value_error("the bitmap does not cover all documents");
    if (gids.size() < size_t{opened.limit()} * GID_BYTES) throw nb::value_error("a gid for each document is needed");
    new (self) Snapshot();
    self->live = live;
    self->has_dead = has_dead;
    self->documents = documents;
    self->changed = std::move(changed);
    self->gids = std::move(gids);
    self->first_lid = first_lid;
    self->most_words = most_words;
    self->reader = &opened;
    self->reader_owner = std::move(reader);
}

using Match = std::tuple<uint32_t, std::vector<uint32_t>, uint64_t>;
using Part = std::tuple<double, double, uint32_t, std::vector<Match>>;

void add_word(Snapshot& snapshot, const std::string& index, std::string text, int64_t weak_score, const std::vector<Part>& parts) {
    if (weak_score < 0 || weak_score > MOST_WEAK_SCORE) throw nb::value_error("a score is below zero or too large");
    Word word{std::move(text), weak_score, {}};
    for (const auto& [idf, significance, length, matches] : parts) {
        if (length == 0) throw nb::value_error("a part of a word is a word at least");
        word.parts.push_back({idf, significance, length, {}});
        for (const auto& [field, terms, frequency] : matches) {
            check_field(*snapshot.reader, field);
            if (terms.empty()) throw nb::value_error("a match has a term");
            word.parts.back().matches.push_back({field, terms, frequency});
        }
    }
    snapshot.add_word(index, std::move(word));
}

}  // namespace

void bind_snapshot(nb::module_& m) {
    nb::class_<Snapshot>(m, "Snapshot")
        .def("__init__", &make_snapshot, nb::arg("reader"), nb::arg("live"), nb::arg("has_dead"), nb::arg("documents"), nb::arg("changed"),
             nb::arg("gids"), nb::arg("first_lid"), nb::arg("most_words"))
        .def("add_word", &add_word, nb::arg("index"), nb::arg("text"), nb::arg("weak_score"), nb::arg("parts"),
             "Says what a word of an index is: what it scores in a weakAnd, and its tokens, all of which must match: (idf, significance,\n"
             "length in words, [(field, terms, frequency)]) of each, with one term or those of a phrase for each field. No tokens: it\n"
             "matches in another way.")
        .def(
            "add_field",
            [](Snapshot& self, const std::string& name, uint32_t number, std::optional<double> average_length) {
                check_field(*self.reader, number);
                self.add_field(name, {number, average_length});
            },
            nb::arg("name"), nb::arg("number"), nb::arg("average_length").none(),
            "Says which number a field has in the index, and its average length in tokens, for plans that need it.")
        .def(
            "add_vectors",
            [](Snapshot& self, const std::string& name, nb::object graph, VectorCells cells, In<uint64_t> rows) {
                const GraphOfColumn found = graph_of(graph, cells);
                self.add_vectors(name, {found, std::move(rows), std::move(cells), std::move(graph)});
            },
            nb::arg("name"), nb::arg("graph"), nb::arg("cells").noconvert(), nb::arg("rows").noconvert(),
            "Says what the vectors of a field are: one a document at most, in a graph.")
        .def(
            "add_column",
            [](Snapshot& self, const std::string& name, decltype(SnapshotColumn::values) values, nb::object strings, bool are_truths) {
                const bool are_codes = !strings.is_none();
                if (are_codes && !std::holds_alternative<In<uint32_t>>(values)) throw nb::value_error("strings have codes");
                const ColumnStrings* const noted = are_codes ? nb::cast<const ColumnStrings*>(strings) : nullptr;
                self.add_column(name, {std::move(values), noted, std::move(strings), are_truths});
            },
            nb::arg("name"), nb::arg("values").noconvert(), nb::arg("strings").none(), nb::arg("are_truths") = false,
            "Says which values a column has, by lid, for plans that count, sort by or show them: numbers, truths, or the codes of strings.");
}

}  // namespace paperwasp
