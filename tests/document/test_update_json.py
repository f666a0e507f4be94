"""Updates as JSON: what each operation reads, and the words of every refusal.

Of values of every type: what was read is written and read as the same, and applying never fails.
"""

from __future__ import annotations

import copy
import re
from pathlib import Path
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.document.apply_updates import updated_fields
from paperwasp.document.converters import converter_of
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.types import (
    BOOL,
    DOUBLE,
    INT,
    POSITION,
    STRING,
    DataType,
    DocumentType,
    array_of,
    check_of,
    map_of,
    struct_of,
    tensor_field,
    type_from_description,
    weighted_set_of,
)
from paperwasp.document.update_json import UpdateReader, write_updates
from paperwasp.document.updates import (
    Add,
    Assign,
    Calculate,
    Each,
    FieldUpdate,
    Index,
    Key,
    Match,
    Member,
    ModifyCells,
    RemoveCells,
    Take,
)
from paperwasp.errors import InvalidInput
from tests.document.typed_values import TYPES, Typed, shown, updates

PERSON = struct_of("person", {"name": STRING, "phones": array_of(STRING)})
FOLDER = type_from_description({"struct": "folder", "fields": [["name", "string"], ["sub", {"inner": "folder"}]]})
TYPE = DocumentType(
    "music",
    {
        "year": INT,
        "title": STRING,
        "live": BOOL,
        "rating": DOUBLE,
        "scores": array_of(INT),
        "words": weighted_set_of(STRING),
        "ids": weighted_set_of(INT),
        "people": map_of(INT, PERSON),
        "boss": PERSON,
        "staff": array_of(PERSON),
        "where": POSITION,
        "folder": FOLDER,
        "sparse": tensor_field(TensorType.parse("tensor(x{},y{})")),
        "dense": tensor_field(TensorType.parse("tensor(x[2])")),
        "mixed": tensor_field(TensorType.parse("tensor<int8>(x{},y[2])")),
    },
)
READER = UpdateReader(TYPE)

READ: list[tuple[dict[str, Any], list[FieldUpdate]]] = [
    ({"year": {"assign": "7"}}, [FieldUpdate("year", Assign(7))]),
    ({"year": {"assign": None}}, [FieldUpdate("year", Assign(None))]),
    ({"year": {"increment": "2.5"}}, [FieldUpdate("year", Calculate("increment", 2.5))]),
    ({"year": {"divide": 2**63}}, [FieldUpdate("year", Calculate("divide", 2**63))]),
    (
        {"scores": {"add": [1, "2"], "remove": [3]}},
        [FieldUpdate("scores", Add([1, 2])), FieldUpdate("scores", Take((3,)))],
    ),
    ({"ids": {"remove": {"12": 0}}}, [FieldUpdate("ids", Take((12,)))]),
    ({"ids": {"match": {"element": "12", "assign": 3}}}, [FieldUpdate("ids", Assign(3), (Match(12),))]),
    ({"scores": {"match": {"element": "1", "assign": 3}}}, [FieldUpdate("scores", Assign(3), (Match(1),))]),
    ({"scores[2]": {"Increment": 3}}, [FieldUpdate("scores", Calculate("increment", 3), (Index(2),))]),
    ({"scores[$i]": {"remove": 0}}, [FieldUpdate("scores", Take(), (Each("i"),))]),
    ({"words{ two words}": {"assign": 3}}, [FieldUpdate("words", Assign(3), (Key("two words"),))]),
    ({r'words{"a\"}\\b"}': {"assign": 3}}, [FieldUpdate("words", Assign(3), (Key('a"}\\b'),))]),
    ({"words.value": {"increment": 3}}, [FieldUpdate("words", Calculate("increment", 3), (Each(),))]),
    (
        {"people{7}.phones[0]": {"assign": "x"}},
        [FieldUpdate("people", Assign("x"), (Key(7), Member("phones"), Index(0)))],
    ),
    ({"people{7}": {"assign": {"name": "x"}}}, [FieldUpdate("people", Assign({"name": "x"}), (Key(7),))]),
    ({"staff.name": {"remove": None}}, [FieldUpdate("staff", Take(), (Each(), Member("name")))]),
    ({"boss.phones": {"add": ["x"]}}, [FieldUpdate("boss", Add(["x"]), (Member("phones"),))]),
    ({"where.y": {"assign": 5}}, [FieldUpdate("where", Assign(5), (Member("y"),))]),
    (
        {
            "mixed": {
                "modify": {
                    "operation": "multiply",
                    "create": True,
                    "blocks": [{"address": {"x": "a"}, "values": "0102"}],
                }
            }
        },
        [FieldUpdate("mixed", ModifyCells("multiply", ((("a",), (0,), 1.0), (("a",), (1,), 2.0)), 1.0))],
    ),
    (
        {"mixed": {"modify": {"operation": "add", "cells": [{"address": {"x": "a", "y": "1"}, "value": 2.9}]}}},
        [FieldUpdate("mixed", ModifyCells("add", ((("a",), (1,), 2.0),)))],
    ),
    (
        {"dense": {"modify": {"operation": "add", "cells": {"1": 2}}}},
        [FieldUpdate("dense", ModifyCells("add", (((), (1,), 2.0),)))],
    ),
    (
        {"sparse": {"remove": {"addresses": [{"y": "a", "x": 1}, {"x": "1", "y": "a"}]}}},
        [FieldUpdate("sparse", RemoveCells(((("x", "1"), ("y", "a")),)))],
    ),
]

