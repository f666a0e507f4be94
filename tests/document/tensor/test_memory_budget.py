"""The memory of one unit of work: counted before it is taken, by every function that makes tensors.

Large arrays are worked in pieces, before each of which the clock is asked.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module

import numpy as np
import pytest

from paperwasp.core.budget import OutOfMemory, budget
from paperwasp.document.tensor import TensorType, algebra
from paperwasp.document.tensor.algebra import CELL_FUNCTIONS, rows
from paperwasp.document.tensor.algebra.rows import PIECE_CELLS
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.errors import TooLarge

generated, reduced = (import_module(f"paperwasp.document.tensor.algebra.{name}") for name in ("generated", "reduced"))
SQUARE = TensorType.parse("tensor(x[1000],y[1000])")
ADD = CELL_FUNCTIONS["add"]


@pytest.fixture(autouse=True)
def no_budget() -> Iterator[None]:
    yield
    budget.begin(0)


def one(text: str) -> TensorBatch:
    return algebra.range_cells(TensorType.parse(text))


def sparse(count: int) -> TensorBatch:
    labels = np.arange(count, dtype=np.int64).reshape(-1, 1)
    type_ = TensorType.parse("tensor(k{})")
    return TensorBatch(type_, np.array([0, count]), labels, np.ones(count), is_single=True)


WORK: dict[str, Callable[[], TensorBatch]] = {
    "range": lambda: algebra.range_cells(SQUARE),
    "diag": lambda: algebra.diagonal(SQUARE),
    "random": lambda: algebra.random_cells(SQUARE, np.random.default_rng(0)),
    "generate": lambda: algebra.filled(SQUARE, 1, lambda first, count: np.ones(count)),
    "literal": lambda: algebra.literal(SQUARE, [("0", "0")], [np.ones(1)], Labels()),
    "map": lambda: algebra.mapped(one("tensor(x[1000000])"), CELL_FUNCTIONS["exp"]),
    "join": lambda: algebra.joined(one("tensor(x[1000])"), one("tensor(y[1000])"), ADD),
    "join of labels": lambda: algebra.joined(sparse(200_000), one("tensor(y[5])"), ADD),
    "concat": lambda: algebra.concatenated(one("tensor(x[600000])"), one("tensor(x[400000])"), "x"),
    "cast": lambda: algebra.cast(one("tensor<float>(x[1000000])"), "double"),
    "reduce": lambda: algebra.reduced(one("tensor(x[1000000],y[2])"), "sum", ["y"]),
    "median": lambda: algebra.reduced(one("tensor(x[1000000])"), "median"),
    "matmul": lambda: algebra.matmul(one("tensor(x[1000],z[2])"), one("tensor(y[1000],z[2])"), "z"),
    "softmax": lambda: algebra.softmax(one("tensor(x[1000000])")),
    "repeat": lambda: algebra.spread(one("tensor(x[1000])"), 1000),
    "cell_order": lambda: algebra.cell_order(one("tensor(x[1000000])"), "max"),
}
"""Each has a result, or sorts a copy, of 1,000,000 doubles."""


@pytest.mark.parametrize("name", WORK)
def test_what_is_made_is_counted_before(name: str) -> None:
    budget.begin(1 << 40)
    WORK[name]()
    needed = budget.taken_bytes
    assert 8_000_000 <= needed <= 70_000_000
    budget.begin(needed)
    WORK[name]()
    budget.begin(needed - 1)
    with pytest.raises(TooLarge, match=rf"more than the {needed - 1:,} bytes of memory that it may take"):
        WORK[name]()
    assert budget.taken_bytes < needed


def test_what_is_refused_is_not_counted_and_comes_back() -> None:
    budget.begin(100)
    budget.take(60)
    before = budget.taken_bytes
    budget.take(40)
    with pytest.raises(OutOfMemory):
        budget.take(1)
    assert budget.taken_bytes == 100
    budget.give_back_to(before)
    budget.take(40)
    with pytest.raises(OutOfMemory):
        budget.take(1)


def test_pieces_cover_an_array_once_in_order() -> None:
    for shape in ((), (0,), (7,), (3, 5), (2, 3, 11), (1, 1, 100), (13, 1, 2), (2, 0, 3)):
        for most in (1, 2, 7, 1000):
            seen = np.zeros(shape, np.int64)
            for piece in rows.pieces(shape, most):
                assert seen[piece].size <= most
                seen[piece] += 1
            assert (seen == 1).all()


LARGE: dict[str, Callable[[], TensorBatch]] = {
    "generate": lambda: algebra.filled(SQUARE, 1, lambda first, count: np.ones(count)),
    "map": lambda: algebra.mapped(one("tensor(x[1000000])"), CELL_FUNCTIONS["exp"]),
    "join": lambda: algebra.joined(one("tensor(x[1000])"), one("tensor(y[1000])"), ADD),
    "median": lambda: algebra.reduced(one("tensor(x[1000],y[1000])"), "median", ["y"]),
    "products of rows": lambda: algebra.matmul(
        algebra.spread(one("tensor(x[300],z[300])"), 1), algebra.spread(one("tensor(y[300],z[300])"), 1), "z"
    ),
}


@pytest.mark.parametrize("name", LARGE)
def test_the_clock_is_asked_within_large_functions(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Once for each piece of a million cells, or for 2,097,152 products of 27,000,000."""
    asked = [0]

    def check_time() -> None:
        asked[0] += 1

    for module in (rows, generated, reduced):
        monkeypatch.setattr(module, "check_time", check_time)
    LARGE[name]()
    least = 27_000_000 // (1 << 21) if name == "products of rows" else 1_000_000 // PIECE_CELLS
    assert least <= asked[0] <= 4 * least + 20


