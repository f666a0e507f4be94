"""The kernel that looks for equal names in an update, beside one that decodes the text."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.document.update_json import Members
from tests.oracles import repeated_names

_NAME = st.sampled_from(["fields", "f", "g", "add", "match", 'a"b', "{", "\\", ": "])
_SCALAR = st.none() | st.integers(0, 9) | _NAME
_VALUES: st.SearchStrategy[Any] = st.recursive(
    _SCALAR,
    lambda inner: st.lists(inner, max_size=3) | st.lists(st.tuples(_NAME, inner), max_size=4).map(Members),
    max_leaves=12,
)
_UPDATES = st.lists(st.tuples(st.sampled_from(["fields", "create", "f"]), _VALUES), max_size=3).map(Members)


def _text(value: Any, space: str) -> str:
    if isinstance(value, Members):
        inner = f"{space},".join(f"{space}{json.dumps(name)}{space}:{_text(each, space)}" for name, each in value)
        return f"{{{inner}{space}}}"
    if isinstance(value, list):
        return f"[{','.join(_text(each, space) for each in value)}]"
    return json.dumps(value)


@settings(max_examples=500)
@given(_UPDATES | _VALUES, st.sampled_from(["", " ", "\n\t"]))
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
