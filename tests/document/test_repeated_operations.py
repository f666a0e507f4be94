"""Updates with equal names: all their operations are done, in their order, and survive the log.

Authority: VespaJsonDocumentReader.java of Vespa's document/json reads an update member by member, and all count.
"""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from paperwasp import limits
from paperwasp.document.apply_updates import updated_fields
from paperwasp.document.json_format import read_body
from paperwasp.document.types import INT, STRING, DocumentType, array_of, weighted_set_of
from paperwasp.document.update_json import UpdateReader, write_updates
from paperwasp.errors import InvalidInput

FIELDS = {"n": INT, "words": array_of(STRING), "weights": weighted_set_of(STRING), "t": STRING}
TYPE = DocumentType("item", FIELDS)
READER = UpdateReader(TYPE)
BEFORE: dict[str, Any] = {"n": 7, "words": ["a", "b"], "weights": {"a": 1, "b": 1}, "t": "x"}


@pytest.mark.parametrize(
    ("fields", "changed"),
    [
        ('{"n":{"increment":1,"increment":2}}', {"n": 10}),
        ('{"n":{"increment":1},"t":{"assign":"y"},"n":{"multiply":2}}', {"n": 16, "t": "y"}),
        ('{"n":{"multiply":2},"n":{"increment":1},"n":{"multiply":3}}', {"n": 45}),
        (
            '{"weights":{"match":{"element":"a","increment":4},"match":{"element":"b","increment":8}}}',
            {"weights": {"a": 5, "b": 9}},
        ),
        ('{"words":{"add":["c"],"remove":["a"],"add":["a"]}}', {"words": ["b", "c", "a"]}),
        ('{"words":{"remove":[1.50],"add":[1.50],"add":["1.5"]}}', {"words": ["a", "b", "1.50", "1.5"]}),
        ('{"words[0]":{"assign":"z"},"words":{"add":["c"],"add":["d"]}}', {"words": ["z", "b", "c", "d"]}),
        ('{"t":{},"t":{"assign":"y"},"t":{}}', {"t": "y"}),
    ],
)
def test_all_are_done_in_their_order(fields: str, changed: dict[str, Any]) -> None:
    updates = READER.read(read_body(f'{{"fields":{fields}}}'.encode()).fields)
    assert updated_fields(BEFORE, updates, FIELDS, frozenset()) == {**BEFORE, **changed}
    logged = orjson.dumps(write_updates(updates, TYPE))
    assert READER.read(orjson.loads(logged)) == updates


def test_an_update_without_equal_names_is_logged_as_one_object() -> None:
    updates = READER.read(read_body(b'{"fields":{"n":{"increment":1,"multiply":2}}}').fields)
    assert write_updates(updates, TYPE) == {"n": {"increment": 1, "multiply": 2}}
    updates = READER.read(read_body(b'{"fields":{"n":{"increment":1,"increment":2}}}').fields)
    assert write_updates(updates, TYPE) == [{"n": {"increment": 1}}, {"n": {"increment": 2}}]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            '{"words[0]":{"assign":"y","assign":"z"}}',
            "'words[0]': The same place and operation are given twice",
        ),
        ('{"n":{"increment":1},"n":5}', "Error in 'n': Expected an object of update operations, got a number"),
        ('{"n":5,"n":{"increment":1}}', "Error in 'n': Expected an object of update operations, got a number"),
        ('{"n":{"nope":1,"nope":2}}', "Error in 'n': Operation 'nope' not implemented."),
        (
            '{"words":{"add":[' + '"x",' * limits.JSON_PIECE_BYTES + '"x"],"add":["y"]}}',
            "gives an operation of it",
        ),
        ('{"words":{"add":' + "[" * 1000 + "]" * 1000 + ',"add":["y"]}}', "nested so deep"),
    ],
)
def test_refuses(fields: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        READER.read(read_body(f'{{"fields":{fields}}}'.encode()).fields)
    assert message in raised.value.message


def test_undefined_fields_may_be_left_out() -> None:
    fields = read_body(b'{"fields":{"n":{"increment":1},"other":{"assign":1},"n":{"increment":2}}}').fields
    updates = READER.read(fields.only(["n"]))
    assert updated_fields(BEFORE, updates, FIELDS, frozenset()) == {**BEFORE, "n": 10}
