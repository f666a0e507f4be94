"""What each update makes of a value. Expected values follow Vespa's page on the JSON format and its source."""

from __future__ import annotations

import ctypes
import math
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document import numbers
from paperwasp.document.apply_updates import updated_fields
from paperwasp.document.converters import converter_of
from paperwasp.document.shown import render_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    BYTE,
    DOUBLE,
    FLOAT,
    FLOAT16,
    INT,
    LONG,
    POSITION,
    STRING,
    TAG,
    DataType,
    DocumentType,
    NumericType,
    array_of,
    map_of,
    struct_of,
    tensor_field,
    type_from_description,
    weighted_set_of,
)
from paperwasp.document.update_json import UpdateReader
from paperwasp.document.updates import Arithmetic

PERSON = struct_of("person", {"name": STRING, "age": INT, "tags": array_of(STRING)})
WORDS = weighted_set_of(STRING)
TAG_KEPT = weighted_set_of(STRING, create_if_nonexistent=True)
TENSOR = tensor_field(TensorType.parse("tensor(x{},y[2])"))
FOLDER = type_from_description({"struct": "folder", "fields": [["name", "string"], ["sub", {"inner": "folder"}]]})

Row = tuple[DataType, Any, dict[str, Any], Any]
INT_MAX = 2**31 - 1

