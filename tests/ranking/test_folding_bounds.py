"""Constants that are computed with a rank profile: small ones, until they are much together; others with each query."""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.document.tensor import TensorType, algebra
from paperwasp.document.tensor.batch import Labels
from paperwasp.ranking.program import ProgramBuilder
from paperwasp.ranking.tensor_graph import TensorGraph
from paperwasp.ranking.tensor_run import TensorNode

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
