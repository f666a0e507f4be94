"""Tensors as JSON: every form of format.tensors, and back."""

from __future__ import annotations

import math

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.tensor.json_format import tensor_of
from paperwasp.document.tensor.json_output import FORMS, result_json, shown_json, stored_json, tensor_json
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES, Tensor, as_cells
from paperwasp.errors import LanguageError


@pytest.mark.parametrize(
    ("literal", "form", "expected"),
    [
        ("tensor<float>(x[3]):[1,2,3]", "short", '{"type":"tensor<float>(x[3])","values":[1.0,2.0,3.0]}'),
        ("tensor(x[2],y[2]):[[1,2],[3,4]]", "short-value", "[[1.0,2.0],[3.0,4.0]]"),
        ("tensor(x{}):{a:1}", "short", '{"type":"tensor(x{})","cells":{"a":1.0}}'),
        ("tensor<int8>(x{},y[2]):{a:[1,2]}", "short", '{"type":"tensor<int8>(x{},y[2])","blocks":{"a":[1,2]}}'),
        ("tensor(x{},y{}):{{x:a,y:b}:1}", "short-value", '[{"address":{"x":"a","y":"b"},"value":1.0}]'),
        (
            "tensor(a[2],x{},y{}):{{x:p,y:q,a:0}:1,{x:p,y:q,a:1}:2}",
            "short",
            '{"type":"tensor(a[2],x{},y{})","blocks":[{"address":{"x":"p","y":"q"},"values":[1.0,2.0]}]}',
        ),
        ("tensor():{{}:7}", "short", '{"type":"tensor()","values":[7.0]}'),
        ("tensor():{{}:7}", "long-value", '[{"address":{},"value":7.0}]'),
        ("tensor<int8>(x[6]):[-1,0,17,-128,34,-2]", "hex-value", '"FF00118022FE"'),
        ("tensor<bfloat16>(x[2]):[1,-2]", "hex", '{"type":"tensor<bfloat16>(x[2])","values":"3F80C000"}'),
        (
            "tensor(a[2],x{}):{p:[1,2]}",
            "long-value",
            '[{"address":{"a":"0","x":"p"},"value":1.0},{"address":{"a":"1","x":"p"},"value":2.0}]',
        ),
    ],
)
def test_forms(literal: str, form: str, expected: str) -> None:
    assert orjson.dumps(tensor_json(parse_tensor(literal), form)).decode() == expected


LITERALS = [
    "tensor<float>(x[3]):[1,2.5,-3]",
    "tensor(x{}):{a:1,b:2}",
    "tensor<bfloat16>(x{},y[2]):{a:[1,2],b:[3,4]}",
    "tensor(x{},y{}):{{x:a,y:b}:1}",
    "tensor(a[2],x{},y{}):{{x:p,y:q,a:0}:1,{x:p,y:q,a:1}:2}",
    "tensor(x[2],y[2]):[[1,2],[3,4]]",
    "tensor<int8>(x[2]):[1,-1]",
]


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("literal", LITERALS)
def test_what_is_written_is_read_as_the_same(literal: str, form: str) -> None:
    tensor = parse_tensor(literal)
    assert tensor_of(orjson.loads(orjson.dumps(tensor_json(tensor, form))), tensor.type) == tensor


def test_numbers_that_are_not_finite() -> None:
    type_ = TensorType.parse("tensor(x[3])")
    tensor = tensor_of({"values": [None, "Infinity", "-Infinity"]}, type_)
    assert tensor_json(tensor, "short-value") == [None, "Infinity", "-Infinity"]
    assert math.isnan(tensor.cell((), 0) or 0.0)
    assert tensor_of(tensor_json(tensor), type_) == tensor


VECTOR, MATRIX, BLOCKS = "tensor<float>(x[4])", "tensor(x[2],y[2])", "tensor(x{},y[2])"
LENIENT = [
    (VECTOR, {"values": ["37.61", "-122.38", " 1e2 ", "2f"]}, [37.61, -122.38, 100, 2]),
    (VECTOR, {"x": [1, 2, 3, 4]}, [1, 2, 3, 4]),
    (VECTOR, {"a": [1, 2], "b": [3], "c": 4}, [1, 2, 3, 4]),
    (VECTOR, [[1], [2], [3], [4]], [1, 2, 3, 4]),
    (VECTOR, [[1, 2, 3, 4]], [1, 2, 3, 4]),
    (VECTOR, {"values": [[[1], 2], [3, 4]]}, [1, 2, 3, 4]),
    (VECTOR, {"type": "tensor(z[9])", "values": [1, 2, 3, 4]}, [1, 2, 3, 4]),
    (VECTOR, [1, 2], [1, 2, 0, 0]),
    (VECTOR, {"values": "3F80000040000000"}, [1, 2, 0, 0]),
    (VECTOR, ["-Inf", "NAN", "+infinity", None], [-math.inf, math.nan, math.inf, math.nan]),
    (MATRIX, {"values": [1, [2, 3, 4]]}, [[1, 2], [3, 4]]),
    (BLOCKS, {"a": [["1"], 2]}, [[1, 2]]),
    (BLOCKS, {"values": [1, 2]}, [[1, 2]]),
    ("tensor(x{})", {"a": "1.5"}, [1.5]),
    ("tensor(x{})", [{"address": {"x": 1}, "value": "-2"}], [-2]),
]
"""As in Vespa's TensorReader.java, and IndexedTensor.java for values that are missing."""


