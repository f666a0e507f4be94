"""Templates of answers: what is there must be as they say, and what they do not say does not matter."""

from __future__ import annotations

from typing import Any

import pytest

from paperwasp.testing.matching import difference


@pytest.mark.parametrize(
    ("template", "actual"),
    [
        ({}, {"a": 1}),
        ({"a": {"b": 1}}, {"a": {"b": 1, "c": 2}, "d": []}),
        ([{}, 1.0], [{"a": 1}, 1]),
        (0.381862383599, 0.3818623835995),
        (None, None),
        ("x", "x"),
        (True, True),
    ],
)
def test_what_fits(template: Any, actual: Any) -> None:
    assert difference(template, actual) is None


@pytest.mark.parametrize(
    ("template", "actual", "message", "expected", "got"),
    [
        ({"a": 1}, {"b": 1}, "Missing expected field at /a", "", ""),
        ({"a/b~c": 1}, {}, "Missing expected field at /a~1b~0c", "", ""),
        ({"a": [1, 2]}, {"a": [1]}, "Unexpected number of elements at /a", "2", "1"),
        ({"a": [1, {"b": "x"}]}, {"a": [1, {"b": "y"}]}, "Unexpected value at /a/1/b", '"x"', '"y"'),
        ({"a": 1}, {"a": "1"}, "Unexpected type at /a", "1", '"1"'),
        (1.0, 1.00000001, "Unexpected value at root", "1.0", "1.00000001"),
        (True, 1, "Unexpected type at root", "true", "1"),
        (None, 0, "Unexpected type at root", "null", "0"),
        ({}, [], "Unexpected type at root", "{}", "[]"),
    ],
)
def test_what_does_not_fit(template: Any, actual: Any, message: str, expected: str, got: str) -> None:
    found = difference(template, actual)
    assert found is not None
    assert (found.message, found.expected, found.actual) == (message, expected, got)
