"""Inputs of queries: a vector that was sent as a JSON array is what its text says."""

from __future__ import annotations

import math

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from paperwasp.container.search.inputs import InputTypes
from paperwasp.container.search.request import flatten
from paperwasp.container.search.values import SentArray
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import IllegalQuery
from paperwasp.schema.model import Input

_NAME = "input.query(v)"
_ITEM = st.floats(allow_nan=False, allow_infinity=False) | st.integers(-300, 300) | st.sampled_from([2**63, -(2**64)])
_ODD = st.sampled_from([True, None, "1.5", [2], {"a": 1}, math.nan, math.inf, 10**400])
_ARRAYS = st.lists(_ITEM, min_size=2, max_size=2) | st.lists(_ITEM, max_size=5) | st.lists(_ITEM | _ODD, max_size=3)
_TYPES = (
    "tensor<float>(x[2])",
    "tensor(x[2])",
    "tensor<bfloat16>(x[2])",
    "tensor<int8>(x[2])",
    "tensor(x[2],y[1])",
    "tensor(m{},x[2])",
    "tensor(m{})",
    "tensor(x[])",
    "tensor()",
)


def _value(text: str, type_: TensorType) -> object:
    """The bytes of the tensor, the number, or the error."""
    try:
        value = InputTypes({"v": Input(type_)}, {}).values({"v": text}, {}, "en")["v"]
    except IllegalQuery as error:
        return str(error)
    return (value.labels, value.cells.dtype, value.cells.tobytes()) if isinstance(value, Tensor) else value


@given(_ARRAYS, st.sampled_from(_TYPES))
@example([0, -0.0], "tensor<float>(x[2])")
@example([1e39, 1.0], "tensor<float>(x[2])")
@example([200, 1], "tensor<int8>(x[2])")
def test_an_array_is_read_as_its_text(array: list[object], type_name: str) -> None:
    type_ = TensorType.parse(type_name)
    try:
        ((name, sent),) = flatten({_NAME: array})
    except IllegalQuery:  # a number that JSON cannot have
        return
    assert name == _NAME and type(sent) is SentArray
    assert _value(sent, type_) == _value(str(sent), type_)


def test_only_arrays_of_inputs_are_kept_beside_their_texts_and_taken_once() -> None:
    texts = dict(flatten({_NAME: [1.5, 2], "input": {"query(w)": [3]}, "other": [4], "input.query(o)": {"a": 1}}))
    assert texts == {_NAME: "[1.5,2]", "input.query(w)": "[3]", "other": "[4]", "input.query(o)": '{"a":1}'}
    assert [type(text) for text in texts.values()] == [SentArray, SentArray, str, str]
    sent = texts[_NAME]
    assert isinstance(sent, SentArray)
    assert [sent.take(), sent.take()] == [[1.5, 2], []]


@pytest.mark.parametrize("declared", [{}, {"v": Input(None)}])
def test_what_is_no_tensor_keeps_no_array(declared: dict[str, Input]) -> None:
    ((_, sent),) = flatten({_NAME: [1.5, 2]})
    found = InputTypes(declared, {}).values({"v": sent}, {}, "en")
    assert found == {"v": "[1.5,2]"} and type(found["v"]) is str
    assert isinstance(sent, SentArray) and sent.take() == []
