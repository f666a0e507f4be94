"""Profiles that are right and not executed yet, the rank features that are only checked, and models."""

from __future__ import annotations

from pathlib import Path
from typing import Final

import pytest

from paperwasp.errors import InvalidQuery
from paperwasp.ranking import CompiledProfile, ProfileError, Unexecuted
from paperwasp.schema import parse_schemas
from paperwasp.schema.model import Schema
from paperwasp.schema.streaming import streamed_schema
from paperwasp.search.features import compile_profiles
from paperwasp.search.features.compile import unexecuted_findings
from paperwasp.search.features.family import families
from tests.ranking.onnx.onnx_bytes import FLOAT, INT64, onnx_model

SCHEMA = """schema s {
    document s {
        struct item {
            field name type string { }
            field region type string { }
            field price type float { }
        }
        field items type array<item> {
            indexing: summary
            struct-field name { indexing: attribute }
            struct-field region { indexing: attribute }
            struct-field price { indexing: attribute }
        }
        field title type string { indexing: index | summary
            index: enable-bm25 }
        field genre type string { indexing: attribute }
        field year type int { indexing: attribute }
        field tags type array<string> { indexing: attribute }
        field weights type weightedset<string> { indexing: attribute }
        field place type position { indexing: attribute }
        field vector type tensor<float>(x[3]) { indexing: attribute }
        field vectors type tensor<float>(p{},x[3]) { indexing: attribute }
        field stored type string { indexing: summary }
    }
    field questions type string { indexing: input title | generate llm | index }
    field seen type int {
        indexing: 0 | to_int | attribute
        attribute: mutable
    }
    onnx-model m {
        file: models/m.onnx
        input input_ids: ids
        output "out.0": result
    }
    %s
}
"""
MODEL = onnx_model({"input_ids": (INT64, ["batch", "sequence"])}, {"out.0": (FLOAT, ["batch", 2])})
FILES = {
    "models/m.onnx": MODEL,
    "models/xgb.json": b'[{"nodeid": 0, "leaf": 1}]',
    "models/lgb.json": b'{"feature_names": [], "tree_info": [{"tree_structure": {"leaf_value": 1}}]}',
    "models/bad.json": b"[1, 2",
    "models/other.json": b'{"a": 1}',
}


def schema_of(text: str) -> Schema:
    return parse_schemas({"schemas/s.sd": SCHEMA % text}).schemas["s"]


def told(expression: str, phase: str = "first-phase", more: str = "") -> str:
    """What becomes of a profile with one expression."""
    profile = f"rank-profile p {{ {more}\n{phase} {{ expression {{ {expression} }} }} }}"
    try:
        compiled = compile_profiles(schema_of(profile), FILES)["p"]
    except ProfileError as error:
        return "; ".join(problem.bare_message for problem in error.problems)
    return str(compiled) if isinstance(compiled, Unexecuted) else "compiled"


RIGHT = [
    "attribute(items.price, 0)",
    "attributeMatch(genre).averageWeight",
    "bm25(title, label: other)",
    "bm25_for_labels(title){first}",
    "sum(matches_for_labels(title) * matches_for_labels, label)",
    "closeness(field, vector)",
    "closeness(label, anything)",
    "closeness(place).logscale",
    "distance(place).km",
    "distance(field, vectors)",
    "distanceToPath(place).traveled",
    "dotProduct(weights, v)",
    "elementCompleteness(title).elementWeight",
    "elementSimilarity(title)",
    "fieldMatch(title).segmentDistance",
    "firstPhaseMax",
    "foreach(fields, N, fieldMatch(N), \">0\", average)",
    "foreach(terms, N, rankingExpression(\"term(N).weight * 2\"), true, sum)",
    "globalSequence",
    "itemRawScore(label)",
    "lightgbm(\"lgb.json\")",
    "match",
    "match.weight.title",
    "matches(items) + matchCount(items) + termFieldMd(items)",  # Vespa: IndexEnvironment::add_virtual_fields
    "matches(items.name)",
    "nativeDotProduct(title)",
    "nativeDotProduct",
    "random",
    "random(foo).match",
    "randomNormal(0.0, 1.0, foo)",
    "rawScore(vector)",
    "reduce(closest(vectors), max)",
    "sum(elementwise(bm25(title), i, float))",
    "sum(tensorFromLabels(attribute(tags), dim))",
    "sum(tensorFromLabelsWithOffset(attribute(tags), tag, place){place:0}, tag)",
    "sum(tensorFromStructs(attribute(items), name, region, price, float))",
    "sum(tensorFromWeightedSet(attribute(weights)))",
    "sum(tokenInputIds(8, tensor<float>(d0[2])(d0)))",
    "textSimilarity(title).queryCoverage",
    "xgboost(\"xgb.json\")",
    "if (attribute(genre) == \"rock\", 1, 0)",
    "sum(attribute(vector) * attribute(vectors))",
]  # fmt: skip

