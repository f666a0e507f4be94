"""The kernels that look through JSON: steps, numbers of arrays, members of objects, and equal names.

Each is compared with a plain twin; large texts are read as orjson reads them.
"""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.document.update_json import Members
from paperwasp.errors import TooLarge
from paperwasp.text import large_json
from paperwasp.text.large_json import FINE, TEXT, TEXT_END, TOO_DEEP, TOO_MANY_VALUES, load_json
from tests.oracles import json_scan, list_numbers, members, repeated_names

_TEXT = st.text(alphabet='ab\\"{}[],:\n\u00e9\u4e16\U0001f600\x01', max_size=9)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(_TEXT, inner, max_size=5),
    max_leaves=30,
)
_MANY = 1000
_DEEP = 100


@given(_VALUES, st.integers(1, 40), st.booleans())
def test_the_steps_lead_to_the_value(value: Any, piece_bytes: int, indented: bool) -> None:
    text = orjson.dumps(value, option=orjson.OPT_INDENT_2 if indented else None)
    problem, _, values, steps = _core.scan_json(text, _MANY, _DEEP, piece_bytes)
    assert problem == FINE
    assert values == json_scan.count_values(text)
    assert (json_scan.build_from_steps(text, steps) if steps else orjson.loads(text)) == value


@given(_VALUES, st.integers(1, 40), st.booleans())
def test_strings_are_cut_between_characters(value: Any, piece_bytes: int, escaped: bool) -> None:
    """Also where they are written with escapes: of characters above U+FFFF, with pairs of them."""
    text = json.dumps(value, ensure_ascii=escaped).encode()
    assert _read(text, piece_bytes) == _whole(text) == ("value", value)
    _, _, _, steps = _core.scan_json(text, _MANY, _DEEP, piece_bytes)
    if steps:
        assert json_scan.build_from_steps(text, steps) == value
    for kind, start, end in zip(*[iter(steps)] * 3, strict=True):
        if kind in (TEXT, TEXT_END):
            assert end - start <= piece_bytes + 11
            json.loads(b'"%b"' % text[start:end])


@given(_VALUES)
def test_pieces_are_little_longer_than_asked_for(value: Any) -> None:
    """A run ends with the first element that makes it too long."""
    text = orjson.dumps([value] * 20)
    one = len(orjson.dumps(value))
    _, _, _, steps = _core.scan_json(text, 10**6, _DEEP, 16)
    assert all(end - start <= 16 + one + 1 for kind, start, end in zip(*[iter(steps)] * 3, strict=True))


@settings(max_examples=500)
@given(_VALUES, st.data())
def test_what_is_broken_is_refused_and_what_is_right_is_read(value: Any, data: st.DataObject) -> None:
    """One change anywhere: the pieces are read if orjson reads the whole, and give the same."""
    text = bytearray(json.dumps(value).encode() if data.draw(st.booleans()) else orjson.dumps(value))
    at = data.draw(st.integers(0, len(text) - 1))
    change = data.draw(
        st.sampled_from([b"", b",", b"]", b"[", b"{", b"}", b":", b'"', b" ", b"1", b"\\", b"\xff", b"\x00"])
    )
    text[at : at + data.draw(st.integers(0, 1))] = change
    broken = bytes(text)
    assert _read(broken, 4) == _whole(broken)


def _whole(text: bytes) -> Any:
    try:
        return ("value", orjson.loads(text))
    except orjson.JSONDecodeError:
        return ("broken",)


def _read(text: bytes, piece_bytes: int) -> Any:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "JSON_PIECE_BYTES", piece_bytes)
        try:
            return ("value", load_json(text))
        except orjson.JSONDecodeError as error:
            assert 1 <= error.lineno <= text.count(b"\n") + 1
            return ("broken",)


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        (b"[1,\n2,\n3,,4,5,6,7,8]", 3, 3),
        (b'{"a":1,\n"b":2,\n"c" 3,"d":4,"e":5}', 3, 5),
        (b"[1,2,3,4,5,6,7,8,9,]", 1, 20),
        (b"[[1,2,3,4,5,6] [7,8,9,10,11]]", 1, 16),
        (b"[[1,2,3,4,5,6],[7,8,9,10,11]", 1, 29),
        (b"[1,2,3,4,5,6,7] [8]", 1, 17),
        (b"[1,2,3,4,5,6,7}", 1, 15),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: bytes, line: int, column: int) -> None:
    with pytest.MonkeyPatch.context() as patch, pytest.raises(orjson.JSONDecodeError) as found:
        patch.setattr(limits, "JSON_PIECE_BYTES", 4)
        load_json(text)
    assert (found.value.lineno, found.value.colno) == (line, column)


