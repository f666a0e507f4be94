"""Changes of single cells, against maps from addresses to cells."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.tensor.modify import CREATED_WITH, CellOperation, add, empty, modify, remove
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder

TYPE = TensorType.parse("tensor(a{},b{},x[2],y[2])")
LABELS = st.tuples(st.sampled_from("pq"), st.sampled_from("pqr"))
PLACES = st.tuples(st.integers(0, 1), st.integers(0, 1))
CELLS = st.lists(st.tuples(LABELS, PLACES, st.integers(-4, 4).map(float)), max_size=6)
Plain = dict[tuple[Any, Any], float]
JOINS: dict[str, Callable[[float, float], float]] = {
    "replace": lambda a, b: b,
    "add": lambda a, b: a + b,
    "multiply": lambda a, b: a * b,
}


def tensor_of_cells(cells: list[Any]) -> Tensor:
    builder = TensorBuilder(TYPE)
    for labels, place, value in cells:
        builder.cell(labels, place, value)
    return builder.build()


def plain(tensor: Tensor) -> Plain:
    return {
        (labels, place): float(tensor.cells[(row, *place)])
        for labels, row in tensor.rows.items()
        for place in product(range(2), repeat=2)
    }


@given(CELLS, CELLS, st.sampled_from(["replace", "add", "multiply"]), st.booleans())
def test_modified(before: list[Any], cells: list[Any], operation: CellOperation, create: bool) -> None:
    tensor = tensor_of_cells(before)
    expected = plain(tensor)
    default = CREATED_WITH[operation] if create else None
    join = JOINS[operation]
    for labels, place, value in cells:
        if create and (labels, (0, 0)) not in expected:
            expected |= {(labels, other): default or 0.0 for other in product(range(2), repeat=2)}
        if (labels, place) in expected:
            expected[labels, place] = join(expected[labels, place], value)
    assert plain(modify(tensor, operation, cells, default)) == expected
    assert tensor == tensor_of_cells(before)


@given(CELLS, CELLS)
def test_added(before: list[Any], cells: list[Any]) -> None:
    tensor, addition = tensor_of_cells(before), tensor_of_cells(cells)
    assert plain(add(tensor, addition)) == plain(tensor) | plain(addition)


@given(CELLS, st.lists(st.sampled_from("pqr"), min_size=1), st.sampled_from("ab"))
def test_removed_by_one_dimension(before: list[Any], labels: list[str], name: str) -> None:
    tensor = tensor_of_cells(before)
    at = "ab".index(name)
    expected = {place: value for place, value in plain(tensor).items() if place[0][at] not in labels}
    assert plain(remove(tensor, [((name, label),) for label in labels])) == expected


@given(CELLS, st.lists(LABELS, min_size=1))
def test_removed_by_whole_addresses(before: list[Any], addresses: list[Any]) -> None:
    tensor = tensor_of_cells(before)
    expected = {place: value for place, value in plain(tensor).items() if place[0] not in addresses}
    assert plain(remove(tensor, [(("b", b), ("a", a)) for a, b in addresses])) == expected


@pytest.mark.parametrize(("cell_type", "found"), [("int8", [44.0, -44.0]), ("bfloat16", [300.0, -300.0])])
def test_cells_are_of_their_type(cell_type: str, found: list[float]) -> None:
    type_ = TensorType.parse(f"tensor<{cell_type}>(x[2])")
    start = modify(empty(type_), "replace", [((), (0,), 100.0), ((), (1,), -100.0)], None)
    assert modify(start, "multiply", [((), (0,), 3.0), ((), (1,), 3.0)], None).cells.tolist() == [found]


def test_nothing_infinite_gets_into_int8() -> None:
    start = empty(TensorType.parse("tensor<int8>(x[2])"))
    assert modify(start, "add", [((), (0,), np.inf), ((), (1,), np.nan)], None).cells.tolist() == [[0, 0]]


def test_a_tensor_that_would_be_too_large_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    tensor = tensor_of_cells([(("p", "p"), (0, 0), 1.0)])
    addition = tensor_of_cells([(("q", "q"), (0, 0), 1.0)])
    monkeypatch.setattr(limits, "TENSOR_CELLS", 7)
    assert add(tensor, addition) is tensor
    assert modify(tensor, "add", [(("q", "q"), (0, 0), 1.0)], 0.0) == tensor
