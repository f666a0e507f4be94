"""Expressions of the grouping language as they are parsed: immutable trees that compare by value."""

from __future__ import annotations

from paperwasp.base.records import dataclass

Constant = int | float | str | bool | bytes
"""A literal. bytes: `{1, 2}`, a raw value."""


@dataclass(frozen=True, slots=True)
class Infinite:
    """`inf` or `-inf` as the limit of a bucket."""

    is_negative: bool


Limit = Constant | Infinite


@dataclass(frozen=True, slots=True)
class Bucket:
    """A bucket of `predefined`: [low, high) as `low <= value < high`. An excluded low limit or an included high one is
    the next larger value, as the language defines it, once the type of values is known."""

    low: Limit
    high: Limit
    includes_low: bool = True
    includes_high: bool = False


@dataclass(frozen=True, slots=True)
class Expression:
    """A function of the language with its arguments.

    `function` is the name as written, with its namespace: "add", "math.exp", "time.year", "zcurve.x", "count". What is
    not written as a function has these: "attribute" (name), "map" (prefix, key, suffix: `prefix{"key"}.suffix`),
    "map_source" (prefix, attribute with the key, suffix), "constant" (value), "neg" for a minus sign.
    """

    function: str
    arguments: tuple[Expression | Constant | Bucket, ...] = ()
    label: str = ""
    """That of `as(…)`."""
