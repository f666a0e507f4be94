// The records of a plan as Python makes them, each checked for itself: see plan.hpp. How they belong together, plan_module.cpp checks.
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "plans/plan.hpp"

namespace paperwasp {
namespace {

// Words

PlanWords::Composite composite_of(const std::string& name) {
    if (name == "or") return PlanWords::Composite::ANY;
    if (name == "and") return PlanWords::Composite::ALL;
    if (name == "weakAnd") return PlanWords::Composite::WEAK;
    if (name == "phrase") return PlanWords::Composite::PHRASE;
    if (name == "near") return PlanWords::Composite::NEAR;
    throw nb::value_error("words belong together by or, and, weakAnd, or phrase; near: there are none");
}

void make_words(PlanWords* self, std::vector<std::string> indexes, std::string phrase_index, const std::string& composite,
                uint32_t target_hits, size_t most_words, size_t most_characters) {
    if (indexes.empty() != (composite == "near")) throw nb::value_error("words have an index");
    new (self) PlanWords{std::move(indexes), std::move(phrase_index), composite_of(composite), target_hits, most_words, most_characters};
}

// What is near

Nearness nearness_of(const std::string& metric) {
    static const std::pair<std::string_view, Nearness> METRICS_BY_NAME[] = {
        {"euclidean", Nearness::EUCLIDEAN},
        {"angular", Nearness::ANGULAR},
        {"dotproduct", Nearness::DOTPRODUCT},
        {"prenormalized-angular", Nearness::PRENORMALIZED_ANGULAR},
        {"innerproduct", Nearness::PRENORMALIZED_ANGULAR},
        {"hamming", Nearness::HAMMING},
    };
    for (const auto& [name, nearness] : METRICS_BY_NAME)
        if (name == metric) return nearness;
    throw nb::value_error("no such distance metric");
}

void make_near(NearForm* self, std::string field, uint32_t cell, const std::string& metric, double threshold, bool alone_matches) {
    if (cell >= hnsw::CELLS) throw nb::value_error("no such type of cells");
    new (self) NearForm{std::move(field), static_cast<hnsw::Cell>(cell), nearness_of(metric), threshold, alone_matches};
}

// Ranking

// name, k1, b, average length (0: the snapshot's)
using FieldTuple = std::tuple<std::string, double, double, double>;

// names, numbers (as native_scores takes them) and tables of the fields; which have elements; the window; the weights of nativeFieldMatch,
// nativeProximity and nativeAttributeMatch, and what their sum is divided by.
using NativeTuple =
    std::tuple<std::vector<std::string>, In<double>, nb::list, std::vector<bool>, uint32_t, std::tuple<double, double, double, double>>;

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

// code, constants, temporaries, and where the result is
using ProgramTuple = std::tuple<In<int32_t>, In<double>, size_t, size_t>;

RankProgram program_of(size_t columns, const ProgramTuple& given) {
    const auto& [code, constants, temporaries, result] = given;
    RankProgram program{
        {code.data(), code.data() + code.size()}, {constants.data(), constants.data() + constants.size()}, columns, temporaries, result};
    check_program(program);
    return program;
}

PlanFeature::Kind kind_of(const std::string& name) {
    if (name == "bm25") return PlanFeature::Kind::BM25;
    if (name == "closeness") return PlanFeature::Kind::CLOSENESS;
    if (name == "rawScore") return PlanFeature::Kind::RAW_SCORE;
    if (name == "relevance") return PlanFeature::Kind::RELEVANCE;
    if (name == "constant") return PlanFeature::Kind::CONSTANT;
    throw nb::value_error("plans do not know this kind of feature");
}

void make_expression(PlanExpression* self, const std::vector<std::tuple<std::string, size_t, double>>& features,
                     const ProgramTuple& program) {
    PlanExpression expression;
    for (const auto& [kind, field, value] : features) expression.features.push_back({kind_of(kind), field, value});
    expression.program = program_of(features.size(), program);
    new (self) PlanExpression(std::move(expression));
}

GlobalFeature::Kind kind_of_global(const std::string& name) {
    if (name == "plain") return GlobalFeature::Kind::PLAIN;
    if (name == "linear") return GlobalFeature::Kind::LINEAR;
    if (name == "reciprocal") return GlobalFeature::Kind::RECIPROCAL;
    throw nb::value_error("plans do not know this kind of normalizer");
}

void make_global(GlobalForm* self, size_t rerank_count, std::optional<double> drop_limit,
                 const std::vector<std::tuple<std::string, double, PlanExpression>>& features, const ProgramTuple& program) {
    if (rerank_count == 0) throw nb::value_error("the global phase ranks one hit at least");
    GlobalForm global{rerank_count, drop_limit, {}, program_of(features.size(), program)};
    for (const auto& [kind, k, input] : features) global.features.push_back({kind_of_global(kind), k, input});
    new (self) GlobalForm(std::move(global));
}

// Throws where an expression is computed of a field that is none of these.
void check_fields(const PlanExpression& expression, const std::vector<PlanField>& fields) {
    for (const PlanFeature& feature : expression.features)
        if (feature.kind == PlanFeature::Kind::BM25 && feature.field >= fields.size()) throw nb::value_error("a feature of no field");
}

void make_ranking(PlanRanking* self, const std::vector<FieldTuple>& fields, const std::optional<NativeTuple>& native,
                  const std::optional<PlanExpression>& expression, const std::optional<GlobalForm>& global,
                  const std::optional<std::pair<std::string, bool>>& order) {
    if (global && !expression) throw nb::value_error("the global phase ranks what an expression has ranked");
    PlanRanking ranking;
    for (const auto& [name, k1, b, average_length] : fields) {
        if (!(k1 >= 0) || !(b >= 0 && b <= 1)) throw nb::value_error("k1 must not be negative, and b be from 0 to 1");
        ranking.fields.push_back({name, k1, b, average_length});
    }
    if (native) ranking.native = native_of(*native);
    if (expression) check_fields(*expression, ranking.fields);
    ranking.expression = expression;
    if (global)
        for (const GlobalFeature& feature : global->features) check_fields(feature.input, ranking.fields);
    ranking.global = global;
    if (order) ranking.order = OrderForm{order->first, order->second};
    new (self) PlanRanking(std::move(ranking));
}

// What is shown

// attribute, order, most, shown, head, turn, counts
using FacetTuple = std::tuple<std::string, int, size_t, size_t, std::string, std::string, std::vector<std::string>>;

void make_shown(PlanShown* self, const std::optional<PageForm>& form, std::vector<std::string> columns,
                const std::vector<std::tuple<std::string, std::vector<FacetTuple>>>& facets, size_t most_groups) {
    if (!columns.empty() && (!form || columns.size() != form->keys.size() || form->id_prefix.empty()))
        throw nb::value_error("a column for each key of a form that has a prefix of ids");
    PlanShown made{form, std::move(columns), {}, most_groups};
    for (const auto& [head_of_root, lists] : facets) {
        FacetRoot& root = made.facets.emplace_back(FacetRoot{head_of_root, {}});
        for (const auto& [attribute, order, most, shown, head, turn, counts] : lists) {
            if (most == 0 || shown == 0) throw nb::value_error("a facet has one group at least");
            root.lists.push_back({attribute, order, most, shown, head, turn, counts});
        }
    }
    new (self) PlanShown(std::move(made));
}

}  // namespace

void bind_plan_records(nb::module_& m) {
    nb::class_<PlanWords>(m, "PlanWords")
        .def("__init__", &make_words, nb::arg("indexes"), nb::arg("phrase_index"), nb::arg("composite"), nb::arg("target_hits"),
             nb::arg("most_words"), nb::arg("most_characters"));
    nb::class_<NearForm>(m, "NearForm")
        .def("__init__", &make_near, nb::arg("field"), nb::arg("cell"), nb::arg("metric"), nb::arg("threshold"), nb::arg("alone_matches"));
    nb::class_<PlanExpression>(m, "PlanExpression")
        .def("__init__", &make_expression, nb::arg("features"), nb::arg("program"),
             "features: (kind, number of the field, value); program: (code, constants, temporaries, result).");
    nb::class_<GlobalForm>(m, "GlobalForm")
        .def("__init__", &make_global, nb::arg("rerank_count"), nb::arg("drop_limit").none(), nb::arg("features"), nb::arg("program"),
             "features: (kind, k, what is computed of each hit); program: as an expression's.");
    nb::class_<PlanRanking>(m, "PlanRanking")
        .def("__init__", &make_ranking, nb::kw_only(), nb::arg("fields") = std::vector<FieldTuple>(), nb::arg("native") = nb::none(),
             nb::arg("expression") = nb::none(), nb::arg("global_phase") = nb::none(), nb::arg("order") = nb::none(),
             "fields: (name, k1, b, average length); order: an attribute, and whether its greatest value comes first.");
    nb::class_<PlanShown>(m, "PlanShown")
        .def("__init__", &make_shown, nb::arg("form").none(), nb::arg("columns"), nb::arg("facets"), nb::arg("most_groups"));
}

}  // namespace paperwasp
