"""Explanations of expressions: every node's value is what its parent makes of its children, and the root's is that of
the program that ranks."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.tensor.batch import Labels
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError
from paperwasp.ranking import RankValue
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.explaining_compiler import ExplainingCompiler, LazyExplanations
from paperwasp.ranking.explanation import Columns, Explained, Json, NodeValue, ValueOf, rendered, shown_tensor
from paperwasp.ranking.program import Program
from paperwasp.ranking.scope import Source
from paperwasp.ranking.tensor_run import TensorNode, batch
from paperwasp.schema.model import Function
from tests.oracles.rank_program import OPERATION_FUNCTIONS
from tests.ranking.no_features import constants_of
from tests.ranking.test_compiling import AnyFeature

HITS = 3
FEATURES = {
    "a": [1.0, 2.0, -3.0],
    "b": [0.0, 0.5, 7.0],
    "c": [math.nan, math.inf, 4.0],
    "one": [1.0],
    "bm25(title)": [0.25, 0.0, 3.0],
}
FUNCTIONS = {
    "twice": (("x",), "x * 2"),
    "both": (("x", "y"), "twice(x) + if (y > 1, y, twice(y))"),
    "shared": ((), "a * a + one"),
    "named": (("field",), "bm25(field)"),
}
BINARY = {
    "+": "add", "-": "subtract", "*": "multiply", "/": "divide", "==": "equal", "!=": "notEqual", "<": "less",
    "<=": "lessEqual", ">": "greater", ">=": "greaterEqual", "&&": "and", "||": "or",
}  # fmt: skip


Functions = Mapping[str, tuple[tuple[str, ...], str]]


class Block:
    """The hits that the features above are of."""

    def __init__(self, labels: Labels) -> None:
        self.hits = HITS
        self.labels = Labels(labels)
        self.known: dict[object, Any] = {}

    def __getitem__(self, name: str) -> np.ndarray:
        return np.array(FEATURES[name])


def explained(
    text: str, functions: Functions = FUNCTIONS, constants: Mapping[str, Tensor] | None = None
) -> tuple[RankValue, list[Json]]:
    """The program (or node) of an expression, and its trees for all hits."""
    declared = {name: Function(name, parameters, body) for name, (parameters, body) in functions.items()}
    given = constants_of(constants or {})
    compiler = ExpressionCompiler(AnyFeature(), declared, given)
    source = Source(text, "first-phase")
    program = compiler.runnable(source)
    again = ExplainingCompiler(AnyFeature(), declared, given, graph=compiler.graph)
    explanation = LazyExplanations({"first-phase": source}, lambda: lambda: again)["first-phase"]
    block = Block(compiler.graph.labels)
    columns = Columns(explanation.builder, lambda feature: feature.compute(block))

    def value_of(hit: int) -> ValueOf:
        def value(node: Explained) -> NodeValue:
            if isinstance(node.value, int):
                return NodeValue(columns.at(node.value, hit), columns.taken(node, hit))
            tensors = batch(node.value, block).tensors(block.labels)
            return NodeValue(shown_tensor(tensors[hit if len(tensors) > 1 else 0]), columns.taken(node, hit))

        return value

    return program, [rendered(explanation, value_of(hit)) for hit in range(HITS)]


def number(value: float | str) -> float:
    return float(value) if isinstance(value, str) else value


def applied(operation: str, *operands: float) -> float:
    with np.errstate(all="ignore"):
        return float(OPERATION_FUNCTIONS[operation](*(np.array([operand]) for operand in operands))[0])


def made_of(told: Json) -> float:
    """What the value of a node is by the values of its children, as the tree shows them."""
    children = told["children"]
    taken = [child for child in children if child.get("taken")]
    if told["kind"] in ("if", "switch"):
        assert len(taken) == 1, told
        return number(taken[0]["value"])
    values = [number(child["value"]) for child in children]
    match told["kind"]:
        case "function" | "argument":
            [value] = values
            return value
        case "in":
            return float(any(applied("equal", values[0], value) for value in values[1:]))
        case "operation" if len(values) == 1:
            return applied({"-": "negate", "!": "not"}[told["operator"]], *values)
        case "operation":
            operators = told["operator"].split(" ")
            operators *= (len(values) - 1) // len(operators)
            result = values[0]
            for operator, value in zip(operators, values[1:], strict=True):
                result = applied(BINARY[operator], result, value)
            return result
    return applied(told["operator"], *values)


def check(told: Json) -> int:
    """Every node of a tree; answers how many there are."""
    if "children" not in told:
        return 1
    if "cut" not in told:
        np.testing.assert_equal(number(told["value"]), made_of(told), told["expression"])
    return 1 + sum(check(child) for child in told["children"])


LEAVES = st.sampled_from(["a", "b", "c", "one", "1", "2.5", "0", "shared", "named(title)"])


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(list(BINARY))
    return st.one_of(
        st.builds("({} {} {})".format, inner, operators, inner),
        st.builds("({} - {} + {})".format, inner, inner, inner),
        st.builds("(!{} * -{})".format, inner, inner),
        st.builds("if ({} < {}, {}, {})".format, inner, inner, inner, inner),
        st.builds("switch ({}) {{ case {}: {}, case 1: {}, default: {} }}".format, *[inner] * 5),
        st.builds("({} in [{}, 2.5])".format, inner, inner),
        st.builds("both({}, {})".format, inner, inner),
        st.builds("twice({})".format, inner),
        st.builds("max({}, {})".format, inner, inner),
        st.builds("floor({})".format, inner),
    )


@given(st.recursive(LEAVES, larger, max_leaves=25))
def test_values_are_made_of_their_childrens(text: str) -> None:
    program, trees = explained(text)
    assert isinstance(program, Program)
    columns = [np.array(FEATURES[feature.name]) for feature in program.features]
    scores = program.evaluate(columns, HITS)
    for told, score in zip(trees, scores.tolist(), strict=True):
        np.testing.assert_equal(number(told["value"]), score)
        assert check(told) <= limits.EXPLAINED_NODES


def of_first(text: str, functions: Functions = FUNCTIONS, constants: Mapping[str, Tensor] | None = None) -> Json:
    return explained(text, functions, constants)[1][0]


def test_functions_are_shown_with_what_they_are() -> None:
    told = of_first("both(a, 3) - shared")
    both, shared = told["children"]
    assert (both["kind"], both["value"], both["expression"]) == ("function", 5.0, "both(a,3)")
    [body] = both["children"]
    assert body["expression"] == "twice(x) + if (y > 1, y, twice(y))"
    assert [child["expression"] for child in body["children"][1]["children"]] == ["y > 1", "y", "twice(y)"]
    assert shared["children"][0]["expression"] == "a * a + one"


def test_what_comes_again_is_shown_once() -> None:
    first, again = of_first("shared + shared")["children"]
    assert "children" in first
    assert again == {"expression": "shared", "kind": "function", "value": 2.0, "shown": "above"}


def test_a_feature_has_the_name_that_its_arguments_give_it() -> None:
    [told] = of_first("named(title)")["children"]
    assert told == {"expression": "bm25(field)", "kind": "feature", "feature": "bm25(title)", "value": 0.25}


def test_the_branch_that_is_not_taken_has_no_value() -> None:
    condition, left, right = of_first("if (a > 5, b * 2, b + 1)")["children"]
    assert condition["value"] == 0.0
    assert left == {"expression": "b * 2", "kind": "operation", "taken": False}
    assert (right["taken"], right["value"]) == (True, 1.0)


def test_tensors_are_shown_as_literals() -> None:
    shift = parse_tensor("tensor(x[2]):[1, 2]")
    told = of_first("sum(shift * a) + reduce(map(shift, f(t)(t * t)), max, x)", constants={"shift": shift})
    product, largest = told["children"]
    assert product["children"][0]["value"] == "tensor(x[2]):[1.0,2.0]"
    assert [child["expression"] for child in product["children"][0]["children"]] == ["shift", "a"]
    assert (largest["value"], largest["operator"]) == (4.0, "reduce")
    [mapped] = largest["children"]
    assert mapped["value"] == "tensor(x[2]):[1.0,4.0]"
    assert [child["expression"] for child in mapped["children"]] == ["shift"]


def test_large_tensors_are_cut() -> None:
    dense = parse_tensor("tensor(x[100]):[" + ",".join(map(str, range(100))) + "]")
    cells = ",".join(f"l{n}:{n}" for n in range(100))
    sparse = parse_tensor(f"tensor(k{{}}):{{{cells}}}")
    assert shown_tensor(dense).startswith("tensor(x[100]): 0.0,1.0,")
    assert shown_tensor(dense).endswith("31.0, … (100 cells)")
    assert shown_tensor(sparse).endswith("{k:l31}:31.0, …} (100 cells)")


def test_not_finite_values_have_names() -> None:
    told = explained("c + 1")[1]
    assert [tree["value"] for tree in told] == ["NaN", "Infinity", 5.0]


def test_a_tree_is_bounded() -> None:
    told = of_first(" + ".join(["a * b"] * 5000))
    assert told["expression"].endswith(" …")
    assert len(told["expression"]) <= limits.EXPLAINED_TEXT_CHARACTERS + 2
    assert told["cut"] == "there are more: too many to show"
    assert check(told) <= limits.EXPLAINED_NODES + 1


def test_a_tree_is_not_deeper_than_its_bound() -> None:
    functions = {f"f{n}": (("x",), f"f{n + 1}(x) + 1") for n in range(40)} | {"f40": (("x",), "x * 2")}
    told, depth = of_first("f0(a)", functions=functions), 1
    while "children" in told:
        told, depth = told["children"][0], depth + 1
    assert depth == limits.EXPLAINED_DEPTH
    assert told["cut"] == "more than 60 levels"


def test_a_plan_is_bounded() -> None:
    functions = {f"f{n}": (("x",), f"f{n + 1}(x + 1) + f{n + 1}(x - 1)") for n in range(12)} | {"f12": (("x",), "x")}
    program, trees = explained("f0(a)", functions=functions)
    assert isinstance(program, Program)
    columns = [np.array(FEATURES[feature.name]) for feature in program.features]
    assert [tree["value"] for tree in trees] == program.evaluate(columns, HITS).tolist()


@pytest.mark.parametrize("text", ["-" * 250 + "a", "(" * 80 + "a" + ")" * 80, "twice(" * 60 + "a" + ")" * 60])
def test_what_is_nested_deeply_is_explained_as_far_as_it_can_be(text: str) -> None:
    try:
        told = of_first(text)
    except LanguageError as error:
        assert "nested too deeply" in str(error)  # whoever asks is told
    else:
        assert told["kind"] in ("operation", "feature", "function")


def test_nodes_are_told_without_what_they_are_made_of() -> None:
    compiler = ExpressionCompiler(AnyFeature(), {}, {"shift": lambda: parse_tensor("tensor(x[2]):[1, 2]")})
    node = compiler.runnable(Source("shift * a + a"))
    assert isinstance(node, TensorNode)
    assert repr(node) == f"<{node.name}: tensor(x[2])>"
    nested = "a"
    for _ in range(50):
        nested = f"({nested} + 1)"
    again = ExplainingCompiler(AnyFeature(), {}, {})
    root = again.explain(Source(nested)).root
    assert repr(root).startswith("<operation a + 1")
    assert len(repr(root)) < 2 * limits.EXPLAINED_TEXT_CHARACTERS