WRONG = [
    ("attributeMatch(title)", "field 'title' is no attribute"),
    ("fieldMatch(genre)", "field 'genre' has no index"),
    ("fieldMatch(title).nothing", "rank feature 'fieldMatch' has no output 'nothing'"),
    ("fieldMatsch(title)", "did you mean 'fieldMatch'?"),
    ("closeness(field, year)", "field 'year' is a int: a tensor is expected here"),
    ("closeness(year)", "a tensor is expected here"),
    ("closeness(feild, vector)", "is field or label, not 'feild'; did you mean 'field'?"),
    ("closest(vectr)", "has no field 'vectr'; did you mean 'vector'?"),
    ("matches(stored)", "field 'stored' is neither an index nor an attribute"),  # indexenvironment.cpp
    ("attribute(stored)", "field 'stored' is no attribute"),
    ("foreach(words, N, match, true, sum)", "what foreach goes over is terms or fields or attributes, not 'words'"),
    ("foreach(terms, N, match, true, mean)", "the operation of foreach is"),
    ("foreach(terms, N, match, 3, sum)", "the condition of foreach is true"),
    ("match.weight.titel", "has no field 'titel'"),
    ("sum(tensorFromWeightedSet(attribute(tags)))", "'tensorFromWeightedSet': field 'tags' is a array<string>"),
    ("sum(tensorFromLabelsWithOffset(attribute(tags), a, a))", "cannot both be 'a'"),
    ("sum(tensorFromLabels(tags))", "takes attribute(name) or query(name), not 'tags'"),
    ("sum(tensorFromStructs(attribute(items), name, price, int8))", "the cell type is float or double, not 'int8'"),
    ("sum(tensorFromStructs(attribute(tags), name, price, float))", "'tags' is no array of structs in 's'"),
    ("sum(tensorFromStructs(items, name, price, float))", "takes attribute(name) or query(name), not 'items'"),
    ("sum(elementwise(bm25(genre), x))", "field 'genre' has no index"),
    ("sum(elementwise(title, x))", "elementwise takes bm25(field), not 'title'"),
    ("sum(tokenInputIds(n, query(a)))", "takes a number counted from 0, not 'n'"),
    ("xgboost(\"none.json\")", "there is no file 'models/none.json' in the package"),
    ("xgboost(\"bad.json\")", "models/bad.json, line 1, column 6"),
    ("lightgbm(\"other.json\")", "models/other.json is no lightgbm model: it holds no trees"),
    ("normalize_linear(bm25(title))", "normalize_linear is not known in this phase"),
    ("attribute(vector)", "The first-phase expression must produce a double (a tensor with no dimensions), but"),
    ("sum(attribute(vector), y)", "tensor<float>(x[3]) has no dimension 'y'"),
]  # fmt: skip


@pytest.mark.parametrize("expression", RIGHT)
def test_what_is_known_is_accepted(expression: str) -> None:
    assert told(expression) == "compiled"


def test_a_field_that_is_generated_is_ranked_by() -> None:
    assert told("nativeRank(questions)") == "compiled"


def test_waits_are_numbers() -> None:
    assert told("debugWait(0.5, 1) + debugAttributeWait(year, 0)") == "compiled"
    assert "a wait is a number of seconds" in told("debugWait(long, 1)")
    assert "a wait is a number of seconds" in told("debugAttributeWait(year, busy)")
    assert "takes 2 argument(s), not 1" in told("debugWait(1)")