WHOLE_FIELDS: list[Row] = [
    (STRING, "a", {"f": {"assign": "b"}}, "b"),
    (STRING, "a", {"f": {"assign": None}}, None),
    (STRING, "a", {"f": {"assign": ""}}, ""),
    (array_of(INT), [1], {"f": {"assign": []}}, []),
    (array_of(INT), None, {"f": {"add": [1, 2]}}, [1, 2]),
    (array_of(INT), [1], {"f": {"add": []}}, [1]),
    (array_of(INT), [3], {"f": {"add": [1], "remove": [3]}}, [1]),
    (array_of(STRING), ["hello", "1", "x", "hello"], {"f": {"remove": ["hello", 1]}}, ["x"]),
    (array_of(STRING), ["x"], {"f": {"remove": ["x"]}}, []),
    (array_of(PERSON), [{"name": "a"}, {}], {"f": {"remove": [{"name": "a"}]}}, [{}]),
    (WORDS, {"a": 1}, {"f": {"add": {"a": 5, "b": 0}}}, {"a": 5, "b": 0}),
    (TAG, {"a": 1}, {"f": {"add": {"a": 0, "b": 2}}}, {"b": 2}),
    (WORDS, {"a": 1, "b": 2}, {"f": {"remove": {"a": 0, "z": 0}}}, {"b": 2}),
    (WORDS, None, {"f": {"remove": {"a": 0}}}, None),
    (INT, 1, {"f": {"increment": 2, "multiply": 10}}, 30),
    (STRING, None, {"f": {}}, None),
]
MATCHES: list[Row] = [
    (WORDS, {"a": 1}, {"f": {"match": {"element": "a", "increment": 4}}}, {"a": 5}),
    (WORDS, {"a": 1}, {"f": {"match": {"increment": 4, "element": "a"}}}, {"a": 5}),
    (WORDS, {"a": 1}, {"f": {"match": {"element": "b", "increment": 4}}}, {"a": 1}),
    (WORDS, {"a": 1}, {"f": {"match": {"element": "a", "decrement": 1}}}, {"a": 0}),
    (TAG, None, {"f": {"match": {"element": "b", "increment": 4}}}, {"b": 4}),
    (TAG, {"a": 1}, {"f": {"match": {"element": "a", "decrement": 1}}}, {}),
    # The set is made before the weight goes: fieldupdate.cpp, mapvalueupdate.cpp
    (TAG, None, {"f": {"match": {"element": "b", "increment": 0}}}, {}),
    (TAG, {"a": 1}, {"f": {"match": {"element": "b", "increment": 0}}}, {"a": 1}),
    (TAG_KEPT, None, {"f": {"match": {"element": "a", "multiply": 2}}}, {"a": 0}),
    (WORDS, {"a": 1}, {"f": {"match": {"element": "a", "assign": None}}}, {}),
    (array_of(INT), [1, 2], {"f": {"match": {"element": 1, "multiply": 5}}}, [1, 10]),
    (array_of(INT), [1, 2], {"f": {"match": {"element": 2, "assign": 5}}}, [1, 2]),
    (array_of(INT), [1, 2], {"f": {"match": {"element": -1, "assign": 5}}}, [1, 2]),
    (array_of(INT), [1, 2], {"f": {"match": {"element": 0, "assign": None}}}, [2]),
    (array_of(WORDS), [{}, {"a": 1}], {"f": {"match": {"element": 1, "match": {"element": "a", "assign": 9}}}},
     [{}, {"a": 9}]),
]  # fmt: skip
PATHS: list[Row] = [
    (array_of(STRING), ["a", "b"], {"f[1]": {"assign": "c"}}, ["a", "c"]),
    (array_of(STRING), ["a", "b"], {"f[2]": {"assign": "c"}}, ["a", "b"]),
    (array_of(STRING), None, {"f[0]": {"assign": "c"}}, None),
    (array_of(STRING), ["a", "b"], {"f[0]": {"remove": 0}}, ["b"]),
    (array_of(STRING), ["a"], {"f[0]": {"remove": 0}}, []),
    (map_of(STRING, STRING), None, {"f{Strawberries}": {"assign": "Delicious!"}}, {"Strawberries": "Delicious!"}),
    (map_of(STRING, STRING), {"item 2": "x", "y": "z"}, {"f{item 2}": {"remove": 0}}, {"y": "z"}),
    (map_of(STRING, STRING), {"y": "z"}, {"f{item 2}": {"remove": 0}}, {"y": "z"}),
    (map_of(INT, PERSON), None, {"f{7}.name": {"assign": "John"}}, {"7": {"name": "John"}}),
    (map_of(INT, PERSON), {"7": {"name": "x"}}, {"f{7}.age": {"increment": 1}}, {"7": {"name": "x", "age": 1}}),
    (map_of(INT, PERSON), {"7": {"name": "x"}}, {"f{7}.name": {"remove": 0}}, {"7": {}}),
    (map_of(INT, PERSON), None, {"f{7}.tags": {"add": ["a"]}}, {"7": {"tags": ["a"]}}),
    (map_of(INT, PERSON), None, {"f{7}.tags[0]": {"assign": "a"}}, None),
    (PERSON, None, {"f.name": {"assign": "Bob"}, "f.age": {"assign": 3}}, {"name": "Bob", "age": 3}),
    (PERSON, {"age": 3}, {"f.age": {"ASSIGN": None}}, {}),
    (array_of(PERSON), [{"age": 1}, {}], {"f.age": {"increment": 2}}, [{"age": 3}, {"age": 2}]),
    (array_of(PERSON), [{"age": 1}, {"name": "x"}], {"f[$x].age": {"remove": 0}}, [{}, {"name": "x"}]),
    (array_of(array_of(INT)), [[1, 2], [3, 4]], {"f[$x][$x]": {"multiply": 10}}, [[10, 2], [3, 40]]),
    (array_of(array_of(INT)), [[1, 2], [3, 4]], {"f[$x][$y]": {"multiply": 10}}, [[10, 20], [30, 40]]),
    (array_of(array_of(INT)), [[1], [2], [3]], {"f[$x][$x]": {"remove": 0}}, [[], [2], [3]]),
    (map_of(STRING, INT), {"a": 1, "b": 2}, {"f.value": {"decrement": 1}}, {"a": 0, "b": 1}),
    (map_of(STRING, INT), {"a": 1, "b": 2}, {"f{$k}": {"remove": 0}}, {}),
    (map_of(STRING, map_of(STRING, INT)), {"a": {"a": 1, "b": 1}, "b": {"a": 1}}, {"f{$k}{$k}": {"assign": 5}},
     {"a": {"a": 5, "b": 1}, "b": {"a": 1}}),
    (WORDS, {"a": 1}, {'f{"item 1"}': {"assign": 0}}, {"a": 1, "item 1": 0}),
    (TAG, {"a": 1}, {"f{a}": {"decrement": 1}}, {"a": 0}),
    (WORDS, None, {"f{a}": {"increment": 4}}, {"a": 4}),
    (POSITION, {"x": 1, "y": 2}, {"f.x": {"increment": 4}}, {"lat": 0.000002, "lng": 0.000005}),
    (FOLDER, None, {"f.sub.sub.name": {"assign": "x"}}, {"sub": {"sub": {"name": "x"}}}),
]  # fmt: skip
NUMBERS: list[tuple[NumericType, Any, dict[str, Any], Any, Any]] = [
    # type, value, operations, of an attribute, of another field
    (INT, None, {"increment": 5}, None, 5),
    (INT, None, {"multiply": 5}, None, 0),
    (INT, 10, {"increment": 1.9}, 11, 11),
    (INT, -10, {"increment": 1.9}, -9, -8),
    (INT, 5, {"divide": 2}, 3, 2),
    (INT, -5, {"divide": 2}, -2, -2),
    (INT, 7, {"multiply": 0.5}, 4, 3),
    (INT, 7, {"divide": 0}, 7, 7),
    (INT, INT_MAX, {"increment": 2}, 1 - 2**31, 1 - 2**31),
    (INT, INT_MAX, {"increment": 1}, None, -(2**31)),
    (INT, 2**30, {"multiply": 8}, 0, 0),
    (BYTE, 127, {"increment": 2}, -127, -127),
    (BYTE, 100, {"multiply": 3}, 44, 44),
    (LONG, 2**53, {"increment": 1}, 2**53 + 1, 2**53 + 1),
    (LONG, 2**63 - 1, {"increment": 2}, 1 - 2**63, 2**63 - 1),
    (LONG, 2**62, {"multiply": 1e10}, 2**63 - 1, 2**63 - 1),
    (LONG, 5, {"increment": 1e300}, 4 - 2**63, 2**63 - 1),
    (FLOAT, 0.5, {"increment": 0.1}, 0.6, 0.6),
    (FLOAT, 3e38, {"multiply": 10}, "Infinity", "Infinity"),
    (FLOAT, 1.0, {"divide": 0}, "Infinity", "Infinity"),
    (FLOAT, -1.0, {"divide": 0}, "-Infinity", "-Infinity"),
    (DOUBLE, 0.0, {"divide": 0}, None, "NaN"),
    (DOUBLE, None, {"decrement": "1.5"}, None, -1.5),
    (FLOAT16, 1.0, {"increment": 0.1}, 1.0996094, 1.0996094),
    (INT, 1, {"assign": 7, "increment": 1}, 8, 8),
]
PATH_NUMBERS: list[Row] = [
    (array_of(INT), [INT_MAX], {"f[0]": {"increment": 1}}, [INT_MAX]),
    (array_of(INT), [-5], {"f[0]": {"divide": 2}}, [-2]),
    (array_of(INT), [7], {"f[0]": {"divide": 0}}, [7]),
    (array_of(DOUBLE), [7.0], {"f[0]": {"divide": 0}}, [7.0]),
    (array_of(INT), [7], {"f[0]": {"multiply": 1e300}}, [7]),
    (array_of(LONG), [2**62], {"f[0]": {"increment": 1}}, [2**62 + 1]),
    (array_of(FLOAT), [1.0], {"f[0]": {"multiply": 1e300}}, ["Infinity"]),
    (map_of(STRING, INT), None, {"f{a}": {"divide": 0}}, None),
]


