// Compiled queries as Python knows them: see plan.hpp and plan_run.hpp.
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <variant>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/variant.h>
#include <nanobind/stl/vector.h>

#include "plan_run.hpp"
#include "plan_text.hpp"

namespace paperwasp {
namespace {

using FieldTuple = std::tuple<std::string, double, double, double>;  // name, k1, b, average length

Plan::Composite composite_of(const std::string& name) {
    if (name == "or") return Plan::Composite::ANY;
    if (name == "and") return Plan::Composite::ALL;
    if (name == "weakAnd") return Plan::Composite::WEAK;
    if (name == "phrase") return Plan::Composite::PHRASE;
    if (name == "near") return Plan::Composite::NEAR;
    throw nb::value_error("words belong together by or, and, weakAnd, or phrase; near: there are none");
}

// names, numbers (as native_scores takes them) and tables of the fields; which have elements; the window; the weights of nativeFieldMatch,
// nativeProximity and nativeAttributeMatch, and what their sum is divided by.
using NativeTuple =
    std::tuple<std::vector<std::string>, In<double>, nb::list, std::vector<bool>, uint32_t, std::tuple<double, double, double, double>>;

// attribute, order, most, shown, head, turn, counts
using FacetTuple = std::tuple<std::string, int, size_t, size_t, std::string, std::string, std::vector<std::string>>;
using FacetsTuple = std::tuple<std::string, std::vector<FacetTuple>>;

std::vector<FacetRoot> facets_of(const std::vector<FacetsTuple>& given) {
    std::vector<FacetRoot> roots;
    for (const auto& [head_of_root, lists] : given) {
        FacetRoot& root = roots.emplace_back(FacetRoot{head_of_root, {}});
        for (const auto& [attribute, order, most, shown, head, turn, counts] : lists) {
            if (most == 0 || shown == 0) throw nb::value_error("a facet has one group at least");
            root.lists.push_back({attribute, order, most, shown, head, turn, counts});
        }
    }
    return roots;
}

NativeRank native_of(const NativeTuple& given) {
    const auto& [names, numbers, tables, has_elements, window, weights] = given;
    NativeRank native;
    native.names = names;
    native.fields = read_native_fields(1, numbers, tables);
    native.has_elements = has_elements;
    if (native.fields.size() != names.size() || has_elements.size() != names.size())
        throw nb::value_error("the numbers do not match the number of fields");
    native.window = window;
    std::tie(native.weights.match, native.weights.proximity, native.weights.attribute, native.weights.divisor) = weights;
    native.tables = tables;
    return native;
}

using NearTuple = std::tuple<std::string, uint32_t, std::string, double>;  // field, type of the vector's cells, distance metric, threshold

NearForm near_of(const NearTuple& given) {
    static const std::pair<std::string_view, Nearness> METRICS_BY_NAME[] = {
        {"euclidean", Nearness::EUCLIDEAN},
        {"angular", Nearness::ANGULAR},
        {"dotproduct", Nearness::DOTPRODUCT},
        {"prenormalized-angular", Nearness::PRENORMALIZED_ANGULAR},
        {"innerproduct", Nearness::PRENORMALIZED_ANGULAR},
        {"hamming", Nearness::HAMMING},
    };
    const auto& [field, cell, metric, threshold] = given;
    if (cell >= hnsw::CELLS) throw nb::value_error("no such type of cells");
    for (const auto& [name, nearness] : METRICS_BY_NAME)
        if (name == metric) return {field, static_cast<hnsw::Cell>(cell), nearness, threshold};
    throw nb::value_error("no such distance metric");
}

// kind, field and value of each feature; code, constants, temporaries and result of the program.
using ExpressionTuple = std::tuple<std::vector<std::tuple<std::string, size_t, double>>, In<int32_t>, In<double>, size_t, size_t>;

PlanFeature::Kind kind_of(const std::string& name) {
    if (name == "bm25") return PlanFeature::Kind::BM25;
    if (name == "closeness") return PlanFeature::Kind::CLOSENESS;
    if (name == "rawScore") return PlanFeature::Kind::RAW_SCORE;
    if (name == "relevance") return PlanFeature::Kind::RELEVANCE;
    if (name == "constant") return PlanFeature::Kind::CONSTANT;
    throw nb::value_error("plans do not know this kind of feature");
}

RankProgram program_of(size_t columns, const In<int32_t>& code, const In<double>& constants, size_t temporaries, size_t result) {
    RankProgram program{
        {code.data(), code.data() + code.size()}, {constants.data(), constants.data() + constants.size()}, columns, temporaries, result};
    check_program(program);
    return program;
}

PlanExpression expression_of(const ExpressionTuple& given, const Plan& plan) {
    const auto& [features, code, constants, temporaries, result] = given;
    PlanExpression expression;
    for (const auto& [name, field, value] : features) {
        const PlanFeature::Kind kind = kind_of(name);
        if (kind == PlanFeature::Kind::BM25 && field >= plan.fields.size()) throw nb::value_error("a feature of no field");
        const bool is_near = kind == PlanFeature::Kind::CLOSENESS || kind == PlanFeature::Kind::RAW_SCORE;
        if (is_near && !plan.near) throw nb::value_error("nothing is near");
        expression.features.push_back({kind, field, value});
    }
    expression.program = program_of(features.size(), code, constants, temporaries, result);
    return expression;
}

// kind and k of each feature of the global phase, and its input.
using GlobalFeatureTuple = std::tuple<std::string, double, ExpressionTuple>;

// How many hits it ranks, and the drop limit; its features; code, constants, temporaries and result of the program.
using GlobalTuple = std::tuple<size_t, std::optional<double>, std::vector<GlobalFeatureTuple>, In<int32_t>, In<double>, size_t, size_t>;

GlobalFeature::Kind kind_of_global(const std::string& name) {
    if (name == "plain") return GlobalFeature::Kind::PLAIN;
    if (name == "linear") return GlobalFeature::Kind::LINEAR;
    if (name == "reciprocal") return GlobalFeature::Kind::RECIPROCAL;
    throw nb::value_error("plans do not know this kind of normalizer");
}

GlobalForm global_of(const GlobalTuple& given, const Plan& plan) {
    const auto& [rerank_count, drop_limit, features, code, constants, temporaries, result] = given;
    if (rerank_count == 0) throw nb::value_error("the global phase ranks one hit at least");
    GlobalForm global{rerank_count, drop_limit, {}, program_of(features.size(), code, constants, temporaries, result)};
    for (const auto& [kind, k, input] : features) global.features.push_back({kind_of_global(kind), k, expression_of(input, plan)});
    return global;
}

using OrderTuple = std::pair<std::string, bool>;  // field, whether the greatest comes first

void make_plan(Plan* self, std::vector<std::string> indexes, std::string phrase_index, const std::string& composite, uint32_t target_hits,
               const std::vector<FieldTuple>& fields, const std::optional<NativeTuple>& native, const std::optional<NearTuple>& near,
               bool near_alone_matches, const std::optional<ExpressionTuple>& expression, const std::optional<GlobalTuple>& global,
               const std::optional<OrderTuple>& order, const std::optional<PageForm>& form, std::vector<std::string> shown,
               size_t most_words, size_t most_characters, const std::vector<FacetsTuple>& facets, size_t most_groups) {
    if (indexes.empty() != (composite == "near")) throw nb::value_error("words have an index");
    if (indexes.empty() && !near) throw nb::value_error("neither words nor a vector");
    if (near && !indexes.empty() && !expression) throw nb::value_error("words beside a vector are ranked by an expression");
    if (global && !expression) throw nb::value_error("the global phase ranks what an expression has ranked");
    if (order && (near || !facets.empty())) throw nb::value_error("words alone are found in the order of an attribute");
    if ((near || expression) && !facets.empty()) throw nb::value_error("facets are of words that are ranked otherwise");
    if (!shown.empty() && (!form || shown.size() != form->keys.size() || form->id_prefix.empty()))
        throw nb::value_error("a column for each key of a form that has a prefix of ids");
    new (self) Plan();
    self->indexes = std::move(indexes);
    self->phrase_index = std::move(phrase_index);
    self->composite = composite_of(composite);
    self->target_hits = target_hits;
    if (native) self->native = native_of(*native);
    if (near) self->near = near_of(*near);
    self->near_alone_matches = near_alone_matches;
    if (order) self->order = OrderForm{order->first, order->second};
    for (const auto& [name, k1, b, average_length] : fields) {
        if (!(k1 >= 0) || !(b >= 0 && b <= 1)) throw nb::value_error("k1 must not be negative, and b be from 0 to 1");
        self->fields.push_back({name, k1, b, average_length});
    }
    if (expression) self->expression = expression_of(*expression, *self);
    if (global) self->global = global_of(*global, *self);
    self->form = form;
    self->shown = std::move(shown);
    self->most_words = most_words;
    self->most_characters = most_characters;
    self->facets = facets_of(facets);
    self->most_groups = most_groups;
}

// A text, or its words, one for each index of the plan.
using TextOrWords = std::variant<std::string_view, std::vector<std::string_view>>;

std::vector<TextTerm> terms_of(const Plan& plan, const TextOrWords& text) {
    const auto* const words = std::get_if<std::vector<std::string_view>>(&text);
    if (words == nullptr) return plain_terms(std::get<std::string_view>(text), plan.composite == Plan::Composite::PHRASE);
    if (words->size() != plan.indexes.size()) throw nb::value_error("a word for each index");
    std::vector<TextTerm> terms;
    for (const std::string_view word : *words) terms.push_back({word});
    return terms;
}

// limit, count, explore, whether it is searched with the filter, and by the filter first, exploration, slack
using SearchTuple = std::tuple<uint32_t, size_t, size_t, bool, bool, double, double>;

// Fills the slots of words and of the vector.
PlanRun::Filled fill_slots(PlanRun& run, const std::vector<TextTerm>& terms, const nb::bytes& vector,
                           const std::optional<SearchTuple>& near, std::vector<UnknownWord>& unknown) {
    if (const PlanRun::Filled filled = run.fill_terms(terms, unknown); filled != PlanRun::Filled::READY || !near) return filled;
    const auto [limit, count, explore, uses_filter, filter_first, exploration, slack] = *near;
    return run.fill_vector({vector.c_str(), vector.size()}, {limit, count, explore, uses_filter, filter_first, exploration, slack});
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
    if ((hits == 0 && plan.facets.empty()) || words > plan.most_words || (words == 0) != plan.indexes.empty()) return nb::none();
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

nb::object answer_of(PlanRun& self) {
    self.write_groups();
    if (!self.is_answered()) return nb::none();
    return nb::bytes(self.answer().data(), self.answer().size());
}

nb::list left_of(PlanRun& self) {
    self.write_groups();
    nb::list left;
    for (const PlanRun::LeftHit& hit : self.left()) left.append(nb::make_tuple(hit.place, hit.lid, hit.score));
    return left;
}

}  // namespace

void bind_plan(nb::module_& m) {
    nb::class_<Plan>(m, "Plan")
        .def("__init__", &make_plan, nb::arg("indexes"), nb::arg("phrase_index"), nb::arg("composite"), nb::arg("target_hits"),
             nb::arg("fields"), nb::arg("native").none(), nb::arg("near").none(), nb::arg("near_alone_matches"),
             nb::arg("expression").none(), nb::arg("global_phase").none(), nb::arg("order").none(), nb::arg("form").none(),
             nb::arg("shown"), nb::arg("most_words"), nb::arg("most_characters"), nb::arg("facets"), nb::arg("most_groups"))
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
