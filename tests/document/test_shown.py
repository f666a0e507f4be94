"""What document/v1 hides of stored documents. Vespa: JsonSerializationHelper.java, document_field_retriever.cpp."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from paperwasp.document.shown import ShownFields
from paperwasp.document.types import (
    BOOL,
    INT,
    RAW,
    STRING,
    URI,
    array_of,
    map_of,
    reference_to,
    struct_of,
    weighted_set_of,
)

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