def cell(value: float, **address: str) -> dict[str, Any]:
    return {"address": address, "value": value}


TENSORS: list[Row] = [
    (TENSOR, {"a": [1, 2]}, {"f": {"assign": {"b": [3, 4]}}}, {"b": [3.0, 4.0]}),
    (TENSOR, {"a": [1, 2]}, {"f": {"add": {"cells": [cell(3, x="b", y="0")]}}}, {"b": [3.0, 0.0], "a": [1.0, 2.0]}),
    (TENSOR, {"a": [1, 2]}, {"f": {"add": {"blocks": {"a": [5, 6]}}}}, {"a": [5.0, 6.0]}),
    (TENSOR, None, {"f": {"add": {"blocks": {"a": [5, 6]}}}}, {"a": [5.0, 6.0]}),
    (TENSOR, {"a": [1, 2], "b": [3, 4]}, {"f": {"remove": {"addresses": [{"x": "a"}, {"x": "z"}]}}}, {"b": [3.0, 4.0]}),
    (TENSOR, {"a": [1, 2]}, {"f": {"remove": {"addresses": [{"x": "a"}]}}}, {}),
    (TENSOR, None, {"f": {"remove": {"addresses": [{"x": "a"}]}}}, None),
    (TENSOR, {"a": [1, 2]}, {"f": {"modify": {"operation": "add", "cells": [cell(3, x="a", y="1")]}}},
     {"a": [1.0, 5.0]}),
    (TENSOR, {"a": [1, 2]}, {"f": {"modify": {"operation": "replace", "addresses": [cell(3, x="b", y="1")]}}},
     {"a": [1.0, 2.0]}),
    (TENSOR, {"a": [1, 2]},
     {"f": {"modify": {"operation": "replace", "create": True, "cells": [cell(3, x="b", y="1")]}}},
     {"a": [1.0, 2.0], "b": [0.0, 3.0]}),
    (TENSOR, None, {"f": {"modify": {"operation": "multiply", "create": True, "cells": [cell(3, x="b", y="1")]}}},
     {"b": [1.0, 3.0]}),
    (TENSOR, None, {"f": {"modify": {"operation": "multiply", "cells": [cell(3, x="b", y="1")]}}}, None),
    (TENSOR, {"a": [1, 2]}, {"f": {"modify": {"operation": "multiply", "blocks": {"a": [4, 5]}}}}, {"a": [4.0, 10.0]}),
]  # fmt: skip
OTHER_TENSORS: list[tuple[str, Any, dict[str, Any], Any]] = [
    ("tensor(x[3])", [1, 2, 3], {"operation": "replace", "cells": [cell(7, x="1"), cell(8, x="2")]}, [1.0, 7.0, 8.0]),
    ("tensor(x[3])", [1, 2, 3], {"operation": "add", "cells": {"0": 1}}, [2.0, 2.0, 3.0]),
    ("tensor(x[2])", None, {"operation": "multiply", "create": True, "cells": {"0": 4}}, [0.0, 0.0]),
    ("tensor(x{})", {"a": 1}, {"operation": "add", "create": True, "cells": {"b": 5, "a": 1}}, {"a": 2.0, "b": 5.0}),
    ("tensor(x{})", {"a": 2}, {"operation": "multiply", "create": True, "cells": {"c": 6, "a": 3}},
     {"a": 6.0, "c": 6.0}),
    ("tensor<int8>(x[2])", [100, -100], {"operation": "add", "cells": {"0": 100, "1": -100}}, [-56, 56]),
    ("tensor<bfloat16>(x[1])", [1], {"operation": "add", "cells": {"0": 0.00390625}}, [1.0]),
    ("tensor<float>(x[1])", [1], {"operation": "add", "cells": {"0": 0.1}}, [1.100000023841858]),
    ("tensor(x{},y{})", [cell(1, x="a", y="b")], {"operation": "add", "cells": [cell(1, x="a", y="b")]},
     [cell(2.0, x="a", y="b")]),
]  # fmt: skip


