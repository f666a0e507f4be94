"""Updates of values of every type: what was read is written and read as the same, and applying never fails."""

from __future__ import annotations

import copy
from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.apply_updates import updated_fields
from paperwasp.document.converters import converter_of
from paperwasp.document.types import DataType, DocumentType, check_of
from paperwasp.document.update_json import UpdateReader, write_updates
from paperwasp.errors import InvalidInput
from tests.document.typed_values import TYPES, Typed, shown, updates


def cases(typed: Typed) -> st.SearchStrategy[tuple[DataType, Any, list[dict[str, Any]]]]:
    data_type, strategy = typed
    return st.tuples(st.just(data_type), st.none() | strategy, st.lists(updates(typed), min_size=1, max_size=3))


def stored_json(value: Any, data_type: DataType) -> bytes:
    return orjson.dumps(shown(value, data_type), option=orjson.OPT_SERIALIZE_NUMPY)


@given(TYPES.flatmap(cases), st.booleans())
def test_what_is_read_is_written_and_applied(
    case: tuple[DataType, Any, list[dict[str, Any]]], is_attribute: bool
) -> None:
    data_type, value, bodies = case
    types = {"f": data_type}
    reader = UpdateReader(DocumentType("test", types))
    attributes = frozenset(types) if is_attribute else frozenset[str]()
    fields = {} if value is None else {"f": value}
    before = copy.deepcopy(fields)
    for body in bodies:
        found = reader.read(orjson.loads(orjson.dumps(body, option=orjson.OPT_SERIALIZE_NUMPY)))
        written = orjson.dumps(write_updates(found, types), option=orjson.OPT_SERIALIZE_NUMPY)
        assert reader.read(orjson.loads(written)) == found
        result = updated_fields(fields, found, types, attributes)
        assert fields == before
        if "f" in result:
            assert check_of(data_type)(result["f"])
            stored = stored_json(result["f"], data_type)
            assert stored_json(converter_of(data_type)(orjson.loads(stored)), data_type) == stored
        fields, before = result, copy.deepcopy(result)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**64 - 1) | st.floats(allow_nan=False) | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
OPERATION = st.sampled_from(["assign", "add", "remove", "increment", "divide", "match", "modify", "Assign", "x"])
PATH = st.text('f.[]{}"\\$x01key value', max_size=12).map(lambda text: f"f{text}")
HOSTILE = st.fixed_dictionaries(
    {}, optional={"element": JSON, "cells": JSON, "addresses": JSON, "blocks": JSON, "operation": JSON, "assign": JSON}
)


@given(TYPES, st.dictionaries(PATH, JSON | st.dictionaries(OPERATION, JSON | HOSTILE, max_size=2), max_size=2))
def test_no_update_fails_otherwise_than_as_invalid_input(typed: Typed, body: dict[str, Any]) -> None:
    types = {"f": typed[0]}
    reader = UpdateReader(DocumentType("test", types))
    try:
        found = reader.read(body)
    except InvalidInput as error:
        assert error.message
        return
    written = orjson.dumps(write_updates(found, types), option=orjson.OPT_SERIALIZE_NUMPY)
    assert reader.read(orjson.loads(written)) == found
    updated_fields({}, found, types, frozenset())
