"""Expressions of tensors, compiled and worked for blocks of hits, compared to their definitions hit by hit.

PAPERWASP_PLAN_CASES sets how many random expressions there are, PAPERWASP_SEED repeats a run.
"""

from __future__ import annotations

import os
import random
import time
from typing import Any

import numpy as np
import pytest

from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.document.tensor.algebra import spread
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.types import NUMBER, TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.errors import PaperwaspError, TooLarge
from paperwasp.ranking import Program, RankValue, parse_expression
from paperwasp.ranking.compiler import ExpressionCompiler
from paperwasp.ranking.names import Description, Names
from paperwasp.ranking.scope import Source
from paperwasp.ranking.tensor_run import batch, whole_column
from paperwasp.ranking.type_inference import TypeInference
from tests.chance import SEED
from tests.document.tensor.plain_tensors import PlainTensor
from tests.ranking.no_features import NoFeatures, refuse
from tests.ranking.plain_expressions import plain_of, value

CASES = int(os.environ.get("PAPERWASP_PLAN_CASES", "400"))
TYPES = {
    name: TensorType.parse(text)
    for name, text in {
        "v": "tensor<float>(x[3])",
        "w": "tensor(x[3])",
        "b": "tensor<int8>(x[2])",
        "m": "tensor<float>(x[3],y[2])",
        "s": "tensor<float>(k{})",
        "t": "tensor(k{},l{})",
        "d": "tensor<float>(k{},x[3])",
        "n": "tensor()",
    }.items()
}
OF_QUERY = {"qv": "v", "qd": "d", "qs": "s"}
"""Names that are the same for all hits, and what they are like."""
LABELS = ("a", "b", "7", "-1", "c d")


class Given:
    """A feature whose values a test gives."""

    bm25_field = None

    def __init__(self, name: str) -> None:
        self.name = name
        self.query_name = name if name in OF_QUERY else None

    def compute(self, block: Block) -> np.ndarray | TensorBatch:
        if TYPES[OF_QUERY.get(self.name, self.name)].is_number:
            return np.array([float(tensor.cells[0]) for tensor in block.tensors[self.name]])
        if self.name in OF_QUERY:
            return TensorBatch.single(block.tensors[self.name][0], block.labels)
        return TensorBatch.of(block.tensors[self.name], TYPES[self.name], block.labels)


class Catalog(NoFeatures):
    def describe(self, name: str, arguments: tuple[str | None, ...], output: str) -> Description:
        if OF_QUERY.get(name, name) not in TYPES:
            refuse(name)
        return Description(TYPES[OF_QUERY.get(name, name)])

    def bind(self, name: str, arguments: tuple[str, ...], output: str) -> Given:
        self.describe(name, arguments, output)
        return Given(name)


class Block:
    def __init__(self, tensors: dict[str, list[Tensor]], labels: Labels) -> None:
        self.tensors = tensors
        self.hits = len(tensors["n"])
        self.labels = labels
        self.known: dict[object, Any] = {}

    def part(self, start: int, end: int) -> Block:
        return Block({name: each[start:end] for name, each in self.tensors.items()}, self.labels)


def compiled(text: str) -> tuple[RankValue, Labels]:
    """What runs an expression, and the labels of its constants. Raises LanguageError where types do not fit."""
    inference = TypeInference(Catalog(), Names({}, {}, {}))
    inference.infer(Source(text))
    if inference.problems:
        raise inference.problems[0]
    compiler = ExpressionCompiler(Catalog(), {}, {})
    return compiler.runnable(Source(text)), compiler.graph.labels


def results(plan: RankValue, block: Block) -> list[Tensor]:
    """One tensor for each hit."""
    if isinstance(plan, Program):
        return [Tensor(NUMBER, ((),), np.array([number])) for number in whole_column(plan, block)]
    return spread(batch(plan, block), block.hits).tensors(block.labels)


def some_tensor(type_: TensorType, chance: random.Random) -> Tensor:
    builder = TensorBuilder(type_)
    for _ in range(chance.choice((0, 1, 2, 3)) if type_.mapped else 1):
        labels = tuple(chance.choice(LABELS) for _ in type_.mapped)
        builder.subspace(labels, [float(chance.randrange(-3, 4)) for _ in range(builder.subspace_cells)])
    return builder.build()


def some_block(chance: random.Random, base: Labels, hits: int = 5) -> Block:
    tensors = {name: [some_tensor(type_, chance) for _ in range(hits)] for name, type_ in TYPES.items()}
    tensors |= {name: [some_tensor(TYPES[like], chance)] * hits for name, like in OF_QUERY.items()}
    return Block(tensors, Labels(base))


