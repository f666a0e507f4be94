"""Values of arguments from their texts: every form gives the same value, and what is none is told apart."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.application.model_evaluation.binding import tensor_in
from paperwasp.document.tensor.json_output import FORMS, tensor_json
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import TooLarge

FLOATS = st.floats(-1e6, 1e6, width=32)
OPEN = TensorType.parse("tensor<float>(d0[],d1[3])")


@given(st.lists(st.lists(FLOATS, min_size=3, max_size=3), min_size=1, max_size=4))
def test_forms_of_a_tensor_with_an_open_size(rows: list[list[float]]) -> None:
    value = parse_tensor(f"tensor<float>(d0[{len(rows)}],d1[3]):{rows}")
    flat = [cell for row in rows for cell in row]
    cells = [{"address": {"d0": str(n), "d1": str(m)}, "value": rows[n][m]} for n in range(len(rows)) for m in range(3)]
    literal = ",".join(f"{{d0:{n},d1:{m}}}:{rows[n][m]!r}" for n in range(len(rows)) for m in range(3))
    for text in (
        str(rows),
        str(flat),
        str(value),
        f"tensor(d0[],d1[3]):{rows}",
        f"tensor<float>(d0[],d1[]):{{{literal}}}",
        f"{{{literal}}}",
        orjson.dumps({"cells": cells}).decode(),
        orjson.dumps({"values": flat}).decode(),
        orjson.dumps({"type": "tensor<float>(d0[],d1[3])", "values": rows}).decode(),
    ):
        assert tensor_in(text, OPEN) == value, text


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "literal",
    [
        "tensor<float>(x[3]):[1,2.5,-3]",
        "tensor(x{}):{a:1,b:2}",
        "tensor<int8>(x{},y[2]):{a:[1,2],b:[3,4]}",
        "tensor(x{},y{}):{{x:a,y:b}:1}",
        "tensor():{{}:5}",
    ],
)
def test_what_is_answered_can_be_sent(literal: str, form: str) -> None:
    value = parse_tensor(literal)
    text = orjson.dumps(tensor_json(value, form)).decode()
    assert tensor_in(text, value.type) == value


@pytest.mark.parametrize(
    ("text", "type_"),
    [
        ("red", "tensor(x[2])"),
        ("", "tensor(x[2])"),
        ("[1,2,3]", "tensor(x[2])"),
        ("tensor(y[2]):[1,2]", "tensor(x[2])"),
        ("tensor(x{}):{a:1}", "tensor(x[2])"),
        ("tensor(x[3]):[1,2,3]", "tensor(x[2])"),
        ('{"type":"tensor(y[2])","values":[1,2]}', "tensor(x[2])"),
        ("tensor(x[99999999999]):[1]", "tensor(x[])"),
        ("tensor(x[2000000000]):[1]", "tensor(x[])"),
        ("tensor(x[2000000000],y[2000000000]):[1]", "tensor(x[],y[])"),
        ("{{x:2000000000}:1}", "tensor(x[])"),
        ("{}", "tensor(x[])"),
        ("[]", "tensor(x[])"),
        ("[[],[1]]", "tensor(x[],y[])"),
        ('{"cells":[{"address":7}]}', "tensor(x[])"),
        ('{"cells":[7]}', "tensor(x[])"),
        ('{"values":"zz"}', "tensor(x[])"),
        ("1_0", "tensor()"),
        ("tensor(x[1]):[2]", "tensor()"),
        ("[" * 5000, "tensor(x[])"),
    ],
)
def test_texts_that_are_no_value(text: str, type_: str) -> None:
    assert tensor_in(text, TensorType.parse(type_)) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("1", 1.0), (" -2.5e1 ", -25.0), ("tensor():{7}", 7.0), ("{{}:3}", 3.0), ("{3}", 3.0), ("[4]", 4.0)],
)
def test_numbers(text: str, number: float) -> None:
    value = tensor_in(text, TensorType.parse("tensor()"))
    assert value is not None
    assert value.cells.tolist() == [number]


@given(st.text(), st.sampled_from(["tensor()", "tensor(x[2])", "tensor(x[],y[2])", "tensor(x{},y[2])", "tensor(x{})"]))
def test_no_text_is_an_error(text: str, type_: str) -> None:
    value = tensor_in(text, TensorType.parse(type_))
    assert value is None or 0 not in value.type.shape


def test_a_text_that_is_too_long() -> None:
    with pytest.raises(TooLarge):
        tensor_in("[" + "1," * (3 << 20) + "1]", TensorType.parse("tensor(x[2])"))