def test_the_last_of_equal_names_counts() -> None:
    text = b'{"a":[1,2,3,4,5,6,7,8],"b":1,"a":[9,8,7,6,5,4,3,2],"b":2}'
    assert _read(text, 4) == ("value", {"a": [9, 8, 7, 6, 5, 4, 3, 2], "b": 2})


def test_too_many_values_are_refused_where_they_are_read() -> None:
    text = b"[" + b"1," * 100
    assert _core.scan_json(text, 50, _DEEP, 16)[:3] == (TOO_MANY_VALUES, 99, 51)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "JSON_PIECE_BYTES", 16)
        patch.setattr(limits, "JSON_VALUES", 50)
        with pytest.raises(TooLarge, match=r"more than 50 values and names \(JSON_VALUES"):
            load_json(text)


def test_too_many_levels_are_refused() -> None:
    assert _core.scan_json(b"[" * 200, _MANY, _DEEP, 16)[:2] == (TOO_DEEP, 100)
    with pytest.raises(orjson.JSONDecodeError, match="nested deeper than 1024 levels"):
        load_json(b'{"a":' * 20_000)


def test_large_texts_without_a_container_are_read() -> None:
    long = "x" * (limits.JSON_PIECE_BYTES + 1)
    assert load_json(orjson.dumps(long)) == long
    assert load_json(b" " * (limits.JSON_PIECE_BYTES + 1) + b"[1]") == [1]
    assert large_json.load_json(b"[1]") == [1]


@given(_VALUES, st.lists(_VALUES, max_size=9), st.integers(1, 40), st.sampled_from(["", "a", "b"]))
def test_the_elements_of_one_array_are_taken_in_their_order(
    value: Any, elements: list[Any], piece_bytes: int, name: str
) -> None:
    """And all that is around them is read as ever; arrays of that name elsewhere stay."""
    inner = {"a": [value], "b": [{"b": [value]}]}
    whole = [*elements, inner] if not name else {"x": inner, name: [*elements, inner], "y": [inner, "ab" * piece_bytes]}
    taken: list[Any] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "JSON_PIECE_BYTES", piece_bytes)
        rest = large_json.load_json_without(orjson.dumps(whole), name, lambda: taken.extend)
    assert taken == [*elements, inner]
    assert rest == ({**whole, name: []} if isinstance(whole, dict) else [])


@pytest.mark.parametrize("piece_bytes", [1, 8, 1000])
def test_of_two_arrays_of_one_name_the_last_is_taken(piece_bytes: int) -> None:
    text, taken = b'{"a":[1,2,3,"four",5],"b":[1],"a":[6,[7],8,"nine"]}', [0]

    def begin() -> large_json.Take:
        taken.clear()
        return taken.extend

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(limits, "JSON_PIECE_BYTES", piece_bytes)
        assert large_json.load_json_without(text, "a", begin) == {"a": [], "b": [1]}
    assert taken == [6, [7], 8, "nine"]


_NUMBERS: st.SearchStrategy[Any] = st.integers(-(2**70), 2**70) | st.floats() | st.sampled_from([-1, -1.0, 10**400])
_NUMBER_LISTS: st.SearchStrategy[Any] = st.lists(_NUMBERS, max_size=8) | st.lists(
    _NUMBERS | st.none() | st.booleans() | st.text(max_size=2) | st.just(np.float64(1.5)), max_size=8
)


@given(_NUMBER_LISTS, st.integers(-1, 1))
def test_numbers_are_converted_as_the_plain_twin_does(values: list[Any], more: int) -> None:
    count = max(0, len(values) + more)
    found, expected = _core.list_numbers(values, count), list_numbers.list_numbers(values, count)
    if expected is None or found is None:
        assert found is expected is None
    else:
        assert found.dtype == np.float64
        assert found.tobytes() == expected.tobytes()


