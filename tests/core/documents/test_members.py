"""The kernel that cuts members out of JSON objects, beside its plain twin."""

from __future__ import annotations

from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.oracles import members

_TEXT = st.text(alphabet='ab\\"{}[],:\n\u00e9\u4e16', max_size=6)
_VALUES: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | _TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(_TEXT, inner, max_size=3),
    max_leaves=8,
)
_OBJECTS = st.dictionaries(_TEXT, _VALUES, max_size=6)


@given(st.lists(_OBJECTS, max_size=4), st.lists(_TEXT, unique=True, max_size=6), st.integers(0, 63))
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
