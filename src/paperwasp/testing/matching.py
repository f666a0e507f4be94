"""Compares an answer with the one that a test of Vespa's suites expects.

Objects have all fields of the template, and may have more; arrays have as many elements, each as the template's;
numbers are the same within 1e-9; all else is the same.

Vespa: https://docs.vespa.ai/en/reference/applications/testing.html#json-matching
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import orjson

_PRECISION: Final = 1e-9


class Difference(NamedTuple):
    """Where an answer is not as the template says. `expected` and `actual` are JSON; empty where a field is missing."""

    message: str
    expected: str = ""
    actual: str = ""


def difference(template: Any, actual: Any, path: str = "") -> Difference | None:
    """The first difference; None: the answer is as the template says."""
    if isinstance(template, dict) and isinstance(actual, dict):
        return _of_objects(template, actual, path)
    if isinstance(template, list) and isinstance(actual, list):
        return _of_arrays(template, actual, path)
    if _kind(template) == _kind(actual) and _is_same(template, actual):
        return None
    kind = "value" if _kind(template) == _kind(actual) else "type"
    return Difference(f"Unexpected {kind} at {path or 'root'}", _json(template), _json(actual))


def _of_objects(template: dict[str, Any], actual: dict[str, Any], path: str) -> Difference | None:
    for name, value in template.items():
        below = f"{path}/{name.replace('~', '~0').replace('/', '~1')}"
        if name not in actual:
            return Difference(f"Missing expected field at {below}")
        if (found := difference(value, actual[name], below)) is not None:
            return found
    return None


def _of_arrays(template: list[Any], actual: list[Any], path: str) -> Difference | None:
    if len(template) != len(actual):
        return Difference(f"Unexpected number of elements at {path or 'root'}", str(len(template)), str(len(actual)))
    for place, (value, other) in enumerate(zip(template, actual, strict=True)):
        if (found := difference(value, other, f"{path}/{place}")) is not None:
            return found
    return None


def _kind(value: Any) -> str:
    """The type of a value in JSON, which has one type of numbers."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return "number" if is_number else type(value).__name__


def _is_same(template: Any, actual: Any) -> bool:
    return abs(template - actual) < _PRECISION if _kind(template) == "number" else bool(template == actual)


def _json(value: Any) -> str:
    return orjson.dumps(value).decode()
