// Compiled queries: see plan.hpp.
#include "plan.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <utility>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "clock.hpp"
#include "json_number.hpp"
#include "phrase.hpp"

namespace paperwasp {
namespace {

constexpr uint64_t ROOM_OF_HIT = 1024;  // bytes, about

constexpr size_t MOST_PHRASE_WORDS = 5;    // in longer ones, words that repeat are looked at
constexpr uint32_t NOWHERE = 0xFFFFFFFEu;  // a term that no segment has

// As features/bm25.py has it.
double inverse_document_frequency(uint64_t documents, uint64_t frequency) {
    const double total = std::max(1.0, static_cast<double>(documents));
    const double within = std::min(std::max(1.0, static_cast<double>(frequency)), total);
    return std::log(1.0 + ((total - within + 0.5) / (within + 0.5)));
}

// Bounds the work of a thread while one query is answered.
class Until {
  public:
    explicit Until(int64_t end_ns) { set(end_ns); }
    ~Until() { set(0); }
    Until(const Until&) = delete;
    Until& operator=(const Until&) = delete;

    static void set(int64_t end_ns) { time_of_thread() = {end_ns, LOOK_STEPS}; }
};

// The documents that a term of a query is found in.
struct Finds {
    std::vector<uint32_t> lids, offsets;
    Found found;
};

// The documents with all parts of a word, and of each part the offsets of its occurrences.
struct WholeFinds {
    std::vector<uint32_t> lids;
    std::vector<std::vector<uint32_t>> offsets;
};

// Each part is one term of one field.
WholeFinds find_whole(const Reader& reader, const Word& word, const uint64_t* live) {
    const size_t parts = word.parts.size();
    WholeFinds found;
    found.offsets.assign(parts, {0});
    Clock clock;
    std::vector<uint32_t> frequencies(parts);
    for (const Segment& segment : reader.segments) {
        std::vector<Cursor> cursors;
        for (const WordPart& part : word.parts) {
            const WordMatch& match = part.matches[0];
            const FieldIndex& field_index = segment.field_indexes[match.field];
            const uint32_t place = field_index.header == nullptr ? NO_INDEX : field_index.find(match.terms[0]);
            if (place == NO_INDEX) break;
            cursors.emplace_back(field_index, place);
        }
        if (cursors.size() < parts) continue;
        size_t lead = 0;
        for (size_t i = 1; i < parts; ++i)
            if (cursors[i].frequency() < cursors[lead].frequency()) lead = i;
        for (Cursor& rarest = cursors[lead]; !rarest.exhausted(); rarest.next_block()) {
            clock.spend(static_cast<int64_t>(8 * BLOCK * parts));
            const uint32_t* documents = rarest.documents();
            for (uint32_t i = 0, n = rarest.count(); i < n; ++i) {
                if (!accepts(live, segment.base + documents[i])) continue;
                frequencies[lead] = rarest.frequencies()[i];
                size_t part = 0;
                for (; part < parts; ++part) {
                    if (part == lead) continue;
                    Cursor& other = cursors[part];
                    other.shallow_seek(documents[i]);
                    const uint32_t at = other.exhausted() ? NO_INDEX : other.find(documents[i]);
                    if (at == NO_INDEX) break;
                    frequencies[part] = other.frequencies()[at];
                }
                if (part < parts) continue;
                found.lids.push_back(segment.base + documents[i]);
                for (size_t j = 0; j < parts; ++j) found.offsets[j].push_back(found.offsets[j].back() + frequencies[j]);
            }
        }
    }
    return found;
}

void append_count(const char* form, uint64_t count, std::string& to) {
    char written[160];
    to.append(written, static_cast<size_t>(std::snprintf(written, sizeof written, form, static_cast<unsigned long long>(count))));
}

}  // namespace

PlanRun::Fill PlanRun::fill(const std::vector<std::string_view>& words, std::vector<std::string>& unknown) {
    const std::shared_ptr<const Words> known = snapshot_.words(plan_.index);
    for (const std::string_view text : words) {
        if (text.size() > plan_.most_characters) return Fill::OTHER_WAY;
        std::shared_ptr<const Word> word = known->find(text);
        if (!word)
            unknown.emplace_back(text);
        else if (word->parts.empty())
            return Fill::OTHER_WAY;
        else
            words_.push_back(std::move(word));
    }
    if (!unknown.empty()) return Fill::UNKNOWN;
    if (plan_.composite == Plan::Composite::PHRASE && !join_phrase()) return Fill::OTHER_WAY;
    return add_terms() ? Fill::READY : Fill::OTHER_WAY;
}

// Makes one word of all that stand next to each other: in each field a match of all their terms. Its frequency is that of the rarest word.
// False: the general steps see more in it.
bool PlanRun::join_phrase() {
    if (words_.size() < 2 || words_.size() > MOST_PHRASE_WORDS) return false;
    WordPart joined = words_[0]->parts[0];
    for (size_t i = 0; i < words_.size(); ++i) {
        const auto& parts = words_[i]->parts;
        if (parts.size() != 1 || parts[0].matches.size() != joined.matches.size()) return false;
        for (size_t j = 0; i > 0 && j < joined.matches.size(); ++j) {
            WordMatch& to = joined.matches[j];
            const WordMatch& from = parts[0].matches[j];
            if (from.field != to.field) return false;
            to.terms.insert(to.terms.end(), from.terms.begin(), from.terms.end());
            to.frequency = std::min(to.frequency, from.frequency);
        }
    }
    uint64_t frequency = 0;
    for (WordMatch& match : joined.matches) {
        frequency += match.frequency;
        if (std::find(match.terms.begin(), match.terms.end(), NOWHERE) != match.terms.end()) match.terms = {NOWHERE};
    }
    joined.idf = inverse_document_frequency(snapshot_.documents, std::min(frequency, snapshot_.documents));
    words_ = {std::make_shared<const Word>(Word{{}, {std::move(joined)}})};
    return true;
}

bool PlanRun::is_ranked(const WordMatch& match) const { return std::find(ranked_.begin(), ranked_.end(), match.field) != ranked_.end(); }

// Puts the query to the kernel as `search/pruning.py` does: field by field, words in the order of the query.
bool PlanRun::add_terms() {
    all_ = words_.size() > 1 ? plan_.composite == Plan::Composite::ALL : words_[0]->parts.size() > 1;
    for (const PlanField& field : plan_.fields) {
        const std::optional<Snapshot::Field> found = snapshot_.field(field.name);
        if (!found) return false;
        ranked_.push_back(found->number);
        double average_length = field.average_length > 0 ? field.average_length : found->average_length;
        if (!(average_length > 0)) average_length = 1;
        for (const auto& word : words_)
            if (!add_ranked(*word, field, found->number, average_length)) return false;
    }
    if (terms_.empty()) return false;
    for (const auto& word : words_)
        if (!add_unranked(*word)) return false;
    const Reader& reader = *snapshot_.reader;
    Query query;
    for (const Term& term : terms_) {
        query.add(term.term, nullptr);
        if (term.phrase != nullptr)
            steps_ += steps_of_phrase(reader, term.phrase->field, term.phrase->terms.data(), term.phrase->terms.size());
        if (term.whole != nullptr) steps_ += reader.frequency(term.term.field, term.term.term);
    }
    steps_ += steps_of(reader, query, all_, true) + static_cast<uint64_t>(HIT_STEPS) * hits_;
    return true;
}

// Adds the parts of a word that match in a field that is ranked by. False: the kernel cannot run it.
bool PlanRun::add_ranked(const Word& word, const PlanField& field, uint32_t number, double average_length) {
    const bool is_whole = word.parts.size() > 1;
    for (size_t part = 0; part < word.parts.size(); ++part) {
        const auto& [idf, matches] = word.parts[part];
        if ((all_ || is_whole) && (matches.size() != 1 || matches[0].terms.size() > 1)) return false;
        for (const WordMatch& match : matches) {
            if (match.field != number) continue;
            Term term;
            term.term = {match.field, match.terms[0], idf, field.k1, field.b, average_length};
            if (match.terms.size() > 1) term.phrase = &match;
            if (is_whole && !all_) {
                term.whole = &word;
                term.part = part;
            }
            terms_.push_back(term);
        }
    }
    return true;
}

// Adds, without a weight, what a word matches in fields that are not ranked by: such documents are counted. False: it cannot be.
bool PlanRun::add_unranked(const Word& word) {
    for (const WordPart& part : word.parts)
        for (const WordMatch& match : part.matches) {
            if (is_ranked(match)) continue;
            if (all_ || word.parts.size() > 1 || match.terms.size() > 1) return false;
            Term term;
            term.term = {match.field, match.terms[0], 0, 0, 0, 1};
            terms_.push_back(term);
        }
    return true;
}

void PlanRun::run() noexcept {
    const Until until(match_end_ns_);
    try {
        search();
    } catch (...) {  // out of time or memory: the general way says what is to be said
        is_whole_ = false;
    }
}

void PlanRun::search() {
    const Reader& reader = *snapshot_.reader;
    std::map<const Word*, WholeFinds> wholes;
    std::vector<std::unique_ptr<Finds>> all_finds;  // the query keeps pointers to them
    Query query;
    for (const Term& term : terms_) {
        if (term.phrase == nullptr && term.whole == nullptr) {
            query.add(term.term, nullptr);
            continue;
        }
        auto finds = std::make_unique<Finds>();
        if (term.phrase != nullptr) {
            std::vector<uint32_t> starts;
            finds->offsets.push_back(0);
            find_phrase(reader, term.phrase->field, term.phrase->terms.data(), term.phrase->terms.size(), snapshot_.live->data(),
                        {finds->lids, finds->offsets, starts});
            finds->found = {finds->lids.data(), finds->offsets.data(), finds->lids.size()};
        } else {
            const auto [whole, is_new] = wholes.try_emplace(term.whole);
            if (is_new) whole->second = find_whole(reader, *term.whole, snapshot_.live->data());
            finds->found = {whole->second.lids.data(), whole->second.offsets[term.part].data(), whole->second.lids.size()};
        }
        query.add(term.term, &finds->found);
        all_finds.push_back(std::move(finds));
    }
    const uint32_t wanted = offset_ + hits_;
    Accepted accept;
    if (accept_)
        accept = {accept_->data(), accept_->size()};
    else if (snapshot_.has_dead)
        accept = {snapshot_.live->data(), snapshot_.live->size()};
    const BestHits found = find_best(reader, query, wanted, all_, true, accept);
    if (found.searched < reader.limit()) return;
    if (found.hits.size() < std::min<uint64_t>(wanted, found.matches)) return;  // documents that match but score nothing are hits too
    total_ = found.matches;
    Until::set(end_ns_);
    const int64_t begun_ns = monotonic_ns();
    is_whole_ = write(found.hits);
    writing_ns_ = monotonic_ns() - begun_ns;
}

// Writes the answer as container/search/rendering.py does.
bool PlanRun::write(const std::vector<Scored>& hits) {
    Clock clock;
    const size_t end = std::min<size_t>(hits.size(), size_t{offset_} + hits_);
    answer_.reserve(256 + (end > offset_ ? (end - offset_) * ROOM_OF_HIT : 0));
    append_count("{\"root\":{\"id\":\"toplevel\",\"relevance\":1.0,\"fields\":{\"totalCount\":%llu}", total_, answer_);
    append_count(",\"coverage\":{\"coverage\":100,\"documents\":%llu,\"full\":true,\"nodes\":1,\"results\":1,\"resultsFull\":1}",
                 snapshot_.documents, answer_);
    if (end > offset_) {
        answer_ += ",\"children\":[";
        Page page(rows_, plan_.form, snapshot_.changed.data(), snapshot_.changed.size(), snapshot_.first_lid);
        std::string relevance;
        for (size_t hit = offset_; hit < end; ++hit) {
            clock.spend(HIT_STEPS);
            if (hit > offset_) answer_ += ',';
            relevance.clear();
            append_number(hits[hit].score, relevance);
            if (!page.append_hit(hits[hit].lid, relevance, snapshot_.gids.data() + hits[hit].lid * GID_BYTES, answer_)) return false;
        }
        answer_ += ']';
        shown_ = static_cast<uint32_t>(end - offset_);
    }
    answer_ += "}}";
    return true;
}

namespace {

// What a character is in a text of a user.
enum Kind : uint8_t { OTHER, SPACE, WITHIN, ALPHANUMERIC };

struct Kinds {
    uint8_t of[256];
    constexpr Kinds() : of() {
        for (int c = '0'; c <= '9'; ++c) of[c] = ALPHANUMERIC;
        for (int c = 'a'; c <= 'z'; ++c) of[c] = ALPHANUMERIC;
        for (int c = 'A'; c <= 'Z'; ++c) of[c] = ALPHANUMERIC;
        for (const char c : {'-', '_', '.', ',', '\'', '/', '=', '&', '@', '#', '%', '$', '~', '?', '|', '^', '\\', '`'})
            of[static_cast<uint8_t>(c)] = WITHIN;
        of[' '] = SPACE;
    }
};
constexpr Kinds KINDS;

// The words of a text in which nothing but spaces has a meaning: each begins with an ASCII letter or digit, and has no character with which
// the simple query language says something. `least`: what else a word may have in it. Empty: there is more in the text. What such a word
// is, the general steps say.
std::vector<std::string_view> plain_words(std::string_view text, Kind least) {
    std::vector<std::string_view> words;
    for (size_t at = 0; at < text.size();) {
        const size_t start = at;
        while (at < text.size() && KINDS.of[static_cast<uint8_t>(text[at])] >= least) ++at;
        if (at > start) {
            if (KINDS.of[static_cast<uint8_t>(text[start])] != ALPHANUMERIC) return {};
            words.push_back(text.substr(start, at - start));
        }
        if (at < text.size() && KINDS.of[static_cast<uint8_t>(text[at])] != SPACE) return {};
        ++at;
    }
    return words;
}

using FieldTuple = std::tuple<std::string, double, double, double>;  // name, k1, b, average length

Plan::Composite composite_of(const std::string& name) {
    if (name == "or") return Plan::Composite::ANY;
    if (name == "and") return Plan::Composite::ALL;
    if (name == "phrase") return Plan::Composite::PHRASE;
    throw nb::value_error("words belong together by or, and, or phrase");
}

void make_plan(Plan* self, std::string index, const std::string& composite, const std::vector<FieldTuple>& fields, const PageForm& form,
               size_t most_words, size_t most_characters) {
    new (self) Plan();
    self->index = std::move(index);
    self->composite = composite_of(composite);
    for (const auto& [name, k1, b, average_length] : fields) {
        if (!(k1 >= 0) || !(b >= 0 && b <= 1)) throw nb::value_error("k1 must not be negative, and b be from 0 to 1");
        self->fields.push_back({name, k1, b, average_length});
    }
    self->form = form;
    self->most_words = most_words;
    self->most_characters = most_characters;
}

// A run that is ready; a list of words that the snapshot does not know; or None for what goes the general way.
nb::object fill_plan(nb::handle plan_object, nb::handle snapshot_object, nb::handle rows_object, std::string_view text, uint32_t hits,
                     uint32_t offset, int64_t match_end_ns, int64_t end_ns, const std::optional<In<uint64_t>>& accept) {
    const Plan& plan = nb::cast<const Plan&>(plan_object);
    const bool is_phrase = plan.composite == Plan::Composite::PHRASE;
    const std::vector<std::string_view> words = plain_words(text, is_phrase ? ALPHANUMERIC : WITHIN);
    if (words.empty() || words.size() > plan.most_words || hits == 0) return nb::none();
    auto run =
        std::make_unique<PlanRun>(plan, nb::cast<const Snapshot&>(snapshot_object), nb::cast<const RowFiles&>(rows_object), hits, offset);
    run->end_at(match_end_ns, end_ns);
    if (accept) {
        if (accept->size() * 64 < nb::cast<const Snapshot&>(snapshot_object).reader->limit())
            throw nb::value_error("the bitmap does not cover all documents");
        run->look_within(*accept);
    }
    std::vector<std::string> unknown;
    switch (run->fill(words, unknown)) {
        case PlanRun::Fill::UNKNOWN:
            return nb::cast(unknown);
        case PlanRun::Fill::OTHER_WAY:
            return nb::none();
        case PlanRun::Fill::READY:
            break;
    }
    for (const nb::handle owner : {plan_object, snapshot_object, rows_object}) run->owners.push_back(nb::borrow(owner));
    return nb::cast(run.release(), nb::rv_policy::take_ownership);
}

nb::object answer_of(PlanRun& self) {
    if (!self.is_whole()) return nb::none();
    return nb::bytes(self.answer().data(), self.answer().size());
}

}  // namespace

void bind_plan(nb::module_& m) {
    nb::class_<Plan>(m, "Plan")
        .def("__init__", &make_plan, nb::arg("index"), nb::arg("composite"), nb::arg("fields"), nb::arg("form"), nb::arg("most_words"),
             nb::arg("most_characters"))
        .def("fill", &fill_plan, nb::arg("snapshot"), nb::arg("rows"), nb::arg("text"), nb::arg("hits"), nb::arg("offset"),
             nb::arg("match_end_ns"), nb::arg("end_ns"), nb::arg("accept").none(),
             "A run of the plan for a text among accepted documents; a list of its words that the snapshot does not know yet; None: it\n"
             "goes the general way.");
    nb::class_<PlanRun>(m, "PlanRun")
        .def("run",
             [](PlanRun& self) {
                 const GilRelease unlocked(is_much(self.steps()));
                 self.run();
             })
        .def_prop_ro("steps", &PlanRun::steps, "About how many nanoseconds it takes.")
        .def_prop_ro("answer", &answer_of, "The JSON of the answer; None: it has to be found the general way.")
        .def_prop_ro("total", &PlanRun::total)
        .def_prop_ro("shown", &PlanRun::shown)
        .def_prop_ro("writing_ns", &PlanRun::writing_ns);
}

}  // namespace paperwasp
