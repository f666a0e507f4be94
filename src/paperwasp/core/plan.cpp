// Compiled queries: see plan.hpp.
#include "plan.hpp"

#include <algorithm>
#include <cstdio>
#include <new>
#include <optional>
#include <utility>

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

// Bounds the work of a thread while one query is answered.
class Until {
  public:
    explicit Until(int64_t end_ns) { set(end_ns); }
    ~Until() { set(0); }
    Until(const Until&) = delete;
    Until& operator=(const Until&) = delete;

    static void set(int64_t end_ns) { time_of_thread() = {end_ns, LOOK_STEPS}; }
};

void append_count(const char* form, uint64_t count, std::string& to) {
    char written[160];
    to.append(written, static_cast<size_t>(std::snprintf(written, sizeof written, form, static_cast<unsigned long long>(count))));
}

}  // namespace

PlanRun::Fill PlanRun::fill(const std::vector<std::string_view>& words, std::vector<std::string>& unknown) {
    Words& known = const_cast<Snapshot&>(snapshot_).words(plan_.index);
    words_.clear();
    for (const std::string_view text : words) {
        if (text.size() > plan_.most_characters) return Fill::OTHER_WAY;
        std::shared_ptr<const Word> word = known.find(text);
        if (!word)
            unknown.emplace_back(text);
        else if (!word->is_known)
            return Fill::OTHER_WAY;
        else
            words_.push_back(std::move(word));
    }
    if (!unknown.empty()) return Fill::UNKNOWN;
    return add_terms() ? Fill::READY : Fill::OTHER_WAY;
}

// Puts the query to the kernel as `search/pruning.py` does: field by field, words in the order of the query.
bool PlanRun::add_terms() {
    terms_.clear();
    all_ = plan_.all && words_.size() > 1;
    std::vector<uint32_t> ranked;
    for (const PlanField& field : plan_.fields) {
        const std::optional<Snapshot::Field> found = snapshot_.field(field.name);
        if (!found) return false;
        ranked.push_back(found->number);
        double average_length = field.average_length > 0 ? field.average_length : found->average_length;
        if (!(average_length > 0)) average_length = 1;
        for (const auto& word : words_)
            for (const WordMatch& match : word->matches)
                if (match.field == found->number) {
                    const bool is_phrase = match.terms.size() > 1;
                    terms_.push_back(
                        {{match.field, match.terms[0], word->idf, field.k1, field.b, average_length}, is_phrase ? &match : nullptr});
                }
    }
    const auto is_ranked = [&](const WordMatch& match) { return std::find(ranked.begin(), ranked.end(), match.field) != ranked.end(); };
    for (const auto& word : words_) {
        if (all_ && (word->matches.size() != 1 || word->matches[0].terms.size() > 1 || !is_ranked(word->matches[0]))) return false;
        for (const WordMatch& match : word->matches)
            if (!is_ranked(match)) {
                if (match.terms.size() > 1) return false;
                terms_.push_back({{match.field, match.terms[0], 0, 0, 0, 1}, nullptr});
            }
    }
    if (terms_.empty() || std::none_of(terms_.begin(), terms_.end(), [](const Term& term) { return term.term.weight > 0; })) return false;
    const Reader& reader = *snapshot_.reader;
    Query query;
    for (const Term& term : terms_) {
        query.add(term.term, nullptr);
        if (term.phrase != nullptr) steps_ += steps_of_phrase(reader, term.phrase->field, term.phrase->terms.data(), term.phrase->terms.size());
    }
    steps_ += steps_of(reader, query, all_, true) + static_cast<uint64_t>(HIT_STEPS) * hits_;
    return true;
}

void PlanRun::run() noexcept {
    const Until until(match_end_ns_);
    try {
        search();
    } catch (const std::exception&) {  // out of time or memory: the general way says what is to be said
        is_whole_ = false;
    }
}

void PlanRun::search() {
    const Reader& reader = *snapshot_.reader;
    std::vector<std::unique_ptr<Phrase>> phrases;
    Query query;
    for (const Term& term : terms_) {
        const Found* found = nullptr;
        if (term.phrase != nullptr) {
            auto phrase = std::make_unique<Phrase>();
            phrase->offsets.push_back(0);
            find_phrase(reader, term.phrase->field, term.phrase->terms.data(), term.phrase->terms.size(), snapshot_.live->data(),
                        {phrase->lids, phrase->offsets, phrase->starts});
            phrase->found = {phrase->lids.data(), phrase->offsets.data(), phrase->lids.size()};
            found = &phrase->found;
            phrases.push_back(std::move(phrase));
        }
        query.add(term.term, found);
    }
    const uint32_t wanted = offset_ + hits_;
    const Accepted accept = snapshot_.has_dead ? Accepted{snapshot_.live->data(), snapshot_.live->size()} : Accepted();
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

// The words of a text of nothing but ASCII letters, digits and spaces; empty: there is something else in it.
std::vector<std::string_view> plain_words(std::string_view text) {
    std::vector<std::string_view> words;
    size_t start = 0;
    for (size_t i = 0; i <= text.size(); ++i) {
        const char c = i < text.size() ? text[i] : ' ';
        if (c == ' ') {
            if (i > start) words.push_back(text.substr(start, i - start));
            start = i + 1;
        } else if (!((c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) {
            return {};
        }
    }
    return words;
}

using FieldTuple = std::tuple<std::string, double, double, double>;  // name, k1, b, average length

void make_plan(Plan* self, std::string index, bool all, const std::vector<FieldTuple>& fields, const PageForm& form, size_t most_words,
               size_t most_characters) {
    new (self) Plan();
    self->index = std::move(index);
    self->all = all;
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
                     uint32_t offset, int64_t match_end_ns, int64_t end_ns) {
    const Plan& plan = nb::cast<const Plan&>(plan_object);
    const std::vector<std::string_view> words = plain_words(text);
    if (words.empty() || words.size() > plan.most_words || hits == 0) return nb::none();
    auto run = std::make_unique<PlanRun>(plan, nb::cast<const Snapshot&>(snapshot_object), nb::cast<const RowFiles&>(rows_object), hits, offset);
    run->end_at(match_end_ns, end_ns);
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
        .def("__init__", &make_plan, nb::arg("index"), nb::arg("all"), nb::arg("fields"), nb::arg("form"), nb::arg("most_words"),
             nb::arg("most_characters"))
        .def("fill", &fill_plan, nb::arg("snapshot"), nb::arg("rows"), nb::arg("text"), nb::arg("hits"), nb::arg("offset"),
             nb::arg("match_end_ns"), nb::arg("end_ns"),
             "A run of the plan for a text; a list of its words that the snapshot does not know yet; None: it goes the general way.");
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
