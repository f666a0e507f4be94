"""The parts of URIs. Authority: searchlib/src/vespa/searchlib/util/url.cpp and memoryindex/url_field_inverter.cpp"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.text.linguistics.uri import ALL, PARTS, uri_parts


@pytest.mark.parametrize(
    ("uri", "expected"),
    [
        ("http://www.vespa.ai/a/b.html?q=1#top", ["http", "www.vespa.ai", "", "/a/b.html", "q=1", "top"]),
        ("https://vespa.ai:443/", ["https", "vespa.ai", "", "/", "", ""]),
        ("HTTP://vespa.ai:8080", ["HTTP", "vespa.ai", "8080", "", "", ""]),
        ("www.vespa.ai:8080/a", ["", "www.vespa.ai", "8080", "/a", "", ""]),
        ("vespa.ai/a?b", ["", "", "", "vespa.ai/a", "b", ""]),
        ("mailto:info@vespa.ai", ["mailto", "", "", "", "", ""]),
        ("", [""] * 6),
    ],
)
def test_parts(uri: str, expected: list[str]) -> None:
    parts = uri_parts(uri)
    assert [parts[name] for name in PARTS] == expected


def test_all_is_everything_but_a_usual_port() -> None:
    assert uri_parts("http://a.b:80/c?d#e")[ALL].split() == ["http", "a.b", "/c", "d", "e"]
    assert uri_parts("mailto:info@vespa.ai")[ALL].split() == ["mailto", "info@vespa.ai"]


@given(st.text(alphabet="htpw.:/?#ab8é \x00") | st.text())
def test_any_text_has_parts(text: str) -> None:
    parts = uri_parts(text)
    letters = sorted(c for part in parts[ALL] for c in part if c.isalpha())
    assert letters == sorted(c for c in text if c.isalpha())
