"""Documents as CBOR: whatever the type of a field, its value is read as from JSON."""

from __future__ import annotations

from typing import Any

import cbor2
import orjson
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.document.json_format import DocumentReader, read_body
from paperwasp.document.types import RAW, DataType, DocumentType, map_of
from paperwasp.http.cbor import to_cbor, to_json
from tests.document.typed_values import KEYS, TYPES, shown, values


def read(body: bytes, data_type: DataType) -> Any:
    fields = read_body(body).fields
    value = DocumentReader(DocumentType("music", {"f": data_type})).read_put(fields)["f"]
    return shown(value, data_type)


@given(TYPES.flatmap(values))
def test_a_field_of_any_type_is_read_as_from_json(typed: tuple[DataType, Any]) -> None:
    data_type, value = typed
    body = orjson.dumps({"fields": {"f": shown(value, data_type)}}, option=orjson.OPT_SERIALIZE_NUMPY)
    expected = read(body, data_type)
    assert read(to_json(to_cbor(body)), data_type) == expected
    assert read(to_json(cbor2.dumps(orjson.loads(body), indefinite_containers=True)), data_type) == expected


@given(st.binary())
def test_a_raw_field_may_be_bytes(value: bytes) -> None:
    expected = read(orjson.dumps({"fields": {"f": shown(value, RAW)}}), RAW)
    assert read(to_json(cbor2.dumps({"fields": {"f": value}})), RAW) == expected


@given(st.sampled_from(KEYS).flatmap(lambda key: st.dictionaries(key[1], st.binary()).map(lambda d: (key[0], d))))
def test_a_map_may_have_keys_of_its_own_type(entries: tuple[DataType, dict[Any, bytes]]) -> None:
    key_type, content = entries
    data_type = map_of(key_type, RAW)
    finite = {key: value for key, value in content.items() if key not in (float("inf"), float("-inf"))}
    expected = read(orjson.dumps({"fields": {"f": shown(finite, data_type)}}), data_type)
    assert read(to_json(cbor2.dumps({"fields": {"f": finite}})), data_type) == expected
