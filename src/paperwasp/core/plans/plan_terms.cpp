// The values of a request in a run of a plan: its words become terms of the index, and its vector a search. See plan_run.hpp.
#include <algorithm>
#include <cmath>
#include <memory>
#include <optional>
#include <utility>

#include "plans/plan_run.hpp"

namespace paperwasp {
namespace {

constexpr size_t MOST_PHRASE_WORDS = 5;    // in longer ones, words that repeat are looked at
constexpr uint32_t NOWHERE = 0xFFFFFFFEu;  // a term that no segment has

constexpr double WEAK_SCORE_OF_IDF = 1e8;  // in millionths, for a weight of 100

constexpr double LEAST_SHARE = 1e-6;  // no word is rarer for its significance

// About how many nanoseconds a posting takes that is ranked by nativeRank: 6 where most hits are seen not to be among the best, up to 85
// where all score about the same. What may take long is not to hold the event loop up.
constexpr uint64_t NATIVE_STEPS = 15;

// As search/features/bm25.py has it.
double inverse_document_frequency(uint64_t documents, uint64_t frequency) {
    const double total = std::max(1.0, static_cast<double>(documents));
    const double within = std::min(std::max(1.0, static_cast<double>(frequency)), total);
    return std::log(1.0 + ((total - within + 0.5) / (within + 0.5)));
}

// As `significance_of` in search/features/setting.py has it.
double significance(uint64_t documents, uint64_t frequency) {
    if (documents == 0) return 0.5;
    const double share = std::min(std::max(static_cast<double>(frequency) / static_cast<double>(documents), LEAST_SHARE), 1.0);
    return 0.5 + 0.5 * std::log(share) / std::log(LEAST_SHARE);
}

// What a term without annotations scores in a weakAnd, as search/operators/weak_and.py has it.
int64_t weak_score(uint64_t documents, uint64_t frequency) {
    const double total = static_cast<double>(documents + 1), within = static_cast<double>(std::max<uint64_t>(frequency, 1));
    const double idf = std::log1p((total - within + 0.5) / (within + 0.5));
    return std::clamp(static_cast<int64_t>(WEAK_SCORE_OF_IDF * idf) + 1, int64_t{0}, MOST_WEAK_SCORE);
}

// Whether a word of several parts has one that is more than a term in some field.
bool has_phrase_in_part(const Word& word) {
    return word.parts.size() > 1 && std::any_of(word.parts.begin(), word.parts.end(), [](const WordPart& part) {
               return std::any_of(part.matches.begin(), part.matches.end(), [](const WordMatch& match) { return match.terms.size() > 1; });
           });
}

}  // namespace

// Finds each word in the snapshot; then makes of all of them what the kernels take.
PlanRun::Filled PlanRun::fill_terms(const std::vector<TextTerm>& terms, std::vector<UnknownWord>& unknown) {
    std::shared_ptr<const Words> words;
    for (size_t i = 0; i < terms.size(); ++i) {
        for (const std::string_view word : terms[i])
            if (word.size() > plan_.words.most_characters) return Filled::GENERAL_WAY;
        const size_t index = plan_.words.indexes.size() > 1 ? i : 0;
        std::shared_ptr<const Word> word;
        if (terms[i].size() > 1) {
            word = phrase_of(terms[i], unknown);
        } else {
            if (index > 0 || !words) words = snapshot_.words(plan_.words.indexes[index]);
            word = words->find(terms[i][0]);
            if (!word) unknown.emplace_back(index, false, terms[i][0]);
        }
        if (word && (word->parts.empty() || has_phrase_in_part(*word))) return Filled::GENERAL_WAY;
        if (word) words_.push_back(std::move(word));
    }
    if (!unknown.empty() || !has_fields() || !find_columns()) return Filled::UNKNOWN;
    all_ = words_.size() > 1 ? plan_.words.composite == PlanWords::Composite::ALL : !words_.empty() && words_[0]->parts.size() > 1;
    if (plan_.words.composite == PlanWords::Composite::NEAR && !plan_.ranking.expression) return Filled::READY;
    const bool is_ready = plan_.ranking.order        ? add_order()
                          : plan_.ranking.expression ? add_expression()
                          : plan_.ranking.native     ? add_native()
                                                     : add_terms();
    if (is_ready) expected_ns_ += expected_facets_ns();
    return is_ready ? Filled::READY : Filled::GENERAL_WAY;
}

PlanRun::Filled PlanRun::fill_vector(std::string_view vector, const NearSearch& search) {
    const NearVectors* const vectors = snapshot_.vectors(plan_.near->field);
    if (vectors == nullptr) return Filled::GENERAL_WAY;
    near_ = NearQuery::of(vector, *plan_.near, search, *vectors);
    if (!near_) return Filled::GENERAL_WAY;
    expected_ns_ += near_->expected_ns() + static_cast<uint64_t>(HIT_STEPS) * hits_;
    return Filled::READY;
}

// One word of all that stand next to each other: in each field a match of all their terms. Its frequency is that of the rarest word.
// Nothing if one of them is unknown. Without parts: the general steps see more in it.
std::shared_ptr<const Word> PlanRun::phrase_of(const TextTerm& term, std::vector<UnknownWord>& unknown) const {
    static const auto OTHER = std::make_shared<const Word>();
    if (term.size() > MOST_PHRASE_WORDS) return OTHER;
    const std::shared_ptr<const Words> words = snapshot_.words(plan_.words.phrase_index);
    WordPart joined{};
    bool is_known = true;
    for (size_t i = 0; i < term.size(); ++i) {
        const std::shared_ptr<const Word> word = words->find(term[i]);
        if (!word) unknown.emplace_back(0, true, term[i]);
        is_known &= word != nullptr;
        if (!is_known) continue;
        if (word->parts.size() != 1) return OTHER;
        const std::vector<WordMatch>& matches = word->parts[0].matches;
        if (i == 0) joined = word->parts[0];
        if (matches.size() != joined.matches.size()) return OTHER;
        for (size_t j = 0; i > 0 && j < matches.size(); ++j) {
            WordMatch& to = joined.matches[j];
            if (matches[j].field != to.field) return OTHER;
            to.terms.insert(to.terms.end(), matches[j].terms.begin(), matches[j].terms.end());
            to.frequency = std::min(to.frequency, matches[j].frequency);
        }
    }
    if (!is_known) return nullptr;
    uint64_t frequency = 0;
    for (WordMatch& match : joined.matches) {
        frequency += match.frequency;
        joined.length = std::max({joined.length, static_cast<uint32_t>(term.size()), static_cast<uint32_t>(match.terms.size())});
        if (std::find(match.terms.begin(), match.terms.end(), NOWHERE) != match.terms.end()) match.terms = {NOWHERE};
    }
    frequency = std::min(frequency, snapshot_.documents);
    joined.idf = inverse_document_frequency(snapshot_.documents, frequency);
    joined.significance = significance(snapshot_.documents, frequency);
    return std::make_shared<const Word>(Word{{}, weak_score(snapshot_.documents, frequency), {std::move(joined)}});
}

bool PlanRun::has_fields() const {
    const auto is_known = [this](const std::string& name) { return snapshot_.field(name).has_value(); };
    if (plan_.ranking.order) return snapshot_.column(plan_.ranking.order->field) != nullptr;
    if (plan_.ranking.native) return std::all_of(plan_.ranking.native->names.begin(), plan_.ranking.native->names.end(), is_known);
    return std::all_of(plan_.ranking.fields.begin(), plan_.ranking.fields.end(), [this](const PlanField& field) {
        const std::optional<Snapshot::Field> found = snapshot_.field(field.name);
        return found && found->average_length;
    });
}

// Finds the columns of the facets, and those that are shown. False: the snapshot does not know them all.
bool PlanRun::find_columns() {
    for (const FacetRoot& root : plan_.shown.facets)
        for (const FacetList& list : root.lists) {
            columns_.push_back(snapshot_.column(list.attribute));
            if (!columns_.back()) return false;
        }
    for (const std::string& name : plan_.shown.columns) {
        shown_columns_.push_back(snapshot_.column(name));
        if (!shown_columns_.back()) return false;
    }
    return true;
}

bool PlanRun::is_ranked(const WordMatch& match) const { return std::find(ranked_.begin(), ranked_.end(), match.field) != ranked_.end(); }

// Adds what documents match: where all must, each part of each word.
void PlanRun::add_children() {
    const bool is_weak = plan_.words.composite == PlanWords::Composite::WEAK && !all_;
    const Reader& reader = *snapshot_.reader;
    for (const auto& word : words_) {
        const int64_t score = is_weak ? word->weak_score : 1;
        const bool has_parts = !all_ && word->parts.size() > 1;
        if (has_parts) children_.push_back({score, {}, word.get()});
        for (const WordPart& part : word->parts) {
            if (!has_parts) children_.push_back({score, {}});
            for (const WordMatch& match : part.matches) {
                if (!has_parts) children_.back().matches.push_back(&match);
                expected_ns_ += match.terms.size() > 1 ? steps_of_phrase(reader, match.field, match.terms.data(), match.terms.size())
                                                       : reader.steps_of(match.field, match.terms[0]);
            }
        }
    }
}

// Puts the query to the kernels of nativeRank. False: they cannot run it.
bool PlanRun::add_native() {
    std::vector<NativeTerm> terms;
    for (const auto& word : words_)
        for (const WordPart& part : word->parts)
            terms.push_back({part.significance, part.length, &part.matches, all_ || word->parts.size() == 1 ? nullptr : word.get()});
    for (const std::string& name : plan_.ranking.native->names) ranked_.push_back(snapshot_.field(name)->number);
    native_ = native_query_of(*plan_.ranking.native, ranked_, terms, native_given_);
    if (!native_) return false;
    native_->attribute = attribute_;
    const Reader& reader = *snapshot_.reader;
    for (const NativeList& list : native_->lists)
        expected_ns_ += NATIVE_STEPS * reader.frequency(native_->fields[list.field].index, list.term);
    expected_ns_ += static_cast<uint64_t>(HIT_STEPS) * hits_;
    add_children();
    return true;
}

// Only looks for what matches: the order is that of an attribute.
bool PlanRun::add_order() {
    add_children();
    expected_ns_ += steps_of_order(*snapshot_.column(plan_.ranking.order->field)) + static_cast<uint64_t>(HIT_STEPS) * hits_;
    return true;
}

// Puts the query to the kernel as `search/phases/pruning.py` does: field by field, words in the order of the query. False: all is scored.
bool PlanRun::add_terms() {
    for (const PlanField& field : plan_.ranking.fields) {
        const Snapshot::Field found = *snapshot_.field(field.name);
        ranked_.push_back(found.number);
        double average_length = field.average_length > 0 ? field.average_length : *found.average_length;
        if (!(average_length > 0)) average_length = 1;
        for (const auto& word : words_) add_ranked(*word, field, found.number, average_length);
    }
    if (terms_.empty()) return false;
    all_in_lists_ = all_ && finds_all_in_lists();
    matches_first_ = !plan_.shown.facets.empty() || (all_ && !all_in_lists_);
    counts_ = !matches_first_ && (all_ || (plan_.words.composite != PlanWords::Composite::WEAK && counts_by_lists()));
    if (!counts_)
        add_children();
    else if (!all_)
        for (const auto& word : words_) add_unranked(*word);
    const Reader& reader = *snapshot_.reader;
    Query query;
    for (const Term& term : terms_) {
        query.add(term.term, nullptr);
        if (term.whole != nullptr)
            expected_ns_ += reader.frequency(term.term.field, term.term.term);
        else if (term.match != nullptr)
            expected_ns_ += steps_of_phrase(reader, term.match->field, term.match->terms.data(), term.match->terms.size());
    }
    expected_ns_ += steps_of(reader, query, all_in_lists_, counts_) + static_cast<uint64_t>(HIT_STEPS) * hits_;
    return true;
}

// Adds the parts of a word that match in a field that is ranked by.
void PlanRun::add_ranked(const Word& word, const PlanField& field, uint32_t number, double average_length) {
    const Word* const whole = all_ || word.parts.size() == 1 ? nullptr : &word;
    for (const WordPart& part : word.parts)
        for (const WordMatch& match : part.matches) {
            if (match.field != number) continue;
            Term term;
            term.term = {match.field, match.terms[0], part.idf, field.k1, field.b, average_length};
            if (whole != nullptr || match.terms.size() > 1) term.match = &match;
            term.whole = whole;
            terms_.push_back(term);
        }
}

// Adds, without a weight, what a word matches in fields that are not ranked by: such documents are counted.
void PlanRun::add_unranked(const Word& word) {
    for (const WordPart& part : word.parts)
        for (const WordMatch& match : part.matches) {
            if (is_ranked(match)) continue;
            Term term;
            term.term = {match.field, match.terms[0], 0, 0, 0, 1};
            terms_.push_back(term);
        }
}

// Whether documents that have all words are those in all lists of the query.
bool PlanRun::finds_all_in_lists() const {
    for (const auto& word : words_)
        for (const WordPart& part : word->parts)
            if (part.matches.size() != 1 || part.matches[0].terms.size() > 1 || !is_ranked(part.matches[0])) return false;
    return true;
}

// Whether documents that have any word are those in any list of the query.
bool PlanRun::counts_by_lists() const {
    for (const auto& word : words_)
        for (const WordPart& part : word->parts) {
            if (word->parts.size() > 1 && (part.matches.size() != 1 || !is_ranked(part.matches[0]))) return false;
            for (const WordMatch& match : part.matches)
                if (match.terms.size() > 1 && !is_ranked(match)) return false;
        }
    return true;
}

}  // namespace paperwasp
