"""Filters over the columns of attributes: a range, three of them, many values, a set of strings; to a bitmap each.

One thread, CPU time of the thread, the least of several passes; NumPy does the same on the same arrays, ending in
packed bits too. Afterwards both bitmaps are compared.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bench.report import Report, Row
from paperwasp.storage.attributes.bounds import Bounds
from paperwasp.storage.attributes.wanted import InRange, Wanted, wanted_codes, wanted_numbers

Filters = Sequence[tuple[NDArray[Any], Wanted]]
"""A column each, and which of its values are wanted."""
IN_VALUES = 10_000
DISTINCT = 1_000_000
STRINGS = 1000


@dataclass(frozen=True)
class Options:
    """How many rows a column has, and how often each filter runs."""

    rows: int = 10_000_000
    passes: int = 7


def run(report: Report, options: Options) -> None:
    random = np.random.default_rng(17)
    numbers = [random.integers(0, DISTINCT, options.rows).astype(np.int32) for _ in range(3)]
    codes = random.integers(0, STRINGS, options.rows).astype(np.uint32)
    values = random.choice(DISTINCT, IN_VALUES, replace=False).astype(np.int32)
    far = (numbers[0].astype(np.int64) * 7_919) << 16
    some = np.flatnonzero(random.random(STRINGS) < 0.3).astype(np.uint32)
    bounds = Bounds(DISTINCT // 4, DISTINCT // 2)
    ranges = [(column, InRange(bounds)) for column in numbers]

    def plain_range(column: NDArray[Any]) -> NDArray[np.bool_]:
        inside: NDArray[np.bool_] = (column >= bounds.low) & (column <= bounds.high)
        return inside

    table = np.zeros(STRINGS, np.bool_)
    table[some] = True
    far_values = (values.astype(np.int64) * 7_919) << 16
    works: list[tuple[str, Filters, Callable[[], NDArray[np.bool_]], float | None]] = [
        ("a range of an int", ranges[:1], lambda: plain_range(numbers[0]), 3.0),
        ("three ranges", ranges, lambda: np.logical_and.reduce([plain_range(each) for each in numbers]), 9.0),
        ("in, 10,000 ints", [(numbers[0], wanted_numbers(values))], lambda: np.isin(numbers[0], values), 5.0),
        ("in, 10,000 far longs", [(far, wanted_numbers(far_values))], lambda: np.isin(far, far_values), None),
        ("a set of strings", [(codes, wanted_codes(some))], lambda: table[codes], 3.0),
    ]  # fmt: skip
    for name, filters, plain, target in works:
        ours = least_ms(partial(_both, filters, options.rows), options.passes)
        peer = least_ms(partial(_packed, plain), 2)
        found = _both(filters, options.rows).view(np.uint8)[: (options.rows + 7) // 8]
        if not np.array_equal(found, _packed(plain)):
            report.fail(f"filters: {name}: NumPy finds other rows")
        report.add(_row(f"{name}, {options.rows // 1_000_000}M rows", ours, peer, target))


def _row(work: str, ours_ms: float, numpy_ms: float, most_ms: float | None) -> Row:
    """`most_ms`: the target; none for what has none."""
    ratio = f"{ours_ms / numpy_ms:.2f} of NumPy"
    peer = f"NumPy {numpy_ms:.1f} ms"
    if most_ms is None:
        return Row(work, f"{ours_ms:.1f} ms", peer, ratio)
    return Row(work, f"{ours_ms:.1f} ms", peer, ratio, f"≤ {most_ms:g} ms", ours_ms <= most_ms)


def _both(filters: Filters, rows: int) -> NDArray[np.uint64]:
    """The rows that all of some filters leave."""
    result = np.empty((rows + 63) // 64, np.uint64)
    filters[0][1].fill(filters[0][0], result)
    bitmap = np.empty_like(result)
    for column, wanted in filters[1:]:
        wanted.fill(column, bitmap)
        result &= bitmap
    return result


def _packed(plain: Callable[[], NDArray[np.bool_]]) -> NDArray[np.uint8]:
    return np.packbits(plain(), bitorder="little")


def least_ms(work: Callable[[], object], passes: int) -> float:
    """The least CPU time of several passes, in milliseconds."""
    times = []
    for _ in range(passes):
        start = time.thread_time()
        work()
        times.append(time.thread_time() - start)
    return min(times) * 1000
