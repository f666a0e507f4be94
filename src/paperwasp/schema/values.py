"""The value of an element as what it means: a number within its range, a boolean, one of some words."""

from __future__ import annotations

import math
from collections.abc import Collection
from typing import Final

from paperwasp.schema.problems import Problems, nearest
from paperwasp.schema.tree import Node

INT_MAX: Final = 2**31 - 1
_DIGITS: Final = 20
"""The most digits of a whole number; more are out of every range, and slow to read."""


def integer(node: Node, problems: Problems, least: int = 0, most: int = INT_MAX) -> int:
    """The whole number that the element says; `least` after telling that it is out of range."""
    text = node.text.rstrip("L")
    value = int(text) if len(text) <= _DIGITS else most + 1
    if least <= value <= most:
        return value
    limit = f"at least {least}" if value < least else f"at most {most}"
    problems.error(f"{node.keyword} must be {limit}", node.value_position)
    return least


def number(node: Node, problems: Problems, least: float = -math.inf, most: float = math.inf) -> float:
    """The number that the element says; `least` or 0 after telling that it is out of range."""
    value = float(node.text.rstrip("L"))
    if math.isfinite(value) and least <= value <= most:
        return value
    inside = f" from {least:g} to {most:g}" if math.isfinite(most) else f" of at least {least:g}"
    problems.error(f"{node.keyword} must be a number{inside if math.isfinite(least) else ''}", node.value_position)
    return least if math.isfinite(least) else 0.0


def boolean(node: Node) -> bool:
    return node.text in ("on", "true")


def one_of(node: Node, words: Collection[str], problems: Problems, default: str) -> str:
    """The word that the element says; `default` after telling that it is none of `words`."""
    if node.text in words:
        return node.text
    problems.error(f"unknown {node.keyword} {node.text!r}{nearest(node.text, words)}", node.value_position)
    return default
