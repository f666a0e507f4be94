"""What is too large for the tensor functions, or takes too long, is refused and not begun."""

from __future__ import annotations

import time
from collections.abc import Callable

import numpy as np
import pytest

from paperwasp import limits
from paperwasp.core import clock
from paperwasp.document.tensor import Dimension, TensorType, algebra
from paperwasp.document.tensor.algebra import CELL_FUNCTIONS
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.errors import TooLarge

MULTIPLY = CELL_FUNCTIONS["multiply"]


def sparse(name: str, count: int, cells: int = 1) -> TensorBatch:
    """A tensor with so many labels, each with so many cells."""
    type_ = TensorType.parse(f"tensor<float>({name}{{}},z[{cells}])")
    labels = np.arange(count, dtype=np.int64).reshape(-1, 1)
    return TensorBatch(type_, np.array([0, count]), labels, np.ones((count, cells), np.float32), is_single=True)


def dense(name: str, size: int) -> TensorBatch:
    return algebra.generated(TensorType.parse(f"tensor<float>({name}[{size}])"), np.ones(size))


@pytest.mark.parametrize(
    "work",
    [
        lambda: algebra.joined(sparse("x", 10_000), sparse("y", 10_000), MULTIPLY),
        lambda: algebra.joined(dense("x", 10_000), dense("y", 10_000), MULTIPLY),
        lambda: algebra.summed_products(sparse("x", 10_000), sparse("y", 10_000), ["z"]),
        lambda: algebra.concatenated(sparse("x", 10_000), sparse("y", 10_000), "z"),
        lambda: algebra.repeated(algebra.spread(sparse("x", 10_000), 1), 10_000),
        lambda: algebra.spread(dense("x", 1_000_000), 1_000),
        lambda: algebra.range_cells(TensorType.parse("tensor(x[100000],y[100000])")),
        lambda: algebra.diagonal(TensorType.parse("tensor(x[2147483647],y[2147483647])")),
        lambda: algebra.random_cells(TensorType.parse("tensor(x[2147483647])"), np.random.default_rng(0)),
        lambda: algebra.literal(TensorType.parse("tensor(x{},y[100000000])"), [("a", "1")], [np.ones(1)], Labels()),
        lambda: algebra.range_cells(TensorType.of(Dimension(f"d{number:02}", 1) for number in range(64))),
    ],
)
def test_too_large(work: Callable[[], TensorBatch]) -> None:
    with pytest.raises(TooLarge):
        work()


def test_a_row_may_be_as_large_as_a_tensor() -> None:
    assert limits.TENSOR_BATCH_CELLS >= limits.TENSOR_CELLS


@pytest.mark.parametrize(
    "work",
    [
        lambda: algebra.mapped(dense("x", 3), CELL_FUNCTIONS["exp"]),
        lambda: algebra.joined(dense("x", 3), dense("x", 3), MULTIPLY),
        lambda: algebra.reduced(sparse("x", 3), "sum"),
        lambda: algebra.summed_products(dense("x", 3), dense("x", 3)),
        lambda: algebra.sliced(sparse("x", 3), {"x": algebra.index_place(1)}),
        lambda: algebra.cell_order(sparse("x", 3), "max"),
    ],
)
def test_time_is_looked_at(work: Callable[[], TensorBatch]) -> None:
    clock.end_work_at(time.monotonic_ns() - 1)
    try:
        with pytest.raises(clock.OutOfTime):
            work()
    finally:
        clock.end_work_at(0)


def test_labels_far_apart() -> None:
    """Labels of digits are their own numbers: keys of several columns may need more than 64 bits."""
    type_ = TensorType.parse("tensor(a{},b{},c{},d{})")
    far = 10**17
    labels = np.array([[0, far, 5, far], [far, 0, far, 0], [1, far, 5, far]], np.int64)
    one = TensorBatch(type_, np.array([0, 2, 3]), labels, np.array([1.0, 2.0, 4.0]))
    other = TensorBatch(type_, np.array([0, 3]), labels[::-1], np.array([10.0, 20.0, 30.0]), is_single=True)
    joined = algebra.joined(one, other, CELL_FUNCTIONS["add"])
    assert joined.starts.tolist() == [0, 2, 3]
    assert dict(zip(map(tuple, joined.labels.tolist()), joined.cells.tolist(), strict=True)) == {
        (0, far, 5, far): 31.0,
        (far, 0, far, 0): 22.0,
        (1, far, 5, far): 14.0,
    }
    sums = algebra.reduced(one, "sum", ["a"])
    assert sorted(map(tuple, sums.labels.tolist())) == [(0, far, 0), (far, 5, far), (far, 5, far)]


@pytest.mark.parametrize(
    "work",
    [
        lambda t, q: algebra.reduced(t, "sum"),
        lambda t, q: algebra.reduced(t, "avg", ["z"]),
        lambda t, q: algebra.reduced(t, "sum", ["x"]),
        lambda t, q: algebra.summed_products(t, q),
        lambda t, q: algebra.summed_products(t, q, ["z"]),
        lambda t, q: algebra.summed_products(t, t, ["z"]),
        lambda t, q: algebra.softmax(t, ["x"]),
        lambda t, q: algebra.cosine_similarity(t, q, "z"),
        lambda t, q: algebra.merged(t, algebra.joined(t, q, MULTIPLY), CELL_FUNCTIONS["add"]),
        lambda t, q: algebra.cell_order(t, "max"),
        lambda t, q: algebra.reduced(t, "median", ["x"]),
        lambda t, q: algebra.reduced(t, "max"),
        lambda t, q: algebra.sliced(t, {"x": algebra.index_place(3), "z": algebra.index_place(50)}),
        lambda t, q: algebra.sliced(q, {"z": algebra.index_places(t.counts.astype(np.float64))}),
        lambda t, q: algebra.joined(q, algebra.number(t.counts.astype(np.float64)), MULTIPLY),
        lambda t, q: algebra.concatenated(q, t, "z"),
        lambda t, q: algebra.map_subspaces(t, lambda s: algebra.concatenated(s, q, "z")),
        lambda t, q: algebra.filter_subspaces(t, lambda s: algebra.summed_products(s, q)),
        lambda t, q: algebra.repeated(t, 1),
    ],
)
def test_a_hit_has_the_same_value_in_any_company(work: Callable[[TensorBatch, TensorBatch], TensorBatch]) -> None:
    seed = np.random.default_rng().integers(2**32)
    rng = np.random.default_rng(seed)
    counts = rng.integers(0, 5, 40)
    starts = np.concatenate([[0], np.cumsum(counts)])
    labels = np.concatenate([rng.permutation(6)[:count] for count in counts]).reshape(-1, 1)
    cells = rng.standard_normal((len(labels), 51)).astype(np.float32)
    batch = TensorBatch(TensorType.parse("tensor<float>(x{},z[51])"), starts, labels, cells)
    query = algebra.generated(TensorType.parse("tensor<float>(z[51])"), rng.standard_normal(51))
    whole = work(batch, query)
    for hits in ([], [0, 1], [39], [3, 4, 5], [7, 30, 2], list(range(20))):
        part = work(algebra.taken(batch, np.array(hits, np.int64)), query)
        wanted = algebra.taken(whole, np.array(hits, np.int64))
        assert part.labels.tolist() == wanted.labels.tolist(), f"seed {seed}"
        assert part.cells.tolist() == wanted.cells.tolist(), f"seed {seed}"
