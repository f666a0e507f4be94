"""Stored documents as document/v1 shows them: what is hidden, and tensors in each form.

Authority: JsonSerializationHelper.java and document_field_retriever.cpp of Vespa.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.shown import ShownFields, TensorForms, render_tensors
from paperwasp.document.tensor.json_output import FORMS, stored_json, tensor_json
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import (
    BOOL,
    INT,
    RAW,
    STRING,
    URI,
    DataType,
    array_of,
    map_of,
    reference_to,
    struct_of,
    tensor_field,
    type_from_description,
    weighted_set_of,
)
from tests.document.typed_values import TENSORS

PAIR = struct_of("pair", {"text": STRING, "texts": array_of(STRING), "raw": RAW, "number": INT})
TYPES = {
    "text": STRING, "link": URI, "raw": RAW, "bytes": RAW, "number": INT, "flag": BOOL, "home": reference_to("city"),
    "texts": array_of(STRING), "lists": array_of(array_of(INT)), "weights": weighted_set_of(STRING),
    "map": map_of(STRING, STRING), "sets": map_of(STRING, array_of(INT)), "pair": PAIR, "pairs": array_of(PAIR),
    "named": map_of(STRING, PAIR), "outer": struct_of("outer", {"pair": PAIR, "map": map_of(STRING, STRING)}),
}  # fmt: skip
SHOWN = ShownFields(TYPES, {"number": -(2**31), "bytes": ""}, ["flag"])


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ({"text": "", "link": "", "texts": [], "weights": {}, "map": {}, "sets": {}, "pairs": []}, {}),
        ({"text": ":[]", "raw": "", "home": ""}, {"text": ":[]", "raw": "", "home": ""}),
        ({"bytes": "", "number": -(2**31)}, {}),
        ({"bytes": "AA==", "number": 0}, {"bytes": "AA==", "number": 0}),
        ({"texts": [""], "map": {"": ""}, "weights": {"": 0}}, {"texts": [""], "map": {"": ""}, "weights": {"": 0}}),
        ({"pair": {}}, {"pair": {}}),
        ({"pair": {"text": "", "texts": [], "raw": "", "number": -(2**31)}}, {"pair": {"raw": "", "number": -(2**31)}}),
        ({"pairs": [{"text": ""}, {}]}, {"pairs": [{}, {}]}),
        ({"named": {"a": {"texts": []}}}, {"named": {"a": {}}}),
        ({"outer": {"pair": {"text": ""}, "map": {}}}, {"outer": {"pair": {}}}),
        ({"lists": [[], [1]], "sets": {"a": []}}, {"lists": [[], [1]], "sets": {"a": []}}),
        ({"unknown": ""}, {"unknown": ""}),
    ],
)
def test_empty_values(stored: dict[str, Any], shown: dict[str, Any]) -> None:
    assert orjson.loads(SHOWN.render(orjson.dumps(stored), frozenset(TYPES) - {"flag"})) == shown


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        (b"{}", b'{"flag":false}'),
        (b'{"flag":true}', b'{"flag":true}'),
        (b'{"map":{"flag":""}}', b'{"map":{"flag":""},"flag":false}'),
        (b'{"text":""}', b'{"flag":false}'),
    ],
)
def test_an_unset_bool_is_false(stored: bytes, shown: bytes) -> None:
    assert SHOWN.render(stored, None) == SHOWN.render(stored, ["flag", "text", "map"]) == shown
    assert b"false" not in SHOWN.render(stored, ["text"])


VECTOR = tensor_field(TensorType.parse("tensor<int8>(x[2])"))
NODE = type_from_description(
    {"struct": "node", "fields": [["at", {"tensor": "tensor<int8>(x[2])"}], ["next", {"inner": "node"}]]}
)
TENSOR_TYPES: dict[str, DataType] = {
    "title": STRING,
    "at": VECTOR,
    "all": array_of(VECTOR),
    "by": map_of(STRING, struct_of("s", {"at": VECTOR, "name": STRING})),
    "node": NODE,
}
SHORT = {"type": "tensor<int8>(x[2])", "values": [1, -1]}


@pytest.mark.parametrize(
    ("form", "shown"),
    [
        ("short", SHORT),
        ("short-value", [1, -1]),
        ("long-value", [{"address": {"x": "0"}, "value": 1}, {"address": {"x": "1"}, "value": -1}]),
        ("hex", {"type": "tensor<int8>(x[2])", "values": "01FF"}),
        ("hex-value", "01FF"),
    ],
)
def test_forms_at_any_depth(form: str, shown: object) -> None:
    def document(tensor: object) -> dict[str, object]:
        return {
            "title": "x",
            "at": tensor,
            "all": [tensor, tensor],
            "by": {"a": {"at": tensor, "name": "y"}},
            "node": {"next": {"next": {"at": tensor}, "at": tensor}},
        }

    found = TensorForms(TENSOR_TYPES).render(orjson.dumps(document(SHORT)), form)
    assert orjson.loads(found) == document(shown)


def test_what_has_no_tensor_is_not_looked_at() -> None:
    assert TensorForms({"title": STRING}).render(b"not even JSON", "long") == b"not even JSON"
    assert render_tensors(b'{ "title":"x"}', TENSOR_TYPES, "long") == b'{ "title":"x"}'
    assert render_tensors(b"not even JSON", TENSOR_TYPES, "short") == b"not even JSON"


def test_what_was_stored_under_another_type_stays() -> None:
    data = orjson.dumps({"at": {"type": "tensor(y{})", "cells": {"a": 1.0}}})
    assert render_tensors(data, TENSOR_TYPES, "long") == data


@pytest.mark.parametrize(
    ("stored", "shown"),
    [
        ({"type": "tensor<float>(y[1])", "values": "3F800000"}, {"type": "tensor<float>(y[1])", "values": [1.0]}),
        (
            {"type": "tensor<float>(m{},y[1])", "blocks": {"a": "3F800000"}},
            {"type": "tensor<float>(m{},y[1])", "blocks": {"a": [1.0]}},
        ),
        (
            {
                "type": "tensor<float>(m{},n{},y[1])",
                "blocks": [{"address": {"m": "a", "n": "b"}, "values": "3F800000"}],
            },
            {"type": "tensor<float>(m{},n{},y[1])", "blocks": [{"address": {"m": "a", "n": "b"}, "values": [1.0]}]},
        ),
    ],
)
def test_hex_that_was_stored_under_another_type_is_shown_as_of_that(stored: object, shown: object) -> None:
    types: dict[str, DataType] = {"at": tensor_field(TensorType.parse("tensor<float>(x[2])"))}
    assert orjson.loads(render_tensors(orjson.dumps({"at": stored}), types, "short")) == {"at": shown}


@given(st.sampled_from(TENSORS).flatmap(lambda typed: st.tuples(st.just(typed[0]), typed[1])), st.sampled_from(FORMS))
def test_the_form_is_that_of_the_value(typed: tuple[DataType, Tensor], form: str) -> None:
    data_type, tensor = typed
    expected = orjson.dumps({"t": tensor_json(tensor, form)}, option=orjson.OPT_SERIALIZE_NUMPY)
    for kept in (stored_json(tensor), tensor_json(tensor)):  # as it is stored now, and as it was stored before
        stored = orjson.dumps({"t": kept}, option=orjson.OPT_SERIALIZE_NUMPY)
        assert render_tensors(stored, {"t": data_type}, form) == expected
