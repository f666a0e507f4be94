"""Types of expressions: golden scripts, and laws against a plain evaluator of values."""

from __future__ import annotations

import itertools
import time
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.tensor.types import TensorType
from paperwasp.ranking.expression import parse_expression
from paperwasp.ranking.scope import Source
from tests.ranking.ranking_scripts import SCRIPTS, run
from tests.ranking.typed import CONSTANTS, inference, type_text


def test_types() -> None:
    run(SCRIPTS / "types.txt", type_text)


def test_tensors_are_noted() -> None:
    noted = [inference().infer(Source(text))[1].has_tensors for text in ("1 + n", '"a" == query(s)', "sum(dense)")]
    assert noted == [False, False, True]


def test_undeclared_inputs_are_noted() -> None:
    assert list(inference().infer(Source("query(a) + query(q) + twice(query(b))"))[1].undeclared) == ["a", "b"]


def test_functions_that_nobody_calls_are_checked() -> None:
    functions = {
        "open": (("t", "f"), "sum(t * 2) + bm25(f) + t{x:1}"),
        "wrong": (("t",), "t + nothing"),
        "empty": ((), "1 +"),
    }
    inferring = inference(functions=functions)
    for name in functions:
        inferring.check_function(name)
    assert [str(problem) for problem in inferring.problems] == [
        "function 'wrong', line 1, column 5: no feature nothing",
        "function 'empty', line 1, column 4: expected a value, found the end",
    ]


def test_each_call_is_inferred_once() -> None:
    """Functions that call each other twice would otherwise take 2 ** 60 steps."""
    functions = {f"f{i}": (("t",), f"f{i + 1}(t) + f{i + 1}(t * 2)") for i in range(60)}
    inferring = inference(functions={**functions, "f60": (("t",), "t")})
    started = time.monotonic()
    type_, _ = inferring.infer(Source("f0(dense)"))
    assert str(type_) == "tensor<float>(x[3])"
    assert not inferring.problems
    assert time.monotonic() - started < 10


def test_what_cannot_be_shared_is_stopped() -> None:
    functions = {f"f{i}": (("a", "b"), f"f{i + 1}(g(a,b), b) + f{i + 1}(a, g(b,a))") for i in range(40)}
    inferring = inference(functions=functions)
    started = time.monotonic()
    inferring.infer(Source("f0(n, n)"))
    assert inferring.problems
    assert time.monotonic() - started < 30


# Laws: what a value has is what its type says.


@dataclass(frozen=True)
class Value:
    """A tensor as a plain table: dimension → size (None: mapped), and address → number."""

    dimensions: dict[str, int | None]
    cells: dict[frozenset[tuple[str, str]], float]

    @property
    def type(self) -> set[tuple[str, int | None]]:
        return set(self.dimensions.items())


def value_of(type_: TensorType) -> Value:
    labels = {d.name: [str(i) for i in range(d.size)] if d.size else ["a", "b"] for d in type_.dimensions}
    addresses = itertools.product(*([(name, label) for label in labels[name]] for name in labels))
    return Value({d.name: d.size for d in type_.dimensions}, {frozenset(a): 1.0 for a in addresses})


def joined(a: Value, b: Value) -> Value:
    cells = {}
    for (one, x), (two, y) in itertools.product(a.cells.items(), b.cells.items()):
        address = dict(one) | dict(two)
        if dict(one).items() <= address.items():
            cells[frozenset(address.items())] = x + y
    return Value({**a.dimensions, **b.dimensions}, cells)


def reduced(a: Value, names: tuple[str, ...]) -> Value:
    gone = set(names or a.dimensions)
    cells: dict[frozenset[tuple[str, str]], float] = {}
    for address, x in a.cells.items():
        kept = frozenset(part for part in address if part[0] not in gone)
        cells[kept] = cells.get(kept, 0.0) + x
    return Value({name: size for name, size in a.dimensions.items() if name not in gone}, cells)


def concatenated(a: Value, b: Value, name: str) -> Value:
    def widened(v: Value) -> Value:
        if name in v.dimensions:
            return v
        return Value({**v.dimensions, name: 1}, {address | {(name, "0")}: x for address, x in v.cells.items()})

    a, b = widened(a), widened(b)
    shift = a.dimensions[name] or 0
    moved = {
        frozenset((d, str(int(label) + shift)) if d == name else (d, label) for d, label in address): x
        for address, x in b.cells.items()
    }
    return Value({**a.dimensions, **b.dimensions, name: shift + (b.dimensions[name] or 0)}, {**a.cells, **moved})


def renamed(a: Value, old: str, new: str) -> Value:
    def name(n: str) -> str:
        return new if n == old else n

    cells = {frozenset((name(n), label) for n, label in address): x for address, x in a.cells.items()}
    return Value({name(n): size for n, size in a.dimensions.items()}, cells)


def sliced(a: Value, name: str, label: str) -> Value:
    cells = {address - {(name, label)}: x for address, x in a.cells.items() if (name, label) in address}
    return Value({n: size for n, size in a.dimensions.items() if n != name}, cells)


TYPES = {name: t for name, t in CONSTANTS.items() if name != "open"}
Typed = tuple[str, Value]


@st.composite
def _expressions(draw: st.DrawFn, depth: int = 3) -> Typed | None:
    """An expression and its value; None where the operation that was drawn does not go with the operands."""
    if depth == 0 or draw(st.booleans()):
        name = draw(st.sampled_from(sorted(TYPES)))
        return name, value_of(TYPES[name])
    first = draw(_expressions(depth - 1))
    kind = draw(st.sampled_from(["join", "concat", "reduce", "rename", "slice", "map", "if"]))
    if first is None:
        return None
    text, value = first
    names = sorted(value.dimensions)
    if kind == "map":
        return f"map({text}, f(c)(c + 1))", value
    if kind == "if":
        return f"if (n > 1, {text}, {text})", value
    if kind == "reduce":
        over = tuple(draw(st.lists(st.sampled_from(names), unique=True))) if names else ()
        return f"reduce({', '.join([text, 'sum', *over])})", reduced(value, over)
    if kind == "rename" and names:
        old = draw(st.sampled_from(names))
        if f"new_{old}" in names:
            return None
        return f"rename({text}, {old}, new_{old})", renamed(value, old, f"new_{old}")
    if kind == "slice" and names:
        name = draw(st.sampled_from(names))
        label = "a" if value.dimensions[name] is None else "0"
        return f"({text}){{{name}:{label}}}", sliced(value, name, label)
    second = draw(_expressions(depth - 1))
    if second is None or any(value.dimensions.get(n, s) != s for n, s in second[1].dimensions.items() if n != "x"):
        return None
    if kind == "concat" and second[1].dimensions.keys() - {"x"} != value.dimensions.keys() - {"x"}:
        return None
    if kind == "concat":
        return f"concat({text}, {second[0]}, x)", concatenated(value, second[1], "x")
    if value.dimensions.get("x", 0) != second[1].dimensions.get("x", 0):
        return None
    return f"({text}) * ({second[0]})", joined(value, second[1])


@given(_expressions())
def test_the_type_is_that_of_the_value(drawn: Typed | None) -> None:
    if drawn is None:
        return
    text, value = drawn
    inferring = inference(constants=TYPES)
    type_, _ = inferring.infer(Source(text))
    assert not inferring.problems, text
    assert inferring.infer(Source(str(parse_expression(text))))[0] == type_, text
    assert type_ is not None
    assert {(d.name, d.size) for d in type_.dimensions} == value.type, text
    assert all({name for name, _ in address} == set(value.dimensions) for address in value.cells), text
