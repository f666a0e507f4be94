"""JSON bodies of queries: single quotes and raw line breaks beside strict JSON."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.container.search.request import lenient_json


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (b"{'a': 'b'}", {"a": "b"}),
        (b"{'a': \"it's\"}", {"a": "it's"}),
        (b"{'say': 'a \"word\"'}", {"say": 'a "word"'}),
        (rb"{'a': 'it\'s \n \u0041 \" \\'}", {"a": "it's \n A \" \\"}),
        (b'{"a": "two\nlines"}', {"a": "two\nlines"}),
        (b"['', '\xc3\xa9', 1, null]", ["", "é", 1, None]),
    ],
)
def test_what_is_read(text: bytes, expected: object) -> None:
    assert lenient_json(text) == expected


@pytest.mark.parametrize("text", [b"", b"{'a", b"{'a': 'b}", b"{a: 1}", b"'\\", b"{'a': 1,}", b"\xff", b"[" * 100_000])
def test_what_is_not(text: bytes) -> None:
    with pytest.raises(ValueError, match=None):
        lenient_json(text)


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda values: st.lists(values) | st.dictionaries(st.text(), values),
    max_leaves=8,
)


@given(VALUES)
def test_strict_json_is_read_as_ever(value: object) -> None:
    assert lenient_json(json.dumps(value).encode()) == value


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_single_quotes_read_as_double_ones(text: str) -> None:
    single = "'" + json.dumps(text)[1:-1].replace('\\"', '"').replace("'", "\\'") + "'"
    assert lenient_json(single.encode()) == text


@given(st.binary())
def test_anything_is_read_or_refused(text: bytes) -> None:
    with suppress(ValueError):
        lenient_json(text)
