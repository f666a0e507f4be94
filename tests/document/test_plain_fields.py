"""Bodies that are read at once beside the general way of reading them, which says what is right.

Authority: `document.json_format` and `content.layouts.codec`, which have tests of their own.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.content.layouts.codec import DocumentCodec
from paperwasp.content.layouts.layout import FieldLayout, TypeLayout
from paperwasp.core._core import PlainChange
from paperwasp.document.json_format import DocumentReader, read_body
from paperwasp.document.plain_fields import PlainFields
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import (
    BOOL,
    BYTE,
    DOUBLE,
    FLOAT,
    INT,
    LONG,
    POSITION,
    RAW,
    STRING,
    URI,
    DocumentType,
    TensorFieldType,
    array_of,
    weighted_set_of,
)
from paperwasp.document.updates import Assign
from paperwasp.errors import PaperwaspError

VECTOR, BYTES = TensorType.parse("tensor<float>(x[3])"), TensorType.parse("tensor<int8>(x[2],y[1])")
DOUBLES, HALVES = TensorType.parse("tensor(x[2])"), TensorType.parse("tensor<bfloat16>(x[2])")
TYPES = {
    "text": STRING,
    "whole": INT,
    "small": BYTE,
    "long": LONG,
    "truth": BOOL,
    "double": DOUBLE,
    "single": FLOAT,
    "texts": array_of(STRING),
    "vector": TensorFieldType(str(VECTOR), VECTOR),
    "bytes": TensorFieldType(str(BYTES), BYTES),
    "doubles": TensorFieldType(str(DOUBLES), DOUBLES),
    "halves": TensorFieldType(str(HALVES), HALVES),
    "uri": URI,
    "raw": RAW,
    "place": POSITION,
    "weights": weighted_set_of(STRING),
    "numbers": array_of(INT),
}
TYPE = DocumentType("kind", TYPES)
PLAIN, READER = PlainFields(TYPE), DocumentReader(TYPE)
CODEC = DocumentCodec(TypeLayout("kind", 0, {name: FieldLayout(name, type_) for name, type_ in TYPES.items()}, ()))

TEXTS = st.text(st.sampled_from('ab"\\/\n\t\r\b\x00\x1f\x7fé€😀\ufffd\ufffe\ufdd0пܿ'), max_size=12)
NUMBERS = st.one_of(
    st.integers(-300, 300),
    st.integers(),
    st.sampled_from([2**31, -(2**31), 2**63 - 1, 2**63, -(2**63), 0, -0.0]),
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(width=32, allow_nan=False, allow_infinity=False),
)
VALUES = {
    "text": TEXTS,
    "whole": NUMBERS,
    "small": NUMBERS,
    "long": NUMBERS,
    "truth": st.booleans(),
    "double": NUMBERS,
    "single": NUMBERS,
    "texts": st.lists(TEXTS, max_size=3),
    "vector": st.one_of(
        st.lists(NUMBERS, min_size=2, max_size=4),
        st.fixed_dictionaries({"values": st.lists(NUMBERS, min_size=3, max_size=3)}),
    ),
    "bytes": st.lists(st.integers(-130, 130), min_size=2, max_size=2),
    "doubles": st.lists(NUMBERS, min_size=2, max_size=2),
    "halves": st.lists(NUMBERS, min_size=2, max_size=2),
}
ANYTHING = st.one_of(*VALUES.values(), st.none(), st.just({}), st.just({"assign": 1}))


@st.composite
def members(draw: st.DrawFn) -> dict[str, Any]:
    """Fields, most of them with a value of their own kind."""
    names = draw(st.lists(st.sampled_from([*TYPES, "other"]), unique=True, max_size=5))
    odd = draw(st.sampled_from([0, 0, 0, 1])) * 2 - 1
    chosen = {name: VALUES.get(name, ANYTHING) for name in names}
    if odd > 0 and names:
        chosen[names[0]] = ANYTHING
    return {name: draw(values) for name, values in chosen.items()}


@st.composite
def written(draw: st.DrawFn, content: Any) -> bytes:
    """A text of JSON, in one of the forms that clients write, and sometimes a broken one."""
    separators = draw(st.sampled_from([(",", ":"), (", ", ": "), (" ,\n", "\t: ")]))
    text = json.dumps(content, ensure_ascii=draw(st.booleans()), separators=separators).encode()
    text = draw(st.sampled_from([b"%s", b" %s\n", b"%s", b"%s}"])) % text
    if draw(st.integers(0, 5)) == 0 and text:
        place = draw(st.integers(0, len(text) - 1))
        text = (
            text[:place]
            + draw(st.sampled_from([b"", b'"', b"\\", b"\xff", b"0", b"-", b".", b"e5", b"}", b","]))
            + text[place:]
        )
    return text


@st.composite
def put_bodies(draw: st.DrawFn) -> bytes:
    content: dict[str, Any] = {"fields": draw(members())}
    content |= draw(st.sampled_from([{}, {}, {}, {}, {"condition": "true"}, {"create": True}]))
    return draw(written(content))


@st.composite
def update_bodies(draw: st.DrawFn) -> bytes:
    operation = draw(st.sampled_from(["assign", "assign", "assign", "increment", "assigned"]))
    return draw(written({"fields": {name: {operation: value} for name, value in draw(members()).items()}}))


def shown(value: object) -> object:
    """What tells values apart, also those that are equal."""
    if isinstance(value, Tensor):
        return value.type, value.cells.dtype, value.cells.shape, np.asarray(value.cells).tobytes()
    if isinstance(value, dict):
        return [(name, shown(each)) for name, each in value.items()]
    return [shown(each) for each in value] if isinstance(value, list) else (type(value), repr(value))


@given(put_bodies())
@settings(max_examples=400)
@example(b'{"fields":{"whole":1,"whole":2}}')
@example(b'{"fields":{"text":"a"},"fields":{}}')
@example(b'{"fields":{"text":"\\ud83d"}}')
@example(b'{"fields":{"whole":01}}')
@example(b'{"fields":{"double":1e400,"single":1e39}}')
@example(b'{"fields":{"double":1e-400}}')
@example(b'{"fields":{"vector":[1,2,-0]}}')
@example(b'{"fields":{"text":"\xed\xa0\x80"}}')
def test_puts_are_read_as_the_general_way_reads_them(body: bytes) -> None:
    found = PLAIN.read_put(body)
    if found is None:
        return
    general = read_body(body)
    values = READER.read_put(general.fields)
    assert (general.condition, general.create) == (None, None)
    assert shown(found.fields) == shown(values)
    if found.json:
        assert found.json == CODEC.encode(values)
        assert CODEC.is_plain(values)


@given(update_bodies())
@settings(max_examples=400)
def test_updates_are_read_as_the_general_way_reads_them(body: bytes) -> None:
    found = PLAIN.read_update(body)
    if found is None:
        return
    updates = READER.read_update(read_body(body).fields)
    assert [(each.field, each.path) for each in found.updates] == [(each.field, each.path) for each in updates]
    actions = [each.action for each in updates]
    assert all(type(action) is Assign for action in actions)
    values = {each.field: each.action.value for each in updates if isinstance(each.action, Assign)}
    assert shown({each.field: each.action.value for each in found.updates if isinstance(each.action, Assign)}) == shown(
        values
    )
    if found.json:
        assert found.json == CODEC.encode_assigned(values)


@given(
    st.dictionaries(
        st.sampled_from(["text", "whole", "long", "truth", "texts", "double", "vector", "bytes"]), st.none()
    ),
    st.data(),
)
def test_what_is_right_and_plain_is_read_at_once(names: dict[str, None], data: st.DataObject) -> None:
    texts = st.text(
        st.characters(blacklist_categories=["Cs", "Cc", "Cn"], blacklist_characters="\ufffd"), max_size=9
    ).filter(
        lambda text: not any(ord(each) & 0x3F in (0x3D, 0x3E, 0x3F) or 0xFDC0 <= ord(each) <= 0xFDFF for each in text)
    )
    right = {
        "text": texts,
        "whole": st.integers(-(2**31), 2**31 - 1),
        "long": st.integers(-(2**63), 2**63 - 1),
        "truth": st.booleans(),
        "texts": st.lists(texts, max_size=3),
        "double": st.floats(1e-300, 1e300),
        "vector": st.lists(st.integers(-100, 100), min_size=3, max_size=3),
        "bytes": st.lists(st.integers(-100, 100), min_size=2, max_size=2),
    }
    fields = {name: data.draw(right[name]) for name in names}
    body = {"fields": fields}
    found = PLAIN.read_put(data.draw(st.sampled_from([json.dumps(body).encode(), orjson.dumps(body)])))
    assert found is not None
    assert bool(found.json) == names.keys().isdisjoint(["bytes"])


@pytest.mark.parametrize(
    "fields",
    [
        {"text": 1}, {"text": None}, {"text": "\x00"}, {"text": "\ufffe"}, {"whole": 2**31}, {"whole": 1.0},
        {"whole": "1"}, {"truth": 1}, {"double": "1"}, {"texts": ["a", 1]}, {"texts": "a"}, {"vector": [1, 2]},
        {"vector": [1, 2, "NaN"]}, {"bytes": [128, 0]}, {"uri": "a"}, {"numbers": [1]}, {"other": 1},
        {"place": {"x": 1, "y": 1}},
    ],
)  # fmt: skip
def test_all_else_goes_the_general_way(fields: dict[str, Any]) -> None:
    assert PLAIN.read_put(orjson.dumps({"fields": fields})) is None
    assert (
        PLAIN.read_update(orjson.dumps({"fields": {name: {"assign": value} for name, value in fields.items()}})) is None
    )


def test_bodies_that_other_threads_read_go_the_general_way() -> None:
    body = orjson.dumps({"fields": {"text": "a" * limits.JSON_PIECE_BYTES}})
    assert PLAIN.read_put(body) is None
    assert PLAIN.read_put(body.replace(b"aa", b"", 100)) is not None


def test_text_of_many_replacement_characters_goes_the_general_way() -> None:
    body = orjson.dumps({"fields": {"text": "\ufffd" * 9}})
    assert PLAIN.read_put(body) is None
    assert READER.read_put(read_body(body).fields) == {"text": "\ufffd" * 9}


def test_the_general_way_refuses_what_is_wrong() -> None:
    """The two ways together leave no wrong body unanswered."""
    for body in (b"", b"{", b"[]", b'{"fields":{"whole":"a"}}', b'{"fields":{"other":1}}'):
        assert PLAIN.read_put(body) is None
        with pytest.raises(PaperwaspError):
            READER.read_put(read_body(body).fields)


def test_bodies_that_come_together_are_read_as_each_alone_up_to_one_that_is_not_plain() -> None:
    plain, vector = b'{"fields":{"whole":1,"text":"a"}}', b'{"fields":{"vector":[1,2,3]}}'
    bad_names = ["", "a%41", "a+b", "\x7f", "é", "a" * limits.DOCUMENT_ID_BYTES]
    large = b" " * limits.JSON_PIECE_BYTES + plain
    others = [("x", vector), ("x", b"{"), ("x", large), *((each, plain) for each in bad_names)]
    for name, body in others:
        names, bodies = ["1", ' "a/b:c\\', name, "4"], [plain, plain, body, plain]
        found = PLAIN.read_changes("id:n:t::", names, bodies, False)
        alone = [PLAIN.read_change("id:n:t::", *both, False) for both in zip(names[:2], bodies[:2], strict=True)]
        assert [_parts(each) for each in found] == [_parts(each) for each in alone], name
    update = b'{"fields":{"whole":{"assign":1}}}'
    (one,) = PLAIN.read_changes("id:n:t::", ["1"], [update], True)
    assert one.is_update and one.fields == {"whole": 1}
    assert PLAIN.read_changes("id:n:t::", ["1"], [update], False) == []


def _parts(change: object) -> tuple[object, ...]:
    assert isinstance(change, PlainChange)
    return change.id, change.gid, change.body, change.is_update, change.fields