SCRIPT = Path(__file__).parent / "scripts" / "updates_refused.txt"
REFUSED = [
    tuple(block.strip().split("\n---\n"))
    for block in SCRIPT.read_text().split("\n\n")
    if block.strip() and not block.startswith("#")
]


@pytest.mark.parametrize(("body", "expected"), READ, ids=lambda item: str(item)[:60])
def test_reads_and_writes(body: dict[str, Any], expected: list[FieldUpdate]) -> None:
    found = READER.read(body)
    assert list(found) == expected
    written = orjson.loads(orjson.dumps(write_updates(found, TYPE), option=orjson.OPT_SERIALIZE_NUMPY))
    assert READER.read(written) == found


@pytest.mark.parametrize(("body", "message"), REFUSED, ids=[body[:60] for body, _ in REFUSED])
def test_refuses(body: str, message: str) -> None:
    with pytest.raises(InvalidInput) as raised:
        READER.read(orjson.loads(body), "id:1")
    assert message in raised.value.message


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("folder" + ".sub" * (limits.FIELD_PATH_STEPS + 1), "A field path has at most"),
        ("folder" + ".sub" * limits.FIELD_PATH_STEPS + ".", "A field path has at most"),
        ("words{" * 100_000, "Key '"),
        ('words{"' + "\\\\" * 100_000, "is incomplete"),
        ("words{" + " " * 100_000, "Key '"),
        ('words{"a"' + " " * 100_000, "is incomplete"),
        ("scores[$" + "x" * 100_000, "Array subscript must be closed"),
        ("scores" + "[0]" * 100_000, "has no elements"),
    ],
)
def test_long_paths(path: str, message: str) -> None:
    with pytest.raises(InvalidInput, match=re.escape(message)):
        READER.read({path: {"assign": {}}})


def test_paths_come_after_whole_fields() -> None:
    found = READER.read({"scores[0]": {"assign": 1}, "scores": {"assign": [5]}, "scores[1]": {"assign": 2}})
    assert [update.path for update in found] == [(), (Index(0),), (Index(1),)]


def test_an_update_names_so_many_places() -> None:
    with pytest.raises(InvalidInput, match="at most 10000 operations at places within fields"):
        READER.read({f"scores[{place}]": {"assign": 1} for place in range(limits.UPDATE_PLACES + 1)})
    with pytest.raises(InvalidInput, match="at most 100 operations on each element"):
        READER.read({f"staff[${'x' * size}].name": {"assign": "a"} for size in range(1, limits.UPDATE_WALKS + 2)})


def test_the_text_of_a_path_is_canonical() -> None:
    found = READER.read(
        {"people{ 7}.phones[$x]": {"assign": "a"}, "words{a}": {"assign": 1}, "staff.name": {"remove": 0}}
    )
    assert list(write_updates(found, TYPE)) == ['people{"7"}.phones[$x]', 'words{"a"}', "staff.name"]


def test_values_in_structs_that_hold_themselves_have_one_depth_wherever_they_are_put() -> None:
    value: Any = {"name": "x"}
    for _ in range(limits.VALUE_DEPTH - 12):
        value = {"sub": value}
    place = "folder" + ".sub" * 10
    assert READER.read({place: {"assign": value}})
    with pytest.raises(InvalidInput, match="nested deeper than"):
        READER.read({place: {"assign": {"sub": {"sub": value}}}})


def test_match_within_match_has_an_end() -> None:
    value: Any = {"element": 0, "assign": 1}
    for _ in range(1000):
        value = {"element": 0, "match": value}
    nested: Any = INT
    for _ in range(60):
        nested = array_of(nested)
    with pytest.raises(InvalidInput, match="match is nested deeper than"):
        UpdateReader(DocumentType("deep", {"f": nested})).read({"f": {"match": value}})


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
