"""Strategies: data types with values of them, and updates of such values as JSON."""

from __future__ import annotations

import math
from typing import Any

from hypothesis import strategies as st

from paperwasp.document.converters import GeoPosition
from paperwasp.document.predicate import parse_predicate
from paperwasp.document.shown import render_of
from paperwasp.document.tensor.json_output import tensor_json
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, TensorBuilder
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    POSITION,
    PREDICATE,
    RAW,
    STRING,
    URI,
    ArrayType,
    DataType,
    MapType,
    NumericType,
    StructType,
    TensorFieldType,
    WeightedSetType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    weighted_set_of,
)

Typed = tuple[DataType, st.SearchStrategy[Any]]

TEXT = st.text(st.characters(codec="utf-8", exclude_categories=("Cc", "Cn", "Co")), max_size=8)
WORD = st.text("abcxyz019 _'\\é", min_size=1, max_size=4)
WHOLE: list[Typed] = [
    (INT, st.integers(-(2**31), 2**31 - 1)),
    (LONG, st.integers(-(2**63), 2**63 - 1)),
    (BYTE, st.integers(-128, 127)),
]
FLOATING: list[Typed] = [
    (FLOAT, st.floats(width=32, allow_nan=False)),
    (FLOAT16, st.floats(width=16, allow_nan=False)),
    (DOUBLE, st.floats(allow_nan=False)),
]
KEYS: list[Typed] = [(STRING, TEXT), *WHOLE, *FLOATING]
PREDICATES = st.recursive(
    st.builds(
        lambda key, values: f"{_quoted(key)} in [{', '.join(map(_quoted, values))}]", WORD, st.lists(WORD, min_size=1)
    )
    | st.builds(
        lambda key, low, size: f"{_quoted(key)} in [{low}..{low + size}]", WORD, st.integers(-99, 99), st.integers(0, 9)
    )
    | st.sampled_from(["true", "false", "a in [..3]", "b not in [1, 2]", "c in [..]"]),
    lambda inner: (
        st.builds(lambda a, word, b: f"({a} {word} {b})", inner, st.sampled_from(["and", "or"]), inner)
        | inner.map(lambda a: f"not ({a})")
    ),
    max_leaves=4,
)
TENSOR_TYPES = [
    "tensor<float>(x[2])", "tensor(x{})", "tensor<int8>(x{},y[2])", "tensor<bfloat16>(a{},b{},c[2],d[1])", "tensor()",
    "tensor(x[1],y[2])",
]  # fmt: skip


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def tensors(type_: TensorType) -> st.SearchStrategy[Tensor]:
    """Tensors of a type: cells here and there."""
    label = st.text('ab" {}é', min_size=1, max_size=2)
    labels = st.tuples(*(label for _ in type_.mapped))
    indexes = st.tuples(*(st.integers(0, (d.size or 1) - 1) for d in type_.indexed))
    # JSON has one NaN, without a sign.
    floats = st.floats(width=32).map(lambda value: math.nan if math.isnan(value) else value)
    numbers = st.integers(-128, 127) if type_.cell_type == "int8" else floats
    return st.lists(st.tuples(labels, indexes, numbers), max_size=3).map(lambda cells: _tensor(type_, cells))


def _tensor(type_: TensorType, cells: list[tuple[Any, Any, float]]) -> Tensor:
    builder = TensorBuilder(type_)
    for cell_labels, cell_indexes, number in cells:
        builder.cell(cell_labels, cell_indexes, number)
    return builder.build()


TENSORS: list[Typed] = [(tensor_field(t), tensors(t)) for t in map(TensorType.parse, TENSOR_TYPES)]
SINGLE: list[Typed] = [
    *KEYS,
    (BOOL, st.booleans()),
    (URI, TEXT),
    (RAW, st.binary(max_size=9)),
    (PREDICATE, PREDICATES.map(lambda text: str(parse_predicate(text)))),
    (POSITION, st.builds(GeoPosition, st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1))),
    (reference_to("artist"), st.just("") | TEXT.filter(bool).map(lambda name: f"id:ns:artist::{name}")),
    *TENSORS,
]


def values(typed: Typed) -> st.SearchStrategy[tuple[DataType, Any]]:
    data_type, strategy = typed
    return strategy.map(lambda value: (data_type, value))


def composites(inner: st.SearchStrategy[Typed]) -> st.SearchStrategy[Typed]:
    keys = st.sampled_from(KEYS)
    return st.one_of(
        inner.map(lambda item: (array_of(item[0]), st.lists(item[1], max_size=3))),
        st.tuples(keys, inner).map(
            lambda pair: (map_of(pair[0][0], pair[1][0]), st.dictionaries(pair[0][1], pair[1][1], max_size=3))
        ),
        st.lists(inner, min_size=1, max_size=3).map(_struct),
        st.tuples(keys, st.booleans(), st.booleans()).map(_weighted_set),
    )


def _struct(items: list[Typed]) -> Typed:
    fields = {f"f{number}": item[0] for number, item in enumerate(items)}
    optional = {f"f{number}": item[1] for number, item in enumerate(items)}
    return struct_of("s", fields), st.fixed_dictionaries({}, optional=optional)