@pytest.mark.parametrize(("type_", "value", "cells"), LENIENT)
def test_what_is_read_in_documents_only(type_: str, value: object, cells: list[object]) -> None:
    parsed = TensorType.parse(type_)
    found = tensor_of(value, parsed, is_lenient=True)
    expected = np.array(cells).reshape(found.cells.shape).astype(found.cells.dtype)
    np.testing.assert_array_equal(found.cells, expected)


def test_deep_arrays_are_read_without_recursion() -> None:
    value: object = 7
    for _ in range(100_000):
        value = [value]
    assert tensor_of(value, TensorType.parse("tensor(x[1])"), is_lenient=True).cells.tolist() == [[7.0]]


RESULTS = [
    ("tensor<float>(x[2]):[1.1,0.1]", "short-value", b"[1.1,0.1]", b"[1.100000023841858,0.10000000149011612]"),
    ("tensor<bfloat16>(x[1]):[1.1]", "short-value", b"[1.09375]", b"[1.09375]"),
    ("tensor<float>(x{}):{a:0.1}", "short-value", b'{"a":0.1}', b'{"a":0.10000000149011612}'),
    ("tensor():{{}:0.1}", "short-value", b"[0.1]", b"[0.1]"),
    ("tensor<float>(x{},y[2]):{a:[0.1,2]}", "short-value", b'{"a":[0.1,2.0]}', b'{"a":[0.10000000149011612,2.0]}'),
    ("tensor<float>(x[1]):[0.1]", "long-value", b'[{"address":{"x":"0"},"value":0.1}]',
     b'[{"address":{"x":"0"},"value":0.10000000149011612}]'),
    ("tensor<float>(x[1]):[0.1]", "hex-value", b'"3DCCCCCD"', b'"3DCCCCCD"'),
    ("tensor<bfloat16>(x[1]):[1.5]", "hex-value", b'"3FC0"', b'"3FC0"'),
    ("tensor(x[2],y[2]):[[0.1,2],[3,4]]", "short-value", b"[[0.1,2.0],[3.0,4.0]]", b"[[0.1,2.0],[3.0,4.0]]"),
    ("tensor<int8>(x[2]):[1,-2]", "short", b'{"type":"tensor<int8>(x[2])","values":[1,-2]}',
     b'{"type":"tensor<int8>(x[2])","values":[1,-2]}'),
]  # fmt: skip
"""Literal, form, as JSON shows it, and what CBOR is made of: TensorDataSource.java."""


@pytest.mark.parametrize(("literal", "form", "shortest", "exact"), RESULTS)
def test_results(literal: str, form: str, shortest: bytes, exact: bytes) -> None:
    tensor = parse_tensor(literal)
    assert orjson.dumps(result_json(tensor, form), option=orjson.OPT_SERIALIZE_NUMPY) == shortest
    assert orjson.dumps(result_json(tensor, form, exact=True), option=orjson.OPT_SERIALIZE_NUMPY) == exact


def test_results_have_null_for_what_is_not_finite() -> None:
    for type_ in ("tensor(x[3])", "tensor<float>(x{})"):
        tensor = tensor_of({"0": "NaN", "1": "inf", "2": "-inf"}, TensorType.parse(type_.replace("[3]", "{}")))
        written = orjson.dumps(result_json(tensor, "short-value"), option=orjson.OPT_SERIALIZE_NUMPY)
        assert written == b'{"0":null,"1":null,"2":null}'


_CELLS = st.lists(st.floats() | st.integers(-(2**60), 2**60).map(float), min_size=6, max_size=6)


