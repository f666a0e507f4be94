// Plans and their runs as Python has them: see plan.hpp and plan_run.hpp. plan_records.cpp has the parts of a plan.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "plans/plan_run.hpp"
#include "plans/plan_text.hpp"

namespace paperwasp {
namespace {

bool is_near(const PlanFeature& feature) {
    return feature.kind == PlanFeature::Kind::CLOSENESS || feature.kind == PlanFeature::Kind::RAW_SCORE;
}

bool asks_what_is_near(const PlanExpression& expression) {
    return std::any_of(expression.features.begin(), expression.features.end(), is_near);
}

bool asks_what_is_near(const GlobalForm& global) {
    return std::any_of(global.features.begin(), global.features.end(),
                       [](const GlobalFeature& each) { return asks_what_is_near(each.input); });
}

void make_plan(Plan* self, const PlanWords& words, const std::optional<NearForm>& near, const PlanRanking& ranking, const PlanShown& shown,
               size_t most_threads, uint64_t hits_of_thread) {
    const bool has_words = words.composite != PlanWords::Composite::NEAR, has_facets = !shown.facets.empty();
    const auto& [fields, native, expression, global, order] = ranking;
    if (!has_words && !near) throw nb::value_error("neither words nor a vector");
    if (near && has_words && !expression) throw nb::value_error("words beside a vector are ranked by an expression");
    if (order && (near || has_facets)) throw nb::value_error("words alone are found in the order of an attribute");
    if ((near || expression) && has_facets) throw nb::value_error("facets are of words that are ranked otherwise");
    if (!near && ((expression && asks_what_is_near(*expression)) || (global && asks_what_is_near(*global))))
        throw nb::value_error("nothing is near");
    new (self) Plan{words, near, ranking, shown, {most_threads, hits_of_thread}};
}

// A text, or its words, one for each index of the plan.
using TextOrWords = std::variant<std::string_view, std::vector<std::string_view>>;

std::vector<TextTerm> terms_of(const Plan& plan, const TextOrWords& text) {
    const auto* const words = std::get_if<std::vector<std::string_view>>(&text);
    if (words == nullptr) return plain_terms(std::get<std::string_view>(text), plan.words.composite == PlanWords::Composite::PHRASE);
    if (words->size() != plan.words.indexes.size()) throw nb::value_error("a word for each index");
    std::vector<TextTerm> terms;
    for (const std::string_view word : *words) terms.push_back({word});
    return terms;
}

// Fills the slots of words and of the vector.
PlanRun::Filled fill_slots(PlanRun& run, const std::vector<TextTerm>& terms, const nb::bytes& vector,
                           const std::optional<SearchTuple>& near, std::vector<UnknownWord>& unknown) {
    if (const PlanRun::Filled filled = run.fill_terms(terms, unknown); filled != PlanRun::Filled::READY || !near) return filled;
    return run.fill_vector({vector.c_str(), vector.size()}, search_of(*near));
}

// A run that is ready; a list of words that the snapshot does not know; or None for what goes the general way.
nb::object run_of(nb::handle plan_object, nb::handle snapshot_object, nb::handle rows_object, const TextOrWords& text, uint32_t hits,
                  uint32_t offset, int64_t match_end_ns, int64_t end_ns, const std::optional<In<uint64_t>>& accept, double attribute,
                  const nb::bytes& vector, const std::optional<SearchTuple>& near) {
    const Plan& plan = nb::cast<const Plan&>(plan_object);
    const std::vector<TextTerm> terms = terms_of(plan, text);
    size_t words = 0;
    for (const TextTerm& term : terms) words += term.size();
    if (near.has_value() != plan.near.has_value()) throw nb::value_error("how a graph is searched, of a plan that searches one");
    if ((hits == 0 && plan.shown.facets.empty()) || words > plan.words.most_words || (words == 0) != plan.words.indexes.empty())
        return nb::none();
    auto run =
        std::make_unique<PlanRun>(plan, nb::cast<const Snapshot&>(snapshot_object), nb::cast<const RowFiles&>(rows_object), hits, offset);
    run->end_at(match_end_ns, end_ns);
    if (accept) {
        if (accept->size() != nb::cast<const Snapshot&>(snapshot_object).live->size())
            throw nb::value_error("the bitmap does not cover the documents of the snapshot");
        run->look_within(*accept, attribute);
    }
    std::vector<UnknownWord> unknown;
    switch (fill_slots(*run, terms, vector, near, unknown)) {
        case PlanRun::Filled::UNKNOWN:
            return nb::cast(unknown);
        case PlanRun::Filled::GENERAL_WAY:
            return nb::none();
        case PlanRun::Filled::READY:
            break;
    }
    for (const nb::handle owner : {plan_object, snapshot_object, rows_object}) run->owners.push_back(nb::borrow(owner));
    return nb::cast(run.release(), nb::rv_policy::take_ownership);
}

nb::object answer_of(const PlanRun& self) {
    if (!self.is_answered()) return nb::none();
    return nb::bytes(self.answer().data(), self.answer().size());
}

nb::list left_of(const PlanRun& self) {
    nb::list left;
    for (const PlanRun::LeftHit& hit : self.left()) left.append(nb::make_tuple(hit.place, hit.lid, hit.score));
    return left;
}

}  // namespace

void bind_plan(nb::module_& m) {
    nb::class_<Plan>(m, "Plan")
        .def("__init__", &make_plan, nb::arg("words"), nb::arg("near").none(), nb::arg("ranking"), nb::arg("shown"),
             nb::arg("most_threads") = 0, nb::arg("hits_of_thread") = 0)
        .def(
            "run_of", &run_of, nb::arg("snapshot"), nb::arg("rows"), nb::arg("text"), nb::arg("hits"), nb::arg("offset"),
            nb::arg("match_end_ns"), nb::arg("end_ns"), nb::arg("accept").none(), nb::arg("attribute"), nb::arg("vector"),
            nb::arg("near").none(),
            "A run of the plan for a text, or a vector, among accepted documents, each of which has this nativeAttributeMatch; a list of its words that the snapshot does not know yet; None: it\n"
            "goes the general way.");
    nb::class_<PlanRun>(m, "PlanRun")
        .def("run",
             [](PlanRun& self) {
                 const GilRelease unlocked(is_much(self.expected_ns()));
                 self.run();
             })
        .def_prop_ro("expected_ns", &PlanRun::expected_ns, "About how many nanoseconds it takes.")
        .def_prop_ro("answer", &answer_of, "The JSON of the answer; None: it has to be found the general way.")
        .def_prop_ro("left", &left_of, "(place in the answer, lid, score) of each hit that is to be written there.")
        .def_prop_ro("total", &PlanRun::total)
        .def_prop_ro("shown", &PlanRun::shown)
        .def_prop_ro("writing_ns", &PlanRun::writing_ns);
}

}  // namespace paperwasp
