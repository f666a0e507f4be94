"""The kernels of MaxSim give what their plain twins do, and on each kind of machine the very same numbers."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.core import _core, clock
from tests.chance import SEED
from tests.oracles import max_similarity

CELLS = ["float32", "float64", "int8", "uint16"]


def some_rows(rng: np.random.Generator, rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Starts and counts of documents, in any order, some without rows."""
    documents = int(rng.integers(0, 12))
    starts = rng.integers(0, rows + 1, documents).astype(np.int64)
    counts = np.array([rng.integers(0, min(40, rows - start) + 1) for start in starts.tolist()], np.int64)
    return starts, counts


def some_cells(rng: np.random.Generator, rows: int, size: int, dtype: str) -> np.ndarray:
    if dtype == "int8":
        return rng.integers(-128, 128, (rows, size)).astype(np.int8)
    cells = rng.standard_normal((rows, size)).astype("float32" if dtype == "uint16" else dtype)
    return (cells.view(np.uint32) >> np.uint32(16)).astype(np.uint16) if dtype == "uint16" else cells


@pytest.mark.parametrize("of_tokens", ["float32", "float64"])
@pytest.mark.parametrize("dtype", CELLS)
def test_dots_as_the_twin(of_tokens: str, dtype: str) -> None:
    if (of_tokens, dtype) == ("float32", "float64"):
        return
    seed = SEED
    rng = np.random.default_rng(seed)
    for _ in range(20):
        m, size, rows = int(rng.integers(0, 70)), int(rng.integers(1, 40)), int(rng.integers(0, 150))
        tokens, cells = rng.standard_normal((m, size)).astype(of_tokens), some_cells(rng, rows, size, dtype)
        starts, counts = some_rows(rng, rows)
        found = [np.empty((len(starts), m), of_tokens) for _ in range(3)]
        wanted = np.empty((len(starts), m))
        for level, out in enumerate(found):
            _core.greatest_dots(tokens, cells, starts, counts, out, level)
        max_similarity.greatest_dots(tokens, cells, starts, counts, wanted)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-3, err_msg=f"seed {seed}")
        assert all((out == found[0]).all() for out in found), f"seed {seed}"


@pytest.mark.parametrize("of_tokens", ["float32", "float64"])
def test_bits_as_the_twins(of_tokens: str) -> None:
    seed = SEED
    rng = np.random.default_rng(seed)
    for _ in range(20):
        m, octets, rows = int(rng.integers(0, 70)), int(rng.integers(1, 20)), int(rng.integers(0, 100))
        tokens, cells = rng.standard_normal((m, 8 * octets)).astype(of_tokens), some_cells(rng, rows, octets, "int8")
        starts, counts = some_rows(rng, rows)
        found = [np.empty((len(starts), m), of_tokens) for _ in range(3)]
        wanted = np.empty((len(starts), m))
        for level, out in enumerate(found):
            _core.greatest_sums(tokens, cells, starts, counts, out, level)
        max_similarity.greatest_sums(tokens, cells, starts, counts, wanted)
        np.testing.assert_allclose(found[0], wanted, rtol=1e-4, atol=1e-3, err_msg=f"seed {seed}")
        assert all((out == found[0]).all() for out in found), f"seed {seed}"
        octet_tokens = some_cells(rng, m, octets, "int8")
        least, least_wanted = (np.empty((len(starts), m), np.uint32) for _ in range(2))
        _core.least_bits(octet_tokens, cells, starts, counts, least)
        max_similarity.least_bits(octet_tokens, cells, starts, counts, least_wanted)
        assert (least == least_wanted).all(), f"seed {seed}"


def test_what_is_no_number_is_passed_over() -> None:
    tokens, cells = np.ones((2, 8), np.float32), np.ones((3, 8), np.float32)
    cells[1, 3] = np.nan
    tokens[1, 0] = np.inf
    out = np.empty((2, 2), np.float32)
    _core.greatest_dots(tokens, cells, np.array([0, 1]), np.array([3, 1]), out)
    assert out.tolist() == [[8, np.inf], [-np.inf, -np.inf]]
    bits = np.array([[0x40], [-128]], np.int8)  # the first bit is not in the first row: zero times infinity
    _core.greatest_sums(tokens, bits, np.array([0, 1]), np.array([1, 1]), out)
    assert out.tolist() == [[1, -np.inf], [1, np.inf]]


def test_rows_that_are_not_there_are_refused() -> None:
    tokens, cells, out = np.zeros((1, 4), np.float32), np.zeros((3, 4), np.float32), np.zeros((1, 1), np.float32)
    for start, count in ((-1, 1), (0, 4), (4, 0), (3, 1), (2, -1), (2**62, 2**62)):
        with pytest.raises(ValueError):
            _core.greatest_dots(tokens, cells, np.array([start]), np.array([count]), out)
    with pytest.raises(ValueError):
        _core.greatest_dots(tokens[:, :3].copy(), cells, np.array([0]), np.array([1]), out)


def test_time_is_looked_at() -> None:
    starts, counts = np.zeros(1000, np.int64), np.full(1000, 1000)
    clock.end_work_at(1)
    try:
        with pytest.raises(clock.OutOfTime):
            cells = np.zeros((1000, 128), np.float32)
            _core.greatest_dots(
                np.zeros((32, 128), np.float32), cells, starts, counts, np.zeros((1000, 32), np.float32)
            )
    finally:
        clock.end_work_at(0)
