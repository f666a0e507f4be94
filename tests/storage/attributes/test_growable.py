"""Arrays that grow: what a reader holds stays as it is, and large ones never move once they have reserved space."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.document.types import TensorFieldType
from paperwasp.errors import NoSpace
from paperwasp.storage.attributes import create_column, growable
from paperwasp.storage.attributes.array_file import read_arrays, write_arrays
from paperwasp.storage.attributes.growable import GrowableArray, Large
from paperwasp.storage.attributes.rows import RowStore, places_of, rows_of

BATCHES = st.lists(st.integers(0, 700), min_size=1, max_size=8)
ROW_BYTES = 3 * 4


@pytest.fixture(autouse=True)
def small_reservations(monkeypatch: pytest.MonkeyPatch) -> None:
    """So that tests reach all sizes."""
    monkeypatch.setattr(growable, "_RESERVED_FROM_BYTES", 1024 * ROW_BYTES)
    monkeypatch.setattr(growable, "RESERVED_BYTES", 1 << 20)
    monkeypatch.setattr(growable, "_STEP_BYTES", 1 << 12)


def numbered(start: int, count: int) -> np.ndarray:
    return np.arange(start * 3, (start + count) * 3, dtype=np.float32).reshape(-1, 3)


@pytest.fixture(params=["plain", "large", "paged"])
def array(request: pytest.FixtureRequest, tmp_path: Path) -> GrowableArray:
    large = {"plain": None, "large": Large(), "paged": Large(tmp_path / "paged")}[request.param]
    return GrowableArray(np.float32, row_shape=(3,), large=large)


def test_views_stay_as_they_were(array: GrowableArray) -> None:
    @given(BATCHES)
    def check(batches: list[int]) -> None:
        grown = array.empty()
        views = []
        for count in batches:
            grown.extend(numbered(grown.length, count))
            views.append(grown.view())
        assert grown.length == sum(batches)
        for view, length in zip(views, np.cumsum(batches).tolist(), strict=True):
            assert np.array_equal(view, numbered(0, length))
        assert len(grown.array) >= grown.length and not grown.array[grown.length : grown.length + 300].any()

    check()


def test_large_arrays_stay_where_they_are(tmp_path: Path) -> None:
    for large in (Large(), Large(tmp_path)):
        grown = GrowableArray(np.float32, row_shape=(3,), large=large)
        grown.extend(numbered(0, 500))
        assert grown.extend(numbered(500, 1100))
        before = grown.array
        moves = [grown.extend(numbered(grown.length, 1000)) for _ in range(20)]
        assert not any(moves) and grown.array is before
        assert np.array_equal(grown.view(), numbered(0, 21_600))
        assert grown.size_bytes == 21_600 * ROW_BYTES
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(("cells", "room"), [(1, 16), (1 << 20, 16), (1 << 21, 8), (1 << 24, 1), (1 << 26, 1)])
def test_there_is_room_for_fewer_large_elements_at_first(cells: int, room: int) -> None:
    """For 64 MiB of them, and for one at least. Zeros take no memory."""
    assert len(GrowableArray(np.float32, row_shape=(cells,)).array) == room


def test_more_than_was_reserved_is_moved(tmp_path: Path) -> None:
    grown = GrowableArray(np.float32, row_shape=(3,), large=Large(tmp_path))
    count = (1 << 20) // ROW_BYTES
    grown.extend(numbered(0, 5000))
    grown.extend(numbered(5000, count - 5010))
    before = grown.view()
    assert grown.extend(numbered(count - 10, 20))
    assert np.array_equal(grown.view(), numbered(0, count + 10)) and np.array_equal(before, numbered(0, count - 10))


def test_where_address_space_is_limited_less_is_reserved(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    class Limited(growable.Reserved):
        def __init__(self, size_bytes: int, folder: Path | None) -> None:
            asked.append(size_bytes)
            if len(asked) <= most_refused:
                raise OSError(errno.ENOMEM, "no address space")
            super().__init__(size_bytes, folder)

    monkeypatch.setattr(growable, "Reserved", Limited)
    for most_refused in (1, 2, 3):
        asked.clear()
        grown = GrowableArray(np.float32, row_shape=(3,), large=Large())
        grown.extend(numbered(0, 1500))
        assert np.array_equal(grown.view(), numbered(0, 1500))
        assert asked == [1 << 20, 8 * 2048 * ROW_BYTES, 2048 * ROW_BYTES][: most_refused + 1]


def test_a_full_disk_is_an_error_and_leaves_what_there_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    grown = GrowableArray(np.float32, row_shape=(3,), large=Large(tmp_path))
    grown.extend(numbered(0, 2000))

    def refuse(*_: Any) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "posix_fallocate", refuse)
        with pytest.raises(NoSpace, match="no space left for a paged attribute"):
            for _ in range(20):
                grown.extend(numbered(grown.length, 1000))
    length = grown.length
    assert np.array_equal(grown.view(), numbered(0, length))
    grown.extend(numbered(length, 1000))
    assert np.array_equal(grown.view(), numbered(0, length + 1000))


def test_compacting_rows_says_which_elements_stay() -> None:
    """Rows of 3 elements, of which every other one is changed: the old elements go, the rest keep their order."""
    store = RowStore(GrowableArray(np.float32, row_shape=(3,), large=Large()))
    store.append(np.full(20_000, 3), numbered(0, 60_000))
    for lid in range(0, 20_000, 2):
        store.set(lid, numbered(100_000 + lid, 1))
    rows, (before,) = store.snapshot()
    rows, before = rows.copy(), before[:70_000].copy()
    places = store.compact()
    after_rows, (after,) = store.snapshot()
    assert places.tolist() == places_of(rows)[0].tolist()
    assert np.array_equal(after[: len(places)], before[places])
    assert after_rows.tolist() == rows_of(np.uint64(0), np.array([1, 3] * 10_000, np.uint64)).tolist()
    assert store.elements == len(places) == 40_000


def test_a_whole_copy_keeps_the_numbers_of_elements() -> None:
    store = RowStore(GrowableArray(np.float32, row_shape=(3,)))
    store.append(np.array([2, 0, 1]), numbered(0, 3))
    store.set(0, numbered(7, 1))
    again = RowStore(GrowableArray(np.float32, row_shape=(3,)))
    again.load_whole(*store.freeze_whole())
    assert again.snapshot()[0].tolist() == [3 << 24 | 1, 2 << 24, 2 << 24 | 1]
    assert np.array_equal(again.snapshot()[1][0][:4], np.concatenate([numbered(0, 3), numbered(7, 1)]))
    assert again.elements == 2


@pytest.mark.parametrize(
    ("rows", "elements"),
    [
        (np.array([3 << 24 | 1], np.uint64), numbered(0, 3)),
        (np.array([2**63 + 5], np.uint64), numbered(0, 3)),
        (np.array([0 << 24 | 1], np.uint64), np.zeros((3, 2), np.float32)),
        (np.array([0 << 24 | 1], np.uint64), np.zeros((3, 3), np.float64)),
    ],
)
def test_damaged_rows_are_not_loaded(rows: np.ndarray, elements: np.ndarray) -> None:
    store = RowStore(GrowableArray(np.float32, row_shape=(3,)))
    with pytest.raises(ValueError, match="elements"):
        store.load_whole(rows, elements)


def test_cells_of_paged_tensors_are_in_a_file(tmp_path: Path) -> None:
    kind = TensorType.parse("tensor<float>(m{},x[3])")
    folder = tmp_path / "paged"
    paged, plain = (create_column(TensorFieldType(str(kind), kind), paged_in=where) for where in (folder, None))
    assert not folder.exists()
    for first in range(0, 1000, 100):
        values = [tensor_of(kind, number) for number in range(first, first + 100)]
        for column in (paged, plain):
            column.append(values)
            column.set(first, tensor_of(kind, 5 * first))
    assert folder.is_dir()
    lids = np.arange(1000, dtype=np.uint32)
    assert paged.snapshot().gather(lids) == plain.snapshot().gather(lids)
    assert paged.size_bytes() == plain.size_bytes()


def tensor_of(kind: TensorType, number: int) -> Tensor:
    builder = TensorBuilder(kind)
    for label in range(number % 4):
        builder.subspace((str(label),), [number, label, 1])
    return builder.build()


@pytest.mark.parametrize("before", [0, 1, 1000, 5000])
def test_what_is_in_a_file_is_mapped(tmp_path: Path, before: int) -> None:
    """Wherever in the file it begins: not copied, kept when the file loses its name, and never written back."""
    path = tmp_path / "saved"
    write_arrays(path, {"other": np.full(before, 7, np.uint8), "cells": numbered(0, 2000), "last": np.full(99, 7)})
    content, arrays = path.read_bytes(), read_arrays(path)
    grown = GrowableArray(np.float32, row_shape=(3,), large=Large())
    grown.begin_with(arrays["cells"], arrays.places["cells"])
    assert grown.is_fixed and not grown.array[2000:2300].any()
    view, kept = grown.view(), grown.array
    assert not grown.extend(numbered(2000, 3000)) and grown.array is kept
    grown.array[0] = -1
    assert path.read_bytes() == content
    path.unlink()
    assert np.array_equal(grown.array[1:5000], numbered(1, 4999)) and np.array_equal(view[1:], numbered(1, 1999))


def test_what_is_small_or_paged_or_gone_is_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "saved"
    write_arrays(path, {"few": numbered(0, 20), "many": numbered(0, 2000)})
    arrays = read_arrays(path)

    def refuse(*_: object) -> int:
        raise AssertionError("it is mapped")

    with monkeypatch.context() as patch:
        patch.setattr(growable.Reserved, "begin_with", refuse)
        for name, large in (("few", Large()), ("many", Large(tmp_path / "paged")), ("many", None)):
            grown = GrowableArray(np.float32, row_shape=(3,), large=large)
            grown.begin_with(arrays[name], arrays.places[name])
            assert np.array_equal(grown.view(), arrays[name])
    path.write_bytes(path.read_bytes()[:-1])
    for _ in range(2):  # cut, and gone
        grown = GrowableArray(np.float32, row_shape=(3,), large=Large())
        grown.begin_with(numbered(0, 2000), arrays.places["many"])
        assert np.array_equal(grown.view(), numbered(0, 2000))
        path.unlink(missing_ok=True)


def test_a_column_goes_on_from_its_file(tmp_path: Path) -> None:
    """Its values are those of one that never stopped, also when they change and the elements are compacted."""
    tensor_type = TensorType.parse("tensor<float>(x[3])")
    kind = TensorFieldType(str(tensor_type), tensor_type)
    chance, columns = np.random.default_rng(1), [create_column(kind), create_column(kind)]

    def value() -> Tensor:
        builder = TensorBuilder(tensor_type)
        builder.subspace((), chance.random(3).astype(np.float32))
        return builder.build()

    values = [value() for _ in range(3000)]
    for column in columns:
        column.append(values)
    write_arrays(tmp_path / "saved", columns[1].freeze()())
    columns[1] = create_column(kind)
    columns[1].load(read_arrays(tmp_path / "saved"))
    (tmp_path / "saved").unlink()
    lids = np.arange(3000, dtype=np.uint32)
    assert columns[1].snapshot().gather(lids) == values
    for lid in chance.integers(0, 3000, 2000).tolist():
        changed = value()
        for column in columns:
            column.set(lid, changed)
    assert columns[1].snapshot().gather(lids) == columns[0].snapshot().gather(lids)