@pytest.mark.parametrize(("expression", "problem"), WRONG)
def test_what_is_wrong_is_refused(expression: str, problem: str) -> None:
    assert problem in told(expression)


def test_the_global_phase_is_checked() -> None:
    functions = "function year_score() { expression: attribute(year) }"
    right = "reciprocal_rank_fusion(bm25(title), year_score) + normalize_linear(year_score)"
    assert told(right, "global-phase", functions) == "compiled"
    assert told("reciprocal_rank(year_score, 0.5)", "global-phase", functions) == "compiled"
    assert told("reciprocal_rank(year_score, k)", "global-phase", functions).endswith("is a number, not 'k'")
    nested = "normalize_linear(reciprocal_rank(bm25(title)))"
    assert told(nested, "global-phase").endswith("what is normalized cannot be made of what is normalized")
    assert told("normalize_linear(attribute(vector))", "global-phase").endswith(
        "is a number, not a tensor<float>(x[3])"
    )
    assert told("firstPhase + attribute(yaer)", "global-phase").endswith("has no field 'yaer'; did you mean 'year'?")
    assert told("query(q)", "global-phase", "inputs { query(q) tensor(x{}) }").startswith("The global-phase expression")


@pytest.mark.parametrize("setting", ["mutate { on-match { seen += 1 } }", "significance { use-model: true }"])
def test_settings_of_profiles_are_executed(setting: str) -> None:
    assert told("1", more=setting) == "compiled"


def test_models_are_checked_against_what_feeds_them() -> None:
    ids = "function ids() { expression: tensor<float>(d0[1],d1[8])(d1) }"
    assert told("sum(onnx(m).result)", more=ids) == "compiled"
    assert "produces tensor<float>(d0[1],d1[2])" in told("onnx(m).result", more=ids)
    assert "onnx-model 'm' has no output 'results'; it has result, out.0; did you mean 'result'?" in told(
        "onnx(m).results", more=ids
    )
    flat = "function ids() { expression: tensor<float>(d0[8])(d0) }"
    assert "input 'input_ids': 2 dimension(s) are expected, and tensor<float>(d0[8]) has 1" in told(
        "onnx(m)", more=flat
    )
    assert "unknown rank feature or function 'ids'" in told("onnx(m).result")
    assert "there is no file 'models/none' in the package" in told("onnx(none).result")
    looped = "function ids() { expression: onnx(m).result }"
    assert "calls itself" in told("onnx(m).result", more=looped) or "feeds itself" in told(
        "onnx(m).result", more=looped
    )


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"no model", "onnx-model 'm': models/m.onnx is no ONNX model: it is "),
        (MODEL[:-20], "onnx-model 'm': models/m.onnx is no ONNX model: it is cut off"),
        (onnx_model({"ids": (INT64, [1])}, {"out.0": (FLOAT, [1])}), "the model has no input 'input_ids'; it has ids"),
        (onnx_model({"input_ids": (INT64, [1])}, {"out": (FLOAT, [1])}), "the model has no output 'out.0'"),
    ],
)
def test_declared_models_are_checked_though_nothing_uses_them(content: bytes, problem: str) -> None:
    with pytest.raises(ProfileError) as raised:
        compile_profiles(schema_of("rank-profile p { first-phase { expression: 1 } }"), {"models/m.onnx": content})
    assert problem in str(raised.value)
    assert raised.value.position is not None


def test_without_files_none_is_checked() -> None:
    schema = schema_of('rank-profile p { first-phase { expression: xgboost("a.json") + sum(onnx(m).result) } }')
    assert isinstance(compile_profiles(schema)["p"], Unexecuted)


def test_what_nothing_asks_for_does_not_stop_a_profile() -> None:
    text = """rank-profile p {
        inputs { query(q) tensor<float>(x[3]) }
        constants { c tensor(x{}):{a:1} }
        function unused() { expression: sum(query(q) * attribute(vector)) }
        first-phase { expression: bm25(title) + attribute(year) }
    }"""
    schema = schema_of(text)
    compiled = compile_profiles(schema, FILES)
    assert isinstance(compiled["p"], CompiledProfile)
    assert unexecuted_findings(schema, compiled) == ()


