"""Columns of values that are more than a number or a text, against lists of plain values: what is put is read."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.converters import GeoPosition
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.document.types import (
    BOOL,
    BYTE,
    FLOAT16,
    INT,
    LONG,
    POSITION,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    NumericType,
    TensorFieldType,
    WeightedSetType,
    array_of,
    check_of,
    map_of,
    reference_to,
    tensor_field,
    weighted_set_of,
)
from paperwasp.errors import InvalidInput, InvalidQuery
from paperwasp.storage.attributes import Column, ColumnView, create_column
from paperwasp.storage.attributes import rows as rows_module
from paperwasp.storage.attributes.array import ArrayView
from paperwasp.storage.attributes.sort_order import SortOrder, order_keys
from paperwasp.storage.attributes.tensor import TensorView
from tests.chance import SEED

TENSORS = [
    "tensor()", "tensor(x[3])", "tensor<float>(x[2],y[2])", "tensor<int8>(x[4])", "tensor<bfloat16>(x[2])",
    "tensor(m{})", "tensor<int8>(m{},n{})", "tensor<float>(m{},x[2])", "tensor<bfloat16>(m{},x[2])",
]  # fmt: skip
KEYS: list[DataType] = [BYTE, INT, LONG, STRING, URI, BOOL]
SETS: list[DataType] = [weighted_set_of(key) for key in KEYS]
TYPES: list[DataType] = [
    *SETS, FLOAT16, array_of(FLOAT16), array_of(BOOL), URI, array_of(URI), RAW, POSITION, array_of(POSITION),
    reference_to("parent"), *(tensor_field(TensorType.parse(text)) for text in TENSORS),
]  # fmt: skip
TEXTS = st.one_of(st.sampled_from(["a", "A", "b", "Ab", "ß", "ẞ"]), st.text(max_size=3))
WHOLE = st.one_of(st.integers(-3, 3), st.integers(-(2**31), 2**31 - 1))
HALVES = st.one_of(st.integers(-5, 5).map(float), st.floats(width=16))


def numbers(cell_type: str) -> st.SearchStrategy[float]:
    if cell_type == "int8":
        return st.integers(-128, 127).map(float)
    return st.floats(width=64 if cell_type == "double" else 32)


@st.composite
def tensors(draw: st.DrawFn, kind: TensorType) -> Tensor:
    builder = TensorBuilder(kind)
    labels = st.tuples(*(TEXTS for _ in kind.mapped))
    for each in draw(st.lists(labels, max_size=3, unique=True)) if kind.mapped else [()]:
        cells = st.lists(numbers(kind.cell_type), min_size=builder.subspace_cells, max_size=builder.subspace_cells)
        builder.subspace(each, draw(cells))
    return builder.build()


def values_of(data_type: DataType) -> st.SearchStrategy[Any]:
    match data_type:
        case ArrayType():
            return st.lists(values_of(data_type.element), max_size=4)
        case WeightedSetType():
            return st.dictionaries(values_of(data_type.key), WHOLE, max_size=4)
        case TensorFieldType():
            return tensors(data_type.tensor)
        case NumericType() if data_type.low is not None and data_type != BOOL:
            return st.one_of(st.integers(-3, 3), st.integers(data_type.low, data_type.high))
    if data_type == BOOL:
        return st.booleans()
    if data_type == FLOAT16:
        return HALVES
    if data_type == RAW:
        return st.binary(max_size=4)
    if data_type == POSITION:
        place = st.builds(GeoPosition, WHOLE, WHOLE)
        return place.filter(lambda position: position != (0, -(2**31)))
    return TEXTS


def shown(value: Any) -> Any:
    """What is read of a value that was put: as `content.layouts.codec` has it, nothing where there is nothing."""
    is_nan = isinstance(value, float) and math.isnan(value)
    return None if value in (None, "", b"", [], {}) or is_nan else value


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, Tensor) and isinstance(expected, Tensor):
        return found == expected and found.cells.dtype == expected.cells.dtype
    return type(found) is type(expected) and repr(found) == repr(expected)


def all_same(found: list[Any], rows: list[Any]) -> bool:
    return len(found) == len(rows) and all(same(a, shown(b)) for a, b in zip(found, rows, strict=True))


def every(limit: int) -> np.ndarray:
    return np.arange(limit, dtype=np.uint32)


def lids_of(bitmap: np.ndarray) -> list[int]:
    return np.flatnonzero(np.unpackbits(bitmap.view(np.uint8), bitorder="little")).tolist()


@st.composite
def histories(draw: st.DrawFn, types: list[DataType] = TYPES) -> tuple[DataType, Column, list[Any]]:
    """A column after batches, paddings, fillings, changes in place and restarts, and the list it should equal."""
    data_type = draw(st.sampled_from(types))
    column, rows = create_column(data_type), []
    optional = st.one_of(st.none(), values_of(data_type))
    for _ in range(draw(st.integers(0, 4))):
        batch = draw(st.lists(optional, max_size=20))
        column.append(batch)
        rows += batch
        padding = draw(st.lists(optional, max_size=2))
        first = len(rows)
        column.pad(first + len(padding))
        rows += padding
        column.fill(np.arange(first, len(rows), dtype=np.uint32), padding)
        for _ in range(draw(st.integers(0, 3)) if rows else 0):
            lid, value = draw(st.integers(0, len(rows) - 1)), draw(optional)
            column.set(lid, value)
            rows[lid] = value
        if draw(st.booleans()):
            column = restarted(data_type, column)
    return data_type, column, rows


def restarted(data_type: DataType, column: Column) -> Column:
    again = create_column(data_type)
    saved = column.freeze()()
    again.load(
        {name: np.frombuffer(array.tobytes(), array.dtype).reshape(array.shape) for name, array in saved.items()}
    )
    return again


@given(histories())
def test_what_is_put_is_what_is_read(history: tuple[DataType, Column, list[Any]]) -> None:
    data_type, column, rows = history
    check = check_of(data_type)
    found = [column.get(lid) for lid in range(len(rows))]
    assert column.length == len(rows) and all_same(found, rows)
    assert all(value is None or check(value) for value in found)
    gathered = column.snapshot().gather(every(len(rows)))
    assert all_same(gathered, rows)


@given(histories(), st.data())
def test_a_view_keeps_its_rows(history: tuple[DataType, Column, list[Any]], data: st.DataObject) -> None:
    """Rows that are appended show in no earlier view; a row changed in place shows as it was, or as it is now."""
    data_type, column, rows = history
    view, frozen = column.snapshot(), column.freeze()
    optional = st.one_of(st.none(), values_of(data_type))
    column.append(data.draw(st.lists(optional, min_size=1, max_size=300 if data.draw(st.booleans()) else 5)))
    changes = data.draw(st.dictionaries(st.integers(0, max(0, len(rows) - 1)), optional, max_size=5)) if rows else {}
    for lid, value in changes.items():
        column.set(lid, value)
    found = view.gather(every(view.limit))
    assert view.limit == len(rows)
    for lid, value in enumerate(found):
        assert same(value, shown(rows[lid])) or (lid in changes and same(value, shown(changes[lid])))
    again = create_column(data_type)
    again.load(frozen())
    assert all_same([again.get(lid) for lid in range(again.length)], rows)


@pytest.mark.parametrize("data_type", [array_of(STRING), weighted_set_of(STRING), array_of(INT)], ids=str)
@pytest.mark.parametrize("fast_search", [False, True])
def test_elements_of_dead_rows_go(data_type: DataType, fast_search: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that die leave no elements and no strings behind, but for less than as many again; the others, and what
    readers have, stay as they were."""
    monkeypatch.setattr(limits, "SPARE_STRINGS_LEAST", 50)
    monkeypatch.setattr(rows_module, "_LEAST_UNUSED", 50)
    chance = random.Random(SEED)
    column = create_column(data_type, fast_search=fast_search)
    is_text = "string" in str(data_type)
    live: dict[int, Any] = {}
    views: list[tuple[ColumnView, dict[int, Any]]] = []
    given_back = 0

    def value(version: int) -> Any:
        keys = [f"W{version} {number}" if is_text else 1000 * version + number for number in range(chance.randrange(9))]
        keys = [*keys, "common" if is_text else -1]
        return dict.fromkeys(keys, version) if isinstance(data_type, WeightedSetType) else keys

    for version in range(400):
        live[version] = value(version)
        column.append([live[version]])
        for lid in chance.sample(sorted(live), version % 3 == 0):
            live[lid] = value(version + 1000)
            column.set(lid, live[lid])
            views = [(view, {**rows, lid: None}) for view, rows in views]  # as it was, or as it is now
        dead = [lid for lid in sorted(live) if chance.random() < (0.9 if version % 100 == 99 else 0.03)]
        for lid in dead:
            del live[lid]
        given_back += column.settle(np.array(dead, np.uint32))
        view = column.snapshot()
        assert isinstance(view, ArrayView)
        elements = sum(map(len, live.values()))
        assert len(view.dictionary or ()) <= max(50, elements // 2) + elements + 1, (version, SEED)
        for sought in ("common", f"w{version} 0") if is_text else (-1, 1000 * version):
            expected = [lid for lid, row in live.items() if any(str(key).lower() == str(sought) for key in row)]
            assert [lid for lid in lids_of(view.equal_bitmap(sought)) if lid in live] == sorted(expected), SEED
        if version % 20 == 0:
            views.append((view, dict(live)))
    for view, rows in [*views, (column.snapshot(), live)]:
        for lid, row in rows.items():
            assert row is None or same(view.get(lid), row), (lid, SEED)
    assert (given_back > 1000) == is_text
    again = restarted(data_type, column)
    assert all(same(again.get(lid), row) for lid, row in live.items())


@pytest.mark.parametrize("kind", ["tensor(m{})", "tensor<int8>(m{},n{})"])
def test_labels_of_dead_rows_go(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "SPARE_STRINGS_LEAST", 50)
    parsed = TensorType.parse(kind)

    def value(version: int) -> Tensor:
        builder = TensorBuilder(parsed)
        for number in range(40):
            builder.subspace(tuple(f"{m} {number} of {version}" for m in parsed.mapped), [number])
        return builder.build()

    column = create_column(tensor_field(parsed))
    column.append([value(0), None, TensorBuilder(parsed).build()])
    views, given_back = [], 0
    for version in range(1, 30):
        column.append([value(version)])
        given_back += column.settle(np.array([version + 1 if version > 1 else 0], np.uint32))
        views.append(column.snapshot())
        dictionary = views[-1].dictionary  # type: ignore[attr-defined]
        assert len(dictionary) < 3 * 40 * len(parsed.mapped) + 2
        assert same(column.get(version + 2), value(version)) and column.get(1) is None
    assert given_back > 25 * 40 * len(parsed.mapped) * 12
    for version, view in enumerate(views, 1):
        assert same(view.get(version + 2), value(version))
    again = restarted(tensor_field(parsed), column)
    assert same(again.get(31), value(29)) and again.get(5) is None


@given(histories(SETS), st.data())
def test_weighted_sets_match_any_key(history: tuple[DataType, Column, list[Any]], data: st.DataObject) -> None:
    data_type, column, rows = history
    assert isinstance(data_type, WeightedSetType)
    key = data.draw(values_of(data_type.key).filter(lambda value: value != ""))
    view = column.snapshot()

    def is_key(value: Any) -> bool:
        return bool(value.lower() == key.lower() if isinstance(key, str) else value == key)

    expected = [lid for lid, row in enumerate(rows) if any(map(is_key, row or ()))]
    assert lids_of(view.equal_bitmap(key)) == expected
    assert view.counts(every(len(rows))).tolist() == [len(row or ()) for row in rows]
    weights = view.weights(every(len(rows)), key).tolist()
    for row, weight in zip(rows, weights, strict=True):
        assert weight == row[key] if row and key in row else math.isnan(weight)
    if data_type.key not in (STRING, URI, BOOL):
        low = data.draw(st.integers(-4, 4))
        assert lids_of(view.range_bitmap(low, None)) == [
            lid for lid, row in enumerate(rows) if any(value >= low for value in row or ())
        ]
        assert lids_of(view.equal_bitmap(str(key))) == expected
    least = order_keys(view, every(len(rows)), SortOrder()).argmin() if rows else None
    assert least is None or rows[least] or not any(rows)


@given(histories([FLOAT16, array_of(FLOAT16)]), HALVES.filter(math.isfinite), st.booleans())
def test_halves_are_searched_as_halves(
    history: tuple[DataType, Column, list[Any]], low: float, inclusive: bool
) -> None:
    data_type, column, rows = history
    elements = [row or [] if isinstance(data_type, ArrayType) else [row] for row in rows]
    expected = [
        lid for lid, row in enumerate(elements)
        if any(value is not None and (value > low or (inclusive and value == low)) for value in row)
    ]  # fmt: skip
    assert lids_of(column.snapshot().range_bitmap(low, None, inclusive)) == expected


@pytest.mark.parametrize("text", ["tensor<float>(x[2])", "tensor<bfloat16>(x[2])", "tensor<int8>(x[2])"])
def test_cells_of_dense_tensors_for_kernels(text: str) -> None:
    kind = TensorType.parse(text)
    column = create_column(tensor_field(kind))
    builder = TensorBuilder(kind)
    builder.subspace((), [1.5, 2] if "int8" not in text else [1, 2])
    column.append([None, builder.build(), None])
    column.set(0, builder.build())
    column.set(0, None)
    view = column.snapshot()
    assert isinstance(view, TensorView)
    cells, is_set = view.dense(every(3))
    first = 1 if "int8" in text else 1.5
    assert cells.tolist() == [[0, 0], [first, 2], [0, 0]] and is_set.tolist() == [False, True, False]


@pytest.mark.parametrize("data_type", [RAW, POSITION, tensor_field(TensorType.parse("tensor(x[2])"))])
def test_values_without_an_order_are_not_searched(data_type: DataType) -> None:
    column = create_column(data_type)
    column.append([None])
    view: ColumnView = column.snapshot()
    assert not view.is_searched
    with pytest.raises(InvalidQuery):
        view.equal_bitmap("a")
    with pytest.raises(InvalidQuery):
        view.range_bitmap(1, 2)
    if data_type != RAW:  # bytes are sorted by
        with pytest.raises(InvalidQuery, match="not sorted by"):
            order_keys(view, every(1), SortOrder())


@pytest.mark.parametrize("data_type", [map_of(STRING, INT), array_of(RAW), weighted_set_of(RAW)])
def test_types_without_columns(data_type: DataType) -> None:
    with pytest.raises(InvalidInput, match="not kept as attributes"):
        create_column(data_type)


def test_a_reference_is_found_by_the_whole_id() -> None:
    column = create_column(reference_to("parent"))
    column.append(["id:a:parent::X", "id:a:parent::x", None])
    assert lids_of(column.snapshot().equal_bitmap("id:a:parent::x")) == [1]


def test_elements_no_row_has_any_more_go() -> None:
    """A row that is changed over and over does not make its column grow without end."""
    column = create_column(weighted_set_of(INT))
    column.append([{1: 1}])
    for number in range(3000):
        column.set(0, dict.fromkeys(range(100), number))
    assert column.size_bytes() < 5_000_000 and column.get(0) == dict.fromkeys(range(100), 2999)
