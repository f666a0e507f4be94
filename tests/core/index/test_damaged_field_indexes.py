"""Field indexes with damaged bytes: told as such, or read without leaving their buffer (under AddressSanitizer: make
sanitize)."""

from __future__ import annotations

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core

DOCUMENTS = 300
TERMS = 12


def field_index(seed: int, *, elements: bool) -> np.ndarray:
    """Term 0 is in all documents; two have champions and several blocks, others one block."""
    rng = np.random.default_rng(seed)
    rows = [
        [term for term in range(TERMS) for _ in range(int(rng.integers(1, 4))) if rng.random() < 1 / (1 + term)]
        for _ in range(DOCUMENTS)
    ]
    offsets = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.uint64)
    terms = np.array([term for row in rows for term in row], np.uint32)
    positions = np.concatenate([np.arange(len(row)) for row in rows]).astype(np.uint32)
    if not elements:
        return _core.invert(terms, positions, offsets, 8.0)
    starts = np.arange(DOCUMENTS + 1, dtype=np.uint32)
    ends = np.array([len(row) for row in rows], np.uint32)
    return _core.invert(terms, positions, offsets, 8.0, starts, ends, np.ones(DOCUMENTS, np.int32))


WHOLE = [field_index(1, elements=False), field_index(2, elements=True)]


def read_all(buffer: np.ndarray) -> None:
    """Everything that is asked of a field index, in every way."""
    reader = _core.Reader([(0, DOCUMENTS, [buffer], _core.FrequentTerms(0, DOCUMENTS, 1, 1 << 30, 1))], 1)
    lids = np.arange(DOCUMENTS, dtype=np.uint32)
    bitmap = np.zeros((DOCUMENTS + 63) // 64, np.uint64)
    for term in range(TERMS):
        _core.match(reader, 0, term, bitmap)
        _core.count_accepted(reader, 0, term, bitmap)
        _core.occurrences(reader, 0, term, lids, np.empty(DOCUMENTS, np.int32))
        offsets, positions = _core.positions(reader, 0, term, lids)
        with suppress(ValueError):  # positions that stand in no element are told, too
            _core.locate(reader, 0, lids, offsets, positions)
    _core.phrase(reader, 0, np.array([0, 1, 2], np.uint32), None)
    _core.field_lengths(reader, 0, lids, np.empty(DOCUMENTS, np.int32))
    terms = [(0, number, 1.0, 1.2, 0.75, 8.0) for number in range(TERMS)]
    for every in (False, True):
        _core.best(reader, terms, [], 5, every, True, None)
    _core.merge([buffer], np.arange(DOCUMENTS, dtype=np.uint32), DOCUMENTS, 8.0)


@pytest.mark.parametrize("whole", WHOLE)
def test_whole_segments_are_whole(whole: np.ndarray) -> None:
    _core.check_field_index(whole)
    read_all(whole)
    _core.check_field_index(_core.merge([whole], np.arange(DOCUMENTS, dtype=np.uint32), DOCUMENTS, 8.0))


@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_damaged_bytes_are_told_or_do_no_harm(data: st.DataObject) -> None:
    damaged = WHOLE[data.draw(st.sampled_from([0, 1]))].copy()
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(damaged) - 1))
        damaged[at] = data.draw(
            st.sampled_from([0, 1, 0x7F, 0x80, 0xFF, int(damaged[at]) ^ 1, int(damaged[at]) ^ 0x80])
        )
    try:
        _core.check_field_index(damaged)
    except ValueError:
        return
    read_all(damaged)


@pytest.mark.parametrize("whole", WHOLE)
def test_every_byte_of_the_first_thousand(whole: np.ndarray) -> None:
    """The header and the arrays that say where all else is."""
    told = 0
    for at in range(1000):
        damaged = whole.copy()
        damaged[at] ^= 0xFF
        try:
            _core.check_field_index(damaged)
        except ValueError:
            told += 1
        else:
            read_all(damaged)
    assert told > 100


@pytest.mark.parametrize("whole", WHOLE)
def test_cut_segments_are_told(whole: np.ndarray) -> None:
    for size in range(0, len(whole), 97):
        with pytest.raises(ValueError):
            _core.check_field_index(whole[:size].copy())