def updated(data_type: DataType, value: Any, body: dict[str, Any], *, is_attribute: bool = False) -> Any:
    """The JSON of the value after the update of JSON; tensors without their type."""
    types = {"f": data_type}
    before = {} if value is None else {"f": converter_of(data_type)(value)}
    found = UpdateReader(DocumentType("test", types)).read(body)
    after = updated_fields(before, found, types, frozenset(types) if is_attribute else frozenset())
    if "f" not in after:
        return None
    render = render_of(data_type)
    written = orjson.loads(
        orjson.dumps(render(after["f"]) if render else after["f"], option=orjson.OPT_SERIALIZE_NUMPY)
    )
    if "tensor" not in str(data_type):
        return written
    return next(written[key] for key in ("values", "cells", "blocks") if key in written)


@pytest.mark.parametrize(
    ("data_type", "value", "body", "expected"),
    [*WHOLE_FIELDS, *MATCHES, *PATHS, *PATH_NUMBERS, *TENSORS],
    ids=lambda item: str(item)[:60],
)
def test_updates(data_type: DataType, value: Any, body: dict[str, Any], expected: Any) -> None:
    assert updated(data_type, value, body) == expected


@pytest.mark.parametrize(("type_", "value", "modification", "expected"), OTHER_TENSORS)
def test_modified_tensors(type_: str, value: Any, modification: dict[str, Any], expected: Any) -> None:
    found = updated(tensor_field(TensorType.parse(type_)), value, {"f": {"modify": modification}})
    assert found == expected


