"""Kernels end in the midst of their work when the time of their thread is over, and only those of that thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from threading import Thread

import numpy as np
import pytest

from paperwasp.core import _core
from paperwasp.core.clock import OutOfTime, check_time, end_work_at

DOCUMENTS = 64_000
TERMS = 30


@pytest.fixture(scope="module")
def reader() -> _core.Reader:
    """Every document has each term once, in the order of their numbers; lengths are as many."""
    terms = np.tile(np.arange(TERMS, dtype=np.uint32), DOCUMENTS)
    offsets = np.arange(DOCUMENTS + 1, dtype=np.uint64) * np.uint64(TERMS)
    field_index = _core.invert(terms, terms.copy(), offsets, float(TERMS))
    return _core.Reader([(0, DOCUMENTS, [field_index], None)], 1)


@pytest.fixture
def bounded() -> Iterator[Callable[[float], None]]:
    """A function that says how long this thread may work, in seconds; without end again after the test."""
    yield lambda seconds: end_work_at(time.monotonic_ns() + int(seconds * 1e9))
    end_work_at(0)


def everywhere() -> np.ndarray:
    return np.full(DOCUMENTS // 64, ~np.uint64(0))


def many_rows(lists: int, rows: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Positions 0 to 9 in every row of every list."""
    offsets = np.arange(rows + 1, dtype=np.uint32) * np.uint32(10)
    return [offsets] * lists, [np.tile(np.arange(10, dtype=np.uint32), rows)] * lists


def best(
    reader: _core.Reader, every: bool = False, accept: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, int, int]:
    terms = [(0, number, 1.0, 1.2, 0.75, float(TERMS)) for number in range(TERMS)]
    return _core.best(reader, terms, [], 10, every, True, accept)


def match_all(reader: _core.Reader) -> None:
    for term in range(TERMS):
        _core.match(reader, 0, term, everywhere())


LONG: dict[str, Callable[[_core.Reader], object]] = {
    "match": match_all,
    "phrase": lambda reader: _core.phrase(reader, 0, np.arange(TERMS, dtype=np.uint32), None),
    "positions": lambda reader: _core.positions(reader, 0, 3, np.arange(DOCUMENTS, dtype=np.uint32)),
    "merge_positions": lambda _: _core.merge_positions(*many_rows(100, 1000)),
    "follow": lambda _: _core.follow(*many_rows(100, 5000)),
    "near": lambda _: _core.near(*many_rows(100, 1000), [], 100, False, 5, 0, -1),
    "onear": lambda _: _core.near(*many_rows(100, 5000), [], 100, True, 5, 0, -1),
    "short calls": lambda reader: [_core.document_frequency(reader, 0, 1) for _ in range(1000)],
    "best": best,
}


@pytest.mark.parametrize("kernel", LONG.values(), ids=LONG)
def test_a_kernel_ends_when_the_time_is_over(
    reader: _core.Reader, bounded: Callable[[float], None], kernel: Callable[[_core.Reader], object]
) -> None:
    bounded(-1)
    with pytest.raises(OutOfTime):
        kernel(reader)
    with pytest.raises(OutOfTime):  # and so does what follows, however short it is
        _core.document_frequency(reader, 0, 1)
    end_work_at(0)
    kernel(reader)


def test_a_kernel_that_has_time_does_not_end(reader: _core.Reader, bounded: Callable[[float], None]) -> None:
    bounded(3600)
    for kernel in LONG.values():
        kernel(reader)
    check_time()


def test_the_time_of_other_threads_is_their_own(reader: _core.Reader, bounded: Callable[[float], None]) -> None:
    bounded(-1)
    found: list[object] = []
    thread = Thread(target=lambda: found.append(_core.phrase(reader, 0, np.array([1, 2], np.uint32), None)))
    thread.start()
    thread.join()
    assert len(found) == 1
    with pytest.raises(OutOfTime):
        check_time()


@pytest.mark.parametrize("every", [False, True])
def test_the_best_are_those_of_what_it_searched(bounded: Callable[[float], None], every: bool) -> None:
    """Scores rise with the lids, so that nothing is skipped: of what was searched the last documents are the best.
    Afterwards the same thread finds all, as if nothing had been."""
    terms = np.tile(np.arange(TERMS, dtype=np.uint32), DOCUMENTS)
    repeats = 1 + (np.arange(DOCUMENTS) // 1000).repeat(TERMS) // 50
    lengths = repeats.reshape(-1, TERMS).sum(axis=1)
    starts = np.concatenate([[0], np.cumsum(lengths)]).astype(np.uint64)
    tokens = terms.repeat(repeats)
    positions = (np.arange(len(tokens)) - starts[:-1].astype(np.int64).repeat(lengths)).astype(np.uint32)
    rising = _core.Reader([(0, DOCUMENTS, [_core.invert(tokens, positions, starts, float(TERMS))], None)], 1)
    whole = best(rising, every)
    assert whole[3] == DOCUMENTS
    partly = []
    for microseconds in range(0, 30_000, 500):
        bounded(microseconds / 1e6)
        try:
            lids, scores, _, searched = best(rising, every)
        except OutOfTime:
            continue
        if searched == DOCUMENTS:
            break
        end_work_at(0)
        expected = rescored(rising, every, searched)
        assert lids.tolist() == expected[0].tolist() and scores.tolist() == expected[1].tolist()
        partly.append(searched)
    assert partly and partly[-1] > 0
    end_work_at(0)
    again = best(rising, every)
    assert again[0].tolist() == whole[0].tolist() and again[1].tolist() == whole[1].tolist()


def rescored(reader: _core.Reader, every: bool, searched: int) -> tuple[np.ndarray, np.ndarray]:
    """The best of the documents below `searched`."""
    bits = np.zeros(DOCUMENTS, np.bool_)
    bits[:searched] = True
    found = best(reader, every, np.packbits(bits, bitorder="little").view(np.uint64))
    return found[0], found[1]