def test_each_item_becomes_the_nearest_double() -> None:
    found = _core.list_numbers([1, -0.0, 2**53 + 1, float("inf"), -1], 5)
    assert found is not None
    assert found.tolist() == [1.0, 0.0, 9007199254740992.0, float("inf"), -1.0]
    assert np.signbit(found[1])


@pytest.mark.parametrize(
    "values", [[1.5], [1.5, True], [1.5, "2"], [1.5, None], [1.5, [2.0]], [1.5, 10**309], [1, 2, 3]]
)
def test_what_is_not_so_many_numbers_is_left_to_others(values: list[Any]) -> None:
    assert _core.list_numbers(values, 2) is None


_NAME = st.text(alphabet='ab\\"{}[],:\n\u00e9\u4e16', max_size=6)
_MEMBERS: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _NAME,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_NAME, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_NAME, _MEMBERS, max_size=6)


@given(st.lists(_OBJECTS, max_size=4), st.lists(_NAME, unique=True, max_size=6), st.integers(0, 63))
def test_members_are_cut_out_as_the_plain_twin_does(
    objects: list[dict[str, Any]], names: list[str], required: int
) -> None:
    wanted = [*names, *list(objects[0])[:3]] if objects else names
    keys = [orjson.dumps(name) + b":" for name in dict.fromkeys(wanted)]
    texts = [orjson.dumps(content) for content in objects]
    assert _core.pick_members(texts, keys, required) == members.pick_members(texts, keys, required)


@given(_OBJECTS, st.data())
def test_what_is_cut_short_is_no_object(content: dict[str, Any], data: st.DataObject) -> None:
    text = orjson.dumps(content)
    short = text[: data.draw(st.integers(0, len(text) - 1))]
    assert _core.pick_members([short], [b'"a":'], 0) == [None]


@pytest.mark.parametrize(
    "text", [b"", b"{", b"[]", b"null", b'{"a"}', b'{"a":}', b'{"a":1,}', b'{"a":1}}', b"{a:1}", b'{"a":1 "b":2}{']
)
def test_what_is_no_object_is_left_to_others(text: bytes) -> None:
    assert _core.pick_members([text], [b'"a":'], 0) == [None]


def test_too_many_names_are_refused() -> None:
    with pytest.raises(ValueError, match="at most 64"):
        _core.pick_members([b"{}"], [b'"%d":' % n for n in range(65)], 0)


_NAME = st.sampled_from(["fields", "f", "g", "add", "match", 'a"b', "{", "\\", ": "])
_SCALAR = st.none() | st.integers(0, 9) | _NAME
_NAMED: st.SearchStrategy[Any] = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(_NAME, inner), max_size=4).map(Members),
    max_leaves=12,
)
_UPDATES = st.lists(st.tuples(st.sampled_from(["fields", "create", "f"]), _NAMED), max_size=3).map(Members)


def _text(value: Any, space: str) -> str:
    if isinstance(value, Members):
        inner = f"{space},".join(f"{space}{json.dumps(name)}{space}:{_text(each, space)}" for name, each in value)
        return f"{{{inner}{space}}}"
    if isinstance(value, list):
        return f"[{','.join(_text(each, space) for each in value)}]"
    return json.dumps(value)


@settings(max_examples=500)
@given(_UPDATES | _NAMED, st.sampled_from(["", " ", "\n\t"]))
def test_finds_what_the_twin_finds(value: Any, space: str) -> None:
    text = _text(value, space).encode()
    assert _core.repeats_names(text) == repeated_names.repeats_names(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{"fields":{"f":{"add":[1]},"g":{"add":[1]}}}', False),
        ('{"fields":{"f":{"add":[1],"add":[2]}}}', True),
        ('{"fields":{"f":{"add":[1]},"f":{"remove":[2]}}}', True),
        ('{"fields":{"f":{"add":{"a":1,"a":2}}}}', False),
        ('{"x":{"f":{},"f":{}},"fields":{}}', False),
        ('{"fields":{"f":{"assign":"add","add":["assign"]}}}', False),
    ],
)
def test_by_hand(text: str, expected: bool) -> None:
    assert _core.repeats_names(text.encode()) is expected


@given(st.text(alphabet='{}[]",:\\ f', max_size=30).map(lambda text: '{"fields":{' + text))
def test_what_is_no_json_is_looked_at_without_harm(text: str) -> None:
    assert _core.repeats_names(text.encode()) in (True, False)