def test_what_to_tell_at_a_deployment() -> None:
    schema = schema_of("rank-profile p { first-phase { expression: sum(attribute(vector) * query(q)) } }")
    [undeclared] = unexecuted_findings(schema, compile_profiles(schema, FILES))
    assert undeclared.message == (
        "The following inputs used in rank-profile p are not declared and will be interpreted as scalars, not tensors:"
        " [query(q)]"
    )
    assert undeclared.position is not None


def test_a_strict_profile_declares_its_inputs() -> None:
    assert "is strict but is missing a declaration of inputs q" in told("query(q)", more="strict: true")
    assert told("query(q)", more="strict: true\ninputs { query(q) double }") == "compiled"


def test_a_query_is_told_what_is_not_executed() -> None:
    from paperwasp.search.served import ServedSchemas

    schema = schema_of('rank-profile p { first-phase { expression: xgboost("a.json") } }')
    with pytest.raises(InvalidQuery) as raised:
        ServedSchemas().ready_profile(schema, "p")
    told = "rank profile 'p' of schema 's': not executed yet: xgboost(\"a.json\"), whose file is not available"
    assert str(raised.value) == told


def test_literals_are_checked() -> None:
    problem = told("1", more="constants { c tensor(x[2]):[1,2,3] }")
    assert problem == "constant 'c': line 1, column 1: expected 2 value(s), found 3"


REFERENCE = (Path(__file__).parent / "reference_features.txt").read_text().split()


@pytest.mark.parametrize("name", REFERENCE)
def test_every_feature_of_the_reference_is_known(name: str) -> None:
    assert name in families()


def test_bm25_of_a_field_that_keeps_too_little_for_it_is_told() -> None:
    phases = "first-phase { expression: bm25(title) + bm25(questions) } second-phase { expression: bm25(questions) }"
    schema = schema_of(f"rank-profile p {{ {phases} }}")
    findings = unexecuted_findings(schema, {"p": compile_profiles(schema, FILES)["p"]})
    assert [finding.message for finding in findings] == [
        "rank-profile p of schema s: bm25(questions) takes each match for one in a text of average length, as Vespa "
        "does: field questions has no 'index: enable-bm25'"
    ]


STREAMED: Final = """schema s { document s {
    struct item { field name type string {}
      field price type float {} }
    field items type array<item> { indexing: index }
    field names type array<string> { indexing: index }
    field tags type array<string> { indexing: attribute }
    field year type int { indexing: index }
    field weights type weightedset<int> { indexing: attribute }
    field stored type string { indexing: summary } }
    rank-profile p { first-phase { expression: %s } } }"""


@pytest.mark.parametrize(
    ("feature", "pending"),
    [
        ("fieldMatch(names)", ""),
        ("textSimilarity(names).score", ""),
        ("fieldMatch(year)", ""),
        ("fieldMatch(items.name)", ""),
        ("bm25(items.price)", ""),
        ("bm25(weights)", ""),
        ("fieldTermMatch(items.price,0).occurrences", "fieldTermMatch(items.price) of type array<float>"),
        ("fieldMatch(tags)", "fieldMatch(tags) of type array<string>"),
    ],
)
def test_streamed_fields_are_taken_for_texts_of_one_value(feature: str, pending: str) -> None:
    """Vespa: addField of the IndexEnvironment of streamingvisitors. Where documents are indexed they are errors."""
    schema = parse_schemas({"schemas/s.sd": STREAMED.replace("%s", feature)}).schemas["s"]
    profile = compile_profiles(streamed_schema(schema), FILES)["p"]
    if pending:
        assert str(profile) == f"not executed yet: {pending} where documents are streamed"
    else:
        assert isinstance(profile, CompiledProfile)
    with pytest.raises(ProfileError):
        compile_profiles(schema, FILES)


def test_streamed_fields_that_are_not_searched_are_refused() -> None:
    schema = parse_schemas({"schemas/s.sd": STREAMED.replace("%s", "fieldMatch(stored)")}).schemas["s"]
    for each in (schema, streamed_schema(schema)):
        with pytest.raises(ProfileError):
            compile_profiles(each, FILES)