def test_functions_of_cells_see_a_piece_at_a_time() -> None:
    most = [0]

    def function(a: np.ndarray, b: np.ndarray) -> np.ndarray:
        most[0] = max(most[0], a.size)
        assert a.shape == b.shape
        found: np.ndarray = a + 2 * b
        return found

    found = algebra.joined(one("tensor(x[1000])"), one("tensor(y[1000])"), function)
    assert most[0] <= PIECE_CELLS
    assert (found.cells[0] == np.arange(1000.0)[:, None] + 2 * np.arange(1000.0)).all()


def test_a_piece_that_needs_too_much_is_made_smaller() -> None:
    asked = []

    def values(first: int, count: int) -> np.ndarray:
        asked.append((first, count))
        budget.take(1000 * count)
        return np.arange(first, first + count, dtype=np.float64)

    def limited(first: int, count: int) -> np.ndarray:
        try:
            return values(first, count)
        except OutOfMemory:
            raise TooLarge("of the test") from None

    budget.begin(8 * 1000 + 100_000)
    found = algebra.filled(TensorType.parse("tensor(x[1000])"), 1, limited)
    assert (found.cells[0] == np.arange(1000.0)).all()
    assert max(count for first, count in asked if first) <= 100
    assert budget.taken_bytes == 8 * 1000
    budget.begin(8 * 1000 + 999)
    with pytest.raises(TooLarge, match="of the test"):
        algebra.filled(TensorType.parse("tensor(x[1000])"), 1, limited)


@pytest.mark.parametrize("shapes", [("a[7],b[9]", "b[9],c[11]"), ("a[7],b[9],d[3]", "b[9],c[11],d[3]")])
def test_products_in_parts_are_those_at_once(shapes: tuple[str, str], monkeypatch: pytest.MonkeyPatch) -> None:
    a, b = (algebra.repeated(algebra.spread(one(f"tensor({each})"), 1), 3) for each in shapes)
    whole = algebra.matmul(a, b, "b")
    monkeypatch.setattr(reduced, "_PRODUCTS", 20)
    assert (algebra.matmul(a, b, "b").cells == whole.cells).all()


@pytest.mark.parametrize("cells_of_row", [1, 2, 5, 6])
def test_a_median_of_rows_is_that_of_sorted_cells(cells_of_row: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reduced, "PIECE_CELLS", 12)
    chance = np.random.default_rng(cells_of_row)
    values = chance.integers(-9, 9, (5, 3, cells_of_row)).astype(np.float64)
    values[0, 0, 0] = np.nan
    type_ = TensorType.parse(f"tensor(a[3],b[{cells_of_row}])")
    found = algebra.reduced(TensorBatch.dense(type_, values), "median", ["b"])
    assert np.array_equal(found.cells, np.median(values, axis=2), equal_nan=True)
