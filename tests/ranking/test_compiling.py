"""Expressions of rank profiles as programs: functions, names, sharing, limits, and what is found wrong.

Small constants are computed with a rank profile until they are much together; others with each query.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.tensor import TensorType, algebra
from paperwasp.document.tensor.batch import Labels
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError, PaperwaspError
from paperwasp.ranking import Program, parse_expression
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.names import Description
from paperwasp.ranking.program import Bm25Field, ProgramBuilder, weighted_sum
from paperwasp.ranking.scope import Source
from paperwasp.ranking.tensor_graph import TensorGraph
from paperwasp.ranking.tensor_run import TensorNode
from paperwasp.schema.model import Function
from tests.ranking.no_features import NoFeatures, constants_of


@dataclass(frozen=True)
class Named:
    """A feature whose value a test gives by name."""

    name: str
    bm25_field: Bm25Field | None = None
    query_name: str | None = None

    def compute(self, context: Mapping[str, np.ndarray]) -> np.ndarray:
        return context[self.name]


class AnyFeature(NoFeatures):
    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        return Description()

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> Named:
        full = f"{name}({','.join(arguments)})" if arguments else name
        return Named(
            full + ("." + output if output else ""),
            Bm25Field(arguments[0], 1.2, 0.75, None) if name == "bm25" else None,
            arguments[0] if name == "query" else None,
        )


def compiled(
    text: str, constants: Mapping[str, float | Tensor] | None = None, /, **functions: tuple[tuple[str, ...], str]
) -> Program:
    declared = {name: Function(name, parameters, body) for name, (parameters, body) in functions.items()}
    compiler = ExpressionCompiler(AnyFeature(), declared, constants_of(constants or {}))
    program = compiler.runnable(Source(text, "first-phase"))
    assert isinstance(program, Program)
    return program


def value_of(program: Program, **features: float) -> float:
    [value] = program.evaluate([np.array([features[feature.name]]) for feature in program.features], 1)
    return float(value)


def test_functions_are_put_in_their_places() -> None:
    program = compiled("f(a, 3) + g", f=(("x", "y"), "x * y + g"), g=((), "b - 1"))
    assert value_of(program, a=5.0, b=10.0) == 5 * 3 + 9 + 9


def test_an_argument_may_name_a_field() -> None:
    program = compiled("score(title) + score(body)", score=(("field",), "bm25(field) * 2"))
    assert [feature.name for feature in program.features] == ["bm25(title)", "bm25(body)"]


def test_an_argument_is_worked_where_it_was_written() -> None:
    # The x that f is called with is that of g, not f's own.
    program = compiled("g(a)", f=(("x",), "x + 1"), g=(("x",), "f(x * 2)"))
    assert value_of(program, a=5.0) == 11


def test_parameters_then_functions_then_constants_then_features() -> None:
    program = compiled(
        "f(7) + name + other + third", {"name": 1.0, "other": 20.0}, f=(("name",), "name"), name=((), "2")
    )
    assert value_of(program, third=300.0) == 7 + 2 + 20 + 300


def test_named_constants_and_ranking_expressions() -> None:
    program = compiled('constant(c) + rankingExpression(f) + rankingExpression("a * 2")', {"c": 4.0}, f=((), "a + 1"))
    assert value_of(program, a=3.0) == 4 + 4 + 6


def test_equal_parts_are_computed_once() -> None:
    program = compiled("(a + b) * (a + b) + f", f=((), "a + b"))
    assert len(program.code) == 3 * 5
    assert program.temporaries == 2


def test_constants_are_folded_and_dead_branches_gone() -> None:
    assert compiled("1 + 2 * 3").constant == 7
    assert [feature.name for feature in compiled("if (1 < 2, a, bm25(b))").features] == ["a"]


def test_a_sum_of_thousands_of_parts_needs_few_temporaries() -> None:
    program = compiled(" + ".join(f"if (a < {i}, {i}, b)" for i in range(5000)))
    assert program.temporaries <= 4
    assert value_of(program, a=4999.0, b=0.0) == 0.0


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("f + 1", "function 'f', line 1, column 1: function 'f' calls itself: f → f"),
        ("1 + g", "function 'h', line 1, column 1: function 'g' calls itself: g → h → g"),
        ("k(1, 2)", "first-phase, line 1, column 1: function 'k' takes 1 argument(s), not 2"),
        ("2 *\n  k", "first-phase, line 2, column 3: function 'k' takes 1 argument(s), not 0"),
        ("broken", "function 'broken', line 1, column 4: expected a value, found the end"),
        ("constant(none)", "first-phase, line 1, column 1: no constant 'none'"),
        ("rankingExpression(none)", "first-phase, line 1, column 1: no function 'none'"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, problem: str) -> None:
    functions = {"f": ((), "f"), "g": ((), "h"), "h": ((), "g"), "k": (("x",), "x"), "broken": ((), "1 +")}
    with pytest.raises(LanguageError) as raised:
        compiled(text, **functions)
    assert str(raised.value) == problem


def test_functions_that_double_each_other_are_stopped() -> None:
    functions = {f"f{i}": (("x",), f"f{i + 1}(x) + f{i + 1}(x + 1)") for i in range(60)}
    started = time.monotonic()
    with pytest.raises(LanguageError, match=r"in their places, is larger than 1000000 operations$"):
        compiled("f0(a)", f60=(("x",), "x"), **functions)
    assert time.monotonic() - started < 60


@pytest.mark.parametrize("text", ["(" * 500 + "1", "-" * 5000 + "1", "2^" * 5000 + "1", "1" + " in [1]" * 5000])
def test_depth_is_limited(text: str) -> None:
    with pytest.raises(PaperwaspError):
        compiled(text)


BM25 = [
    ("bm25(title)", {"title": 1.0}),
    ("2 * bm25(title) + bm25(body) * 0.5", {"title": 2.0, "body": 0.5}),
    ("bm25(title) + bm25(title) + 0", {"title": 2.0}),
    ("3 * (bm25(title) + w * bm25(body))", {"title": 3.0, "body": 1.5}),
    ("bm25(title) * query(w)", None),
    ("bm25(title) + 1", None),
    ("bm25(title) * bm25(body)", None),
    ("bm25(title) - bm25(body)", None),
    ("bm25(title) / 2", None),
    ("max(bm25(title), bm25(body))", None),
    ("bm25(title) + attribute(popularity)", None),
    ("7", None),
]


@pytest.mark.parametrize(("text", "weights"), BM25)
def test_sums_of_bm25_are_seen(text: str, weights: dict[str, float] | None) -> None:
    assert weighted_sum(compiled(text, {"w": 0.5}), lambda feature: None) == weights


def test_weights_of_the_query_are_seen_when_known() -> None:
    program = compiled("bm25(title) * query(w) + query(v) * query(v) * bm25(body)")
    values: dict[str | None, float] = {"w": 3.0, "v": 2.0}
    assert weighted_sum(program, lambda feature: values[feature.query_name]) == {"title": 3.0, "body": 4.0}


NAMES = st.sampled_from(["a", "b", "bm25(title)", "attribute(year)", "query(w)", "1", "2.5", "1e-3", "true"])
OPERATORS = st.sampled_from(["+", "-", "*", "/", "%", "^", "==", "!=", "~=", "<", "<=", ">", ">=", "&&", "||"])
EXPRESSIONS = st.recursive(
    NAMES,
    lambda inner: st.one_of(
        st.tuples(inner, OPERATORS, inner).map(" ".join),
        inner.map("({})".format),
        inner.map("-{}".format),
        inner.map("!{}".format),
        st.tuples(inner, inner).map(lambda pair: f"max({pair[0]}, {pair[1]})"),
        st.tuples(inner, inner, inner).map(lambda three: f"if ({three[0]}, {three[1]}, {three[2]})"),
        st.tuples(inner, inner).map(lambda pair: f"({pair[0]}) in [{pair[1]}, 2]"),
        st.tuples(inner, inner).map(lambda pair: f"switch ({pair[0]}) {{ case {pair[1]}: 1, default: 2 }}"),
    ),
    max_leaves=20,
)


@given(EXPRESSIONS)
def test_what_prints_parses_to_the_same_tree_and_value(text: str) -> None:
    tree = parse_expression(text)
    assert parse_expression(str(tree)) == tree
    values = {"a": 3.0, "b": -0.5, "bm25(title)": 1.25, "attribute(year)": np.nan, "query(w)": np.inf}
    assert value_of(compiled(text), **values) == pytest.approx(value_of(compiled(str(tree)), **values), nan_ok=True)


@given(st.text(alphabet="ab1.(),[]{}+-*/^%<>=!&|~$\"'#: \nifnswtchcase", max_size=60))
def test_any_text_parses_or_is_refused_with_its_place(text: str) -> None:
    try:
        tree = parse_expression(text)
    except LanguageError as error:
        assert error.position is not None
    else:
        assert parse_expression(str(tree)) == tree


SMALL = TensorType.parse("tensor(x[1000])")


def graph(folded_cells: int = limits.TENSOR_FOLDED_TOGETHER_CELLS) -> TensorGraph:
    return TensorGraph(ProgramBuilder(), Labels(), folded_cells=folded_cells)


def made(graph: TensorGraph, number: int, type_: TensorType = SMALL) -> TensorNode:
    return graph.apply(("made", number), type_, (), lambda: algebra.range_cells(type_))


def test_constants_are_folded_until_they_are_many_together() -> None:
    own = graph(3_500)
    folded = [made(own, number).folded is not None for number in range(6)]
    assert folded == [True, True, True, True, False, False]


def test_folding_ends_when_it_was_much_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """Sums are single cells, whatever they are made of."""
    monkeypatch.setattr(limits, "TENSOR_FOLDING_CELLS", 3_500)
    own = graph()
    constant = made(own, 0)
    sums = [own.reduce(constant, "sum", (), TensorType.parse("tensor()")) for _ in range(3)]
    assert sums[0].folded is not None
    others = [own.apply(("sum", n), sums[0].type, (constant,), lambda t: algebra.reduced(t, "sum")) for n in range(5)]
    assert [node.folded is not None for node in others] == [True, True, False, False, False]


def test_a_large_constant_is_not_folded() -> None:
    assert made(graph(), 0, TensorType.parse(f"tensor(x[{limits.TENSOR_FOLDED_CELLS + 1}])")).folded is None


def test_a_node_knows_the_cells_that_it_computes() -> None:
    own = graph(-1)
    one, other = (made(own, 0, TensorType.parse(f"tensor({name}[100],z[50])")) for name in "xy")
    product = own.apply(("matmul",), TensorType.parse("tensor(x[100],y[100])"), (one, other), algebra.matmul)
    assert product.cells == 100 * 100 * 50 + 2 * 100 * 50