def _weighted_set(choice: tuple[Typed, bool, bool]) -> Typed:
    (key, keys), create, remove = choice
    data_type = weighted_set_of(key, create_if_nonexistent=create, remove_if_zero=remove)
    return data_type, st.dictionaries(keys, st.integers(-(2**31), 2**31 - 1), max_size=3)


TYPES: st.SearchStrategy[Typed] = st.recursive(st.sampled_from(SINGLE), composites, max_leaves=4)


def shown(value: Any, data_type: DataType) -> Any:
    """A value as JSON has it."""
    render = render_of(data_type)
    return value if render is None else render(value)


def operands(data_type: NumericType) -> st.SearchStrategy[Any]:
    return st.integers(-5, 5) | st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)


@st.composite
def updates(draw: st.DrawFn, typed: Typed, name: str = "f", steps: int = 0) -> dict[str, Any]:
    """The JSON of an update of a field, or of a place in it: `{place: {operation: value}}`."""
    data_type, strategy = typed
    if steps < 3 and not isinstance(data_type, TensorFieldType) and draw(st.booleans()):
        found = draw(_inner(typed, name))
        if found is not None:
            return draw(updates(found[0], found[1], steps + 1))
    operations = {"assign": st.none() | strategy.map(lambda value: shown(value, data_type))}
    if isinstance(data_type, NumericType) and data_type != BOOL:
        operations |= dict.fromkeys(("increment", "decrement", "multiply", "divide"), operands(data_type))
    if isinstance(data_type, ArrayType | WeightedSetType):
        operations["add"] = strategy.map(lambda value: shown(value, data_type))
    if steps:
        operations["remove"] = st.just(0)
    elif isinstance(data_type, ArrayType | WeightedSetType):
        operations |= {"remove": operations["add"], "match": _matches(typed)}
    elif isinstance(data_type, TensorFieldType):
        operations |= _tensor_operations(data_type.tensor)
    chosen = draw(st.lists(st.sampled_from(sorted(operations)), min_size=1, max_size=3, unique=True))
    return {name: {operation: draw(operations[operation]) for operation in chosen}}


@st.composite
def _inner(draw: st.DrawFn, typed: Typed, name: str) -> tuple[Typed, str] | None:
    """A place one step further in, its type and a strategy of its values."""
    data_type, _ = typed
    keys = {str(kind): values for kind, values in KEYS}
    match data_type:
        case ArrayType():
            return _part(data_type.element), f"{name}[{draw(st.integers(0, 3) | st.just('$x'))}]"
        case MapType() | WeightedSetType():
            inner = data_type.value if isinstance(data_type, MapType) else INT
            text = shown(draw(keys[str(data_type.key)]), data_type.key)
            escaped = str(text).replace("\\", "\\\\").replace('"', '\\"')
            place = draw(st.sampled_from([f'{{"{escaped}"}}', ".value", "{$y}"]))
            return _part(inner), name + place
        case StructType():
            member, inner = draw(st.sampled_from(data_type.fields))
            return _part(inner), f"{name}.{member}"
    return None


def _part(data_type: DataType) -> Typed:
    """A part's type, with a strategy made from the type alone."""
    match data_type:
        case ArrayType():
            return data_type, st.lists(_part(data_type.element)[1], max_size=2)
        case MapType():
            return data_type, st.dictionaries(_part(data_type.key)[1], _part(data_type.value)[1], max_size=2)
        case WeightedSetType():
            return data_type, st.dictionaries(_part(data_type.key)[1], st.integers(-3, 3), max_size=2)
        case StructType():
            members = {name: _part(inner)[1] for name, inner in data_type.fields}
            return data_type, st.fixed_dictionaries({}, optional=members)
    return data_type, dict(SINGLE)[data_type]


def _matches(typed: Typed) -> st.SearchStrategy[Any]:
    data_type = typed[0]
    if isinstance(data_type, WeightedSetType):
        inner: Typed = (INT, st.integers(-9, 9))
        element = _part(data_type.key)[1].map(lambda key: shown(key, data_type.key))
    else:
        assert isinstance(data_type, ArrayType)
        inner, element = _part(data_type.element), st.integers(-1, 3)
    number = isinstance(inner[0], NumericType) and inner[0] != BOOL
    operation = st.sampled_from(["assign", "increment", "divide"] if number else ["assign"])
    return st.tuples(element, operation, inner[1]).map(
        lambda parts: {
            "element": parts[0],
            parts[1]: shown(parts[2], inner[0]) if parts[1] == "assign" else 3,
        }
    )


def _tensor_operations(type_: TensorType) -> dict[str, st.SearchStrategy[Any]]:
    cells = tensors(type_).map(lambda tensor: shown_cells(tensor))
    operations: dict[str, st.SearchStrategy[Any]] = {
        "modify": st.fixed_dictionaries(
            {"operation": st.sampled_from(["replace", "add", "multiply"]), "cells": cells},
            optional={"create": st.booleans()},
        )
    }
    if type_.mapped:
        name = type_.mapped[0].name
        addresses = st.lists(st.text("ab", min_size=1, max_size=1).map(lambda label: {name: label}), min_size=1)
        operations["remove"] = st.fixed_dictionaries({"addresses": addresses})
        operations["add"] = cells.filter(bool).map(lambda found: {"cells": found})
    return operations


def shown_cells(tensor: Tensor) -> list[Any]:
    """The cells of a tensor, each with its address."""
    found: list[Any] = tensor_json(tensor, "long-value")
    return found
