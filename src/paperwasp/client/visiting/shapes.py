"""What the values of a field have in common, for a column of a table."""

from __future__ import annotations

from typing import Any, Final

from paperwasp.base.patterns import compile_later

NON_FINITE: Final = frozenset(("NaN", "Infinity", "-Infinity"))
"""How services write numbers that JSON has not."""
SPECIAL: Final = "special"
"""The shape of such a value: a number among numbers, a text among texts."""
JSON: Final = "json"
"""The shape of everything that no other is of: it is written as JSON."""
_VECTOR: Final = compile_later(r"tensor(?:<(float|double|bfloat16|int8)>)?\([A-Za-z_]\w*\[(\d+)\]\)")
_WHOLE: Final = range(-(2**63), 2**63)
_NUMBERS: Final = ("float", "int", SPECIAL)


def shape_of(value: Any) -> str:
    """The shape of a value: `bool`, `int`, `float`, `text`, `list:` and the shape of the elements, `vector:` and the
    type and size of its numbers, or JSON."""
    if isinstance(value, bool):
        return "bool"
    if isinstance(value, int):
        return "int" if value in _WHOLE else JSON
    if isinstance(value, float):
        return "float"
    if isinstance(value, str):
        return SPECIAL if value in NON_FINITE else "text"
    if isinstance(value, list):
        return _list_shape(value)
    return _vector_shape(value) if isinstance(value, dict) else JSON


def merge(one: str | None, other: str) -> str:
    """The shape that values of both have."""
    if one is None or one == other:
        return other
    pair = {one, other}
    if pair <= set(_NUMBERS):
        return "float"
    if pair == {SPECIAL, "text"}:
        return "text"
    if one.startswith("list:") and other.startswith("list:"):
        inner = merge(one.removeprefix("list:"), other.removeprefix("list:"))
        return JSON if inner == JSON else f"list:{inner}"
    return JSON


def _list_shape(values: list[Any]) -> str:
    shape: str | None = None
    for value in values:
        shape = merge(shape, JSON if isinstance(value, list | dict) else shape_of(value))
        if shape == JSON:
            return JSON
    return f"list:{shape or 'text'}"


def _vector_shape(value: dict[str, Any]) -> str:
    match = _VECTOR.fullmatch(str(value.get("type", "")))
    numbers = value.get("values")
    if match is None or value.keys() != {"type", "values"} or not isinstance(numbers, list):
        return JSON
    if not all(isinstance(number, int | float) for number in numbers) or len(numbers) != int(match[2]):
        return JSON
    return f"vector:{match[1] or 'double'}:{match[2]}"
