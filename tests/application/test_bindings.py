"""Bindings: which requests they fit, beside regular expressions, and which of several is the stricter."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.application.services_model import read_binding, strictest_first

GLOBS = st.text(alphabet="ab/*", max_size=8)
PATHS = st.text(alphabet="ab/", max_size=12)


@given(GLOBS, PATHS)
def test_a_star_stands_for_any_characters(glob: str, path: str) -> None:
    expression = re.compile(".*".join(map(re.escape, glob.split("*"))))
    assert read_binding(f"http://*/{glob}").fits(None, f"/{path}") == (expression.fullmatch(path) is not None)


def test_a_hostile_pattern_takes_no_longer() -> None:
    """Backtracking would take 2^50 steps here."""
    assert not read_binding("http://*/" + "a*" * 50 + "b").fits(None, "/" + "a" * 100_000)


def test_ports_and_schemes() -> None:
    assert read_binding("http://*:8080/*").fits(8080, "/a")
    assert not read_binding("https://*:8080/*").fits(8081, "/a")
    assert not read_binding("*://*:8080/*").fits(None, "/a")
    assert read_binding("http://*:*/a").fits(1, "/a")


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "is no binding like"),
        ("/search/*", "is no binding like"),
        ("http://*", "is no binding like"),
        ("http://*:port/a", "is no binding like"),
        ("ftp://*/a", "scheme"),
        ("http://host/a", "host"),
        ("http://*.host/a", "host"),
    ],
)
def test_what_is_no_binding(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=why):
        read_binding(text)


def test_the_stricter_binding_counts() -> None:
    """As Vespa's examples order them, and its rules for parts of paths."""
    expected = [
        "http://*/path/b",
        "http://*/path/a",
        "http://*/path",
        "http://*/path/*",
        "http://*:80/p*",
        "http://*/p*",
    ]
    expected += ["http://*/a*b*", "http://*/a*", "http://*:81/*", "http://*/*"]
    bindings = [read_binding(text) for text in expected]
    for order in (bindings, bindings[::-1], bindings[3:] + bindings[:3]):
        assert [each.text for each in strictest_first(order)] == expected
