"""Where elements of arrays and weighted sets are, beside plain lists: through batches, merges, flushes, loads."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.storage.index import IndexedField, IndexSnapshot, TextIndex
from paperwasp.storage.index.segments import Segment
from paperwasp.storage.index.tokens import Tokens
from paperwasp.text.linguistics import profile_of

KEY = ("music", "tags")
GAP = 100
words = st.sampled_from(["blue", "green", "red train"])
texts = st.lists(words, max_size=4).map(" ".join)
Value = str | list[str] | dict[str, int] | None
values = st.none() | texts | st.lists(texts, max_size=4) | st.dictionaries(texts, st.integers(-9, 9), max_size=4)
batches = st.lists(st.lists(values, min_size=1, max_size=5), min_size=1, max_size=12)
Located = list[tuple[int, int, int, int, int]]
"""Position, number of its element, where that starts and ends, its weight."""


def located(snapshot: IndexSnapshot, word: str, lids: np.ndarray) -> list[Located]:
    term = snapshot.term_id(word)
    number = snapshot.number_of(KEY)
    if term < 0:
        return [[] for _ in lids]
    offsets, positions = snapshot.positions(number, term, lids)
    places = snapshot.locate(number, lids, offsets, positions)
    rows = list(zip(positions.tolist(), *(each.tolist() for each in places), strict=True))
    return [rows[a:b] for a, b in pairwise(offsets.tolist())]


def plainly(value: Any, word: str) -> Located:
    if value is None:
        return []
    elements = {value: 1} if isinstance(value, str) else value
    weights = elements.values() if isinstance(elements, dict) else [1] * len(elements)
    found, start = [], 0
    for number, (text, weight) in enumerate(zip(elements, weights, strict=True)):
        tokens = text.split()
        end = start + len(tokens)
        found += [(start + i, number, start, end, weight) for i, token in enumerate(tokens) if token == word]
        start = end + GAP
    return found


def bitmap(lids: list[int], limit: int) -> np.ndarray:
    bits = np.zeros((limit + 63) // 64 * 64, np.uint8)
    bits[lids] = 1
    return np.packbits(bits, bitorder="little").view(np.uint64)


@given(fed=batches, many=st.sampled_from([1, 40]), saved=st.integers(0, 12), dead=st.sets(st.integers(0, 60)))
def test_elements_stay_where_they_are(fed: list[list[Value]], many: int, saved: int, dead: set[int]) -> None:
    with TemporaryDirectory() as directory:
        index = new_index(Path(directory))
        documents: list[Any] = []
        for number, batch in enumerate(fed):
            index.add_batch(len(documents), "music", [{"tags": value} for value in batch * many])
            documents += batch * many
            if number == saved:
                index.live = bitmap([lid for lid in range(len(documents)) if lid not in dead], len(documents))
                state = index.flush(index.freeze())
                index = new_index(Path(directory))
                index.load(state)
        alive = np.array([lid for lid in range(len(documents)) if lid not in dead], np.uint32)
        snapshot = index.snapshot()
        for word in ("blue", "train"):
            expected = [plainly(documents[lid], word) for lid in alive.tolist()]
            assert located(snapshot, word, alive) == expected


def new_index(directory: Path) -> TextIndex:
    index = TextIndex(directory)
    index.configure([IndexedField(*KEY, profile_of("none", True, None))])
    return index


def has_elements(segment: Segment) -> bool:
    tokens = segment.fields[0]
    assert isinstance(tokens, Tokens)
    return tokens.elements is not None


def test_single_values_keep_no_elements(tmp_path: Path) -> None:
    index = new_index(tmp_path)
    index.add_batch(0, "music", [{"tags": "blue train"}, {}])
    (segment,) = index.snapshot().segments
    assert has_elements(segment) is False
    index.add_batch(2, "music", [{"tags": ["blue", "green"]}])
    assert [has_elements(segment) for segment in index.snapshot().segments] == [False, True]