LEAVES = (*TYPES, *OF_QUERY, "v", "d", "qd", "2", "n", "tensor(x[3])(x + n)", "tensor(k{}):{a:n,b:1}", "x")
FORMS = (
    "({0} + {1})", "({0} * {1})", "({0} * {1})", "({0} - {1})", "({0} > {1})", "max({0}, {1})", "-{0}", "!{0}",
    "abs({0})", "relu({0})", "sum({0})", "sum({0}, x)", "sum({0} * {1}, x)", "reduce({0} * {1}, sum)",
    "reduce({0}, max, k)", "sum(reduce(sum({0} * rename({1}, k, q), x), max, k), q)", "reduce({0}, min)",
    "reduce({0}, count)", "reduce({0}, sum, k)", "map({0}, f(a)(a * a + 1))", "map({0}, f(a)(if(a > 1, a, 2)))",
    "join({0}, {1}, f(a,b)(a - b))", "join({0}, {1}, f(a,b)(if(a < b, a, b * 2)))", "merge({0}, {1}, f(a,b)(a + b))",
    "rename({0}, x, z)", "rename({0}, k, q)", "concat({0}, {1}, x)", "{0}{{k:a}}", "{0}{{x:1}}", "{0}{{x:(n)}}",
    "{0}{{k:(n + 6)}}", "if({0} > 0, {1}, {1})", "if(n > 0, {0}, {1})", "map_subspaces({0}, f(a)(a * 2))",
    "map_subspaces({0}, f(a)(sum(a)))", "map_subspaces({0}, f(a)(tensor(z[2])(a{{x:(z)}} + z)))",
    "filter_subspaces({0}, f(a)(sum(a) > 1))", "tensor(z[2])(z * sum({0}) + n)", "tensor(z[2])(sum({0} * z))",
    "tensor(z[2])(if(z == 1, sum({0}), n))", "tensor(z[2],y[2])(sum(tensor(i[2])(i * z + y * sum({0}))))",
    "tensor(k{{}}):{{a:sum({0}),q:2}}", "switch(n) {{ case 1: {0}, case 2: {1}, default: {0} }}", "({0} in [1, n])",
    "cell_cast({0}, float)", "tensor(z[3])(v{{x:(z)}} * n)",
)  # fmt: skip


def some_expression(chance: random.Random, depth: int) -> str:
    if depth == 0 or chance.random() < 0.15:
        return chance.choice(LEAVES)
    parts = [some_expression(chance, depth - 1) for _ in range(2)]
    return chance.choice(FORMS).format(*parts)


def assert_same(one: PlainTensor, other: PlainTensor, told: str) -> None:
    assert one.sizes == other.sizes and one.cells.keys() == other.cells.keys(), told
    for address, cell in one.cells.items():
        assert cell == pytest.approx(other.cells[address], rel=1e-5, abs=1e-5, nan_ok=True), f"{told} at {address}"


def test_random_expressions_are_what_their_definitions_say() -> None:
    chance = random.Random(SEED)
    right = 0
    while right < CASES:
        text = some_expression(chance, chance.choice((1, 2, 2, 3)))
        try:
            plan, base = compiled(text)
        except PaperwaspError:
            continue
        right += 1
        told = f"seed {SEED}: {text}"
        block = some_block(chance, base)
        whole = [plain_of(tensor) for tensor in results(plan, block)]
        in_parts = [*results(plan, block.part(0, 1)), *results(plan, block.part(1, block.hits))]
        node = parse_expression(text)
        for hit in range(block.hits):
            names = {name: plain_of(each[hit]) for name, each in block.tensors.items()}
            assert_same(whole[hit], value(node, names), f"{told}, hit {hit}")
            assert_same(whole[hit], plain_of(in_parts[hit]), f"{told}, hit {hit} in another block")


def test_equal_parts_are_worked_once() -> None:
    compiler = ExpressionCompiler(Catalog(), {}, {})
    [one, other] = [compiler.compile(Source(text)) for text in ("map(v * w, f(a)(a + 2))", "map(v * w, f(b)(b + 2))")]
    assert one is other


def test_small_constants_are_folded() -> None:
    plan, _ = compiled("sum(tensor(x[3])(x + 1) * tensor(x[3]):[1,2,3])")
    assert isinstance(plan, Program)
    assert plan.constant == 14.0


def test_large_constants_are_worked_for_a_query_and_bounded() -> None:
    plan, base = compiled("sum(tensor(x[3000000])(x))")
    assert results(plan, some_block(random.Random(1), base))[0].cells[0] == 2999999 * 3000000 / 2
    plan, base = compiled("sum(tensor(x[100000],y[100000])(x * y))")
    with pytest.raises(TooLarge):
        results(plan, some_block(random.Random(1), base))


def test_a_block_that_is_too_large_is_told() -> None:
    plan, base = compiled("sum(tensor(x[30000000])(x + n))")
    with pytest.raises(TooLarge):
        results(plan, some_block(random.Random(1), base))


def test_work_ends_when_the_time_is_over() -> None:
    plan, base = compiled("sum(d * rename(d, k, q) * rename(d, k, r))")
    block = some_block(random.Random(1), base)
    end_work_at(time.monotonic_ns() - 1)
    try:
        with pytest.raises(OutOfTime):
            results(plan, block)
    finally:
        end_work_at(0)