@pytest.mark.parametrize(("data_type", "value", "operations", "of_attribute", "of_value"), NUMBERS)
def test_numbers(
    data_type: NumericType, value: Any, operations: dict[str, Any], of_attribute: Any, of_value: Any
) -> None:
    assert updated(data_type, value, {"f": operations}, is_attribute=True) == of_attribute
    assert updated(data_type, value, {"f": operations}) == of_value


def test_weights_of_attributes_take_whole_operands() -> None:
    body = {"f": {"match": {"element": "a", "multiply": 2.9}}}
    assert updated(WORDS, {"a": 10}, body, is_attribute=True) == {"a": 20}
    assert updated(WORDS, {"a": 10}, body) == {"a": 29}
    assert updated(WORDS, {"a": 10}, {"f": {"match": {"element": "a", "divide": 0.5}}}, is_attribute=True) == {"a": 10}
    assert updated(WORDS, {"a": -7}, {"f": {"match": {"element": "a", "divide": 2}}}, is_attribute=True) == {"a": -3}


def test_many_places_of_a_large_map_are_changed_at_once() -> None:
    types: dict[str, DataType] = {"f": map_of(STRING, INT)}
    before = {str(number): number for number in range(100_000)}
    body = {f"f{{{number}}}": {"increment": 1} for number in range(0, 20_000, 2)}
    found = UpdateReader(DocumentType("test", types)).read(body)
    after = updated_fields({"f": before}, found, types, frozenset())["f"]
    assert after == {key: n + (n < 20_000 and n % 2 == 0) for key, n in before.items()}
    assert before["0"] == 0


def test_several_fields_and_one_that_is_gone() -> None:
    types: dict[str, DataType] = {"a": INT, "b": STRING}
    found = UpdateReader(DocumentType("test", types)).read({"a": {"increment": 1}, "b": {"assign": "x"}})
    assert updated_fields({"a": 1, "c": 5}, found, types, frozenset(["a"])) == {"a": 2, "b": "x", "c": 5}
    assert updated_fields({"c": 5}, found, {"b": STRING}, frozenset()) == {"b": "x", "c": 5}


WIDTHS: dict[str, Any] = {"byte": ctypes.c_int8, "int": ctypes.c_int32, "long": ctypes.c_int64}


@given(
    st.sampled_from([BYTE, INT, LONG]).flatmap(lambda kind: st.tuples(st.just(kind), st.integers(kind.low, kind.high))),
    st.sampled_from(["increment", "decrement", "multiply"]),
    st.integers(-(2**20), 2**20),
)
def test_whole_numbers_keep_their_lowest_bits(typed: Any, operation: Arithmetic, operand: int) -> None:
    data_type, value = typed
    exact = {"increment": value + operand, "decrement": value - operand, "multiply": value * operand}[operation]
    low, high = -(2**63), 2**63 - 1
    moved = exact if operation != "multiply" else min(max(exact, low), high)
    expected = WIDTHS[str(data_type)](moved).value
    found = numbers.of_attribute(operation, value, operand, data_type)
    assert found == (None if expected == data_type.low else expected)
    of_value = numbers.of_value(operation, value, operand, data_type)
    assert of_value == WIDTHS[str(data_type)](min(max(exact, low), high)).value
    on_path = numbers.of_path(operation, value, operand, data_type)
    assert on_path == (exact if data_type.low <= exact <= data_type.high else value)


@given(
    st.sampled_from(["increment", "decrement", "multiply", "divide"]),
    st.sampled_from([BYTE, INT, LONG, FLOAT16, FLOAT, DOUBLE]),
    st.none() | st.integers(-128, 127),
    st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**63), 2**64),
)
def test_arithmetic_gives_values_of_the_type(
    operation: Arithmetic, data_type: NumericType, value: Any, operand: Any
) -> None:
    start = value if value is None or data_type.low is not None else float(value)
    for kind in (numbers.of_value, numbers.of_attribute, numbers.of_path, numbers.of_weight):
        found = kind(operation, start, operand, data_type)
        if found is None or kind is numbers.of_weight:
            continue
        if data_type.low is None:
            assert isinstance(found, float)
            assert math.isnan(found) or found == converter_of(data_type)(found)
        else:
            assert isinstance(found, int)
            assert data_type.low <= found <= (data_type.high or 0)