@given(_CELLS, st.sampled_from(list(DTYPES)), st.sampled_from(["x[6]", "x[2],y[3]", "m{},x[6]", "m{},n{},x[2],y[3]"]))
def test_what_is_stored_reads_back_and_is_what_documents_show(
    cells: list[float], cell_type: str, dimensions: str
) -> None:
    type_ = TensorType.parse(f"tensor<{cell_type}>({dimensions})")
    numbers = np.array([cells]).reshape(1, *type_.shape)
    if cell_type == "int8":
        numbers = np.nan_to_num(numbers).clip(-128, 127).round()
    tensor = Tensor(type_, (("a",) * len(type_.mapped),), as_cells(numbers, cell_type))
    written = orjson.dumps(shown_json(tensor), option=orjson.OPT_SERIALIZE_NUMPY)
    assert written == orjson.dumps(tensor_json(tensor))
    again = tensor_of(orjson.loads(orjson.dumps(stored_json(tensor), option=orjson.OPT_SERIALIZE_NUMPY)), type_)
    assert again.labels == tensor.labels and again.cells.tobytes() == tensor.cells.tobytes()


@pytest.mark.parametrize(
    ("literal", "stored"),
    [
        ("tensor<float>(x[3]):[1,-2,0.5]", {"values": "3F800000C00000003F000000"}),
        ("tensor<bfloat16>(x[2]):[1,-2]", {"values": "3F80C000"}),
        ("tensor(x[1]):[1]", {"values": "3FF0000000000000"}),
        ("tensor<float>(m{},x[1]):{a:[1],b:[2]}", {"blocks": {"a": "3F800000", "b": "40000000"}}),
        ("tensor<int8>(x[2]):[1,-2]", {"values": [1, -2]}),
        ("tensor<float>(m{}):{a:1}", {"cells": {"a": 1.0}}),
    ],
)
def test_dense_cells_are_stored_in_hex(literal: str, stored: dict[str, object]) -> None:
    tensor = parse_tensor(literal)
    expected = {"type": literal.partition(":")[0], **stored}
    assert orjson.loads(orjson.dumps(stored_json(tensor), option=orjson.OPT_SERIALIZE_NUMPY)) == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("3F8000004000000", "expected 2 value(s), found 1"),
        ("3F800000 4000000", "a string of values has hexadecimal digits only"),
        ("3F8000004000000g", "a string of values has hexadecimal digits only"),
        ("", "expected 2 value(s), found 0"),
    ],
)
def test_hex_that_is_not_of_all_cells_is_refused(text: str, message: str) -> None:
    with pytest.raises(LanguageError) as raised:
        tensor_of({"values": text}, TensorType.parse("tensor<float>(x[2])"))
    assert message in str(raised.value)


_ITEM = st.floats() | st.integers(-200, 200) | st.sampled_from([True, None, "1.5", [2], 2**63, 10**400])
_ARRAY = st.lists(st.floats() | st.integers(-200, 200), min_size=3, max_size=5) | st.lists(_ITEM, max_size=6)


@given(
    _ARRAY,
    st.sampled_from(["plain", "values", "typed", "other", "cells"]),
    st.sampled_from(["x[4]", "x[2],y[2]", "x[]", "m{},x[4]", ""]),
    st.sampled_from(list(DTYPES)),
    st.booleans(),
)
def test_arrays_are_read_at_once_as_item_by_item(
    array: list[object], wrap: str, dimensions: str, cell_type: str, is_lenient: bool
) -> None:
    type_ = TensorType.parse(f"tensor<{cell_type}>({dimensions})")

    def read() -> Tensor | tuple[type[Exception], str]:
        sent = {
            "plain": array,
            "values": {"values": array},
            "typed": {"type": "tensor(x[4])", "values": array},
            "other": {"x": array},
            "cells": {"values": array, "cells": []},
        }[wrap]
        try:
            return tensor_of(sent, type_, is_lenient=is_lenient)
        except (LanguageError, OverflowError) as error:
            return type(error), str(error)

    found = read()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("paperwasp.document.tensor.json_format._dense_numbers", lambda *_: None)
        expected = read()
    assert type(found) is type(expected)
    if isinstance(found, Tensor) and isinstance(expected, Tensor):
        assert (found.type, found.labels, found.cells.dtype) == (expected.type, expected.labels, expected.cells.dtype)
        assert found.cells.tobytes() == expected.cells.tobytes()
    else:
        assert found == expected


def test_an_array_has_no_more_cells_than_a_tensor(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "TENSOR_CELLS", 3)
    with pytest.raises(LanguageError, match="at most 3 cells"):
        tensor_of([1.0, 2.0, 3.0, 4.0], TensorType.parse("tensor(x[4])"))
