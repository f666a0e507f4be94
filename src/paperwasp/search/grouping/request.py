"""Linear grouping requests: chains of levels of expressions, as content nodes execute them.

A statement becomes as many as its tree of operations has leaves, since a group may have several lists of groups. Tags
number levels and aggregations within a statement: by them the results are put together again.
"""

from __future__ import annotations

from collections.abc import Mapping

from msgspec import Struct, field

from paperwasp.search.grouping.continuation import Pages

# Expressions as they are parsed: immutable trees that compare by value.


Constant = int | float | str | bool | bytes
"""A literal. bytes: `{1, 2}`, a raw value."""


class Infinite(Struct, frozen=True):
    """`inf` or `-inf` as the limit of a bucket."""

    is_negative: bool


Limit = Constant | Infinite


class Bucket(Struct, frozen=True):
    """A bucket of `predefined`: [low, high) as `low <= value < high`. An excluded low limit or an included high one is
    the next larger value, as the language defines it, once the type of values is known."""

    low: Limit
    high: Limit
    includes_low: bool = True
    includes_high: bool = False


class Expression(Struct, frozen=True):
    """A function of the language with its arguments.

    `function` is the name as written, with its namespace: "add", "math.exp", "time.year", "zcurve.x", "count". What is
    not written as a function has these: "attribute" (name), "map" (prefix, key, suffix: `prefix{"key"}.suffix`),
    "map_source" (prefix, attribute with the key, suffix), "constant" (value), "neg" for a minus sign.
    """

    function: str
    arguments: tuple[Expression | Constant | Bucket, ...] = ()
    label: str = ""
    """The label of `as(…)`."""


# Requests: the levels of groups, what is collected at each, and how they are ordered.


class Filter(Struct, frozen=True):
    """A predicate of `filter(…)`. `kind`: "regex" (pattern), "range" (low, high, includes low, includes high),
    "not", "and", "or" (of `parts`), "in", "istrue"."""

    kind: str
    expression: Expression | None = None
    settings: tuple[object, ...] = ()
    parts: tuple[Filter, ...] = ()


class Aggregation(Struct, frozen=True):
    """An aggregate that is collected for each group of a level: `expression` is count, sum, …, summary."""

    tag: int
    expression: Expression
    max_hits: int | None = None
    """The hits of a group that a `summary` keeps, the best by relevance; None: all."""


class OrderKey(Struct, frozen=True):
    """One key that groups are ordered by: an expression over aggregates of the group."""

    expression: Expression
    is_ascending: bool


class Level(Struct, frozen=True):
    """One level of groups."""

    tag: int
    expression: Expression
    """The expression that hits are grouped by."""
    filter: Filter | None = None
    max_groups: int | None = None
    """How many groups go into the next level and into the answer, with one more to see whether there are others;
    None: all."""
    precision: int | None = None
    """How many groups a content node gives; None: `max_groups`."""
    order: tuple[OrderKey, ...] = ()
    """Empty: by the relevance of their best hits, descending."""
    aggregations: tuple[Aggregation, ...] = ()


class GroupingRequest(Struct, frozen=True):
    """A chain of levels over all hits."""

    number: int
    """Among the requests of a query."""
    root_tag: int
    aggregations: tuple[Aggregation, ...] = ()
    """The aggregations of the root group: of all hits."""
    levels: tuple[Level, ...] = ()
    is_all: bool = False
    """Whether all documents are grouped rather than those that match: `where(true)`."""
    top_n: int | None = None
    """How many of the best hits are grouped; None: all."""
    time_offset_seconds: int = 0
    """The offset of time functions to UTC."""


class ResultLayout(Struct, frozen=True):
    """How the results of the requests of one statement are put together: by tags."""

    number: int
    """The number of the statement in its query: its root group is `group:root:<number>`."""
    requests: tuple[GroupingRequest, ...]
    labels: Mapping[int, str]
    """Tag → label: of lists of groups by that of their level, of lists of hits and of outputs by that of their
    aggregation. What has none is not shown."""
    maxes: Mapping[int, int] = field(default_factory=dict)
    """Tag of a list → how many of its groups or hits a page shows; lists that are not here have one page."""
    pages: Pages = field(default_factory=Pages)
