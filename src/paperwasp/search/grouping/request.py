"""A linear grouping request: one chain of levels, as content nodes execute it.

Of each statement there are as many as its tree of operations has leaves, since a group may have several lists of
groups. Tags number levels and aggregations within a statement: by them the results are put together again.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from paperwasp.base.records import dataclass
from paperwasp.search.grouping.continuation import Pages
from paperwasp.search.grouping.expression import Expression


@dataclass(frozen=True, slots=True)
class Filter:
    """A predicate of `filter(…)`. `kind`: "regex" (pattern), "range" (low, high, includes low, includes high),
    "not", "and", "or" (of `parts`), "in", "istrue"."""

    kind: str
    expression: Expression | None = None
    settings: tuple[object, ...] = ()
    parts: tuple[Filter, ...] = ()


@dataclass(frozen=True, slots=True)
class Aggregation:
    """An aggregate that is collected for each group of a level: `expression` is count, sum, …, summary."""

    tag: int
    expression: Expression
    max_hits: int | None = None
    """Of `summary`: how many hits of a group are kept, the best by relevance; None: all."""


@dataclass(frozen=True, slots=True)
class OrderKey:
    """One key that groups are ordered by: an expression over aggregates of the group."""

    expression: Expression
    is_ascending: bool


@dataclass(frozen=True, slots=True)
class Level:
    """One level of groups."""

    tag: int
    expression: Expression
    """What hits are grouped by."""
    filter: Filter | None = None
    max_groups: int | None = None
    """How many groups go into the next level and into the answer, with one more to see whether there are others;
    None: all."""
    precision: int | None = None
    """How many groups a content node gives; None: `max_groups`."""
    order: tuple[OrderKey, ...] = ()
    """Empty: by the relevance of their best hits, descending."""
    aggregations: tuple[Aggregation, ...] = ()


@dataclass(frozen=True, slots=True)
class GroupingRequest:
    """A chain of levels over all hits."""

    number: int
    """Among the requests of a query."""
    root_tag: int
    aggregations: tuple[Aggregation, ...] = ()
    """Of all hits: the root group."""
    levels: tuple[Level, ...] = ()
    is_all: bool = False
    """Whether all documents are grouped rather than those that match: `where(true)`."""
    top_n: int | None = None
    """How many of the best hits are grouped; None: all."""
    time_offset_seconds: int = 0
    """What time functions add to a time in UTC."""


@dataclass(frozen=True, slots=True)
class Layout:
    """How the results of the requests of one statement are put together: by tags."""

    number: int
    """Of the statement among those of a query: its root group is `group:root:<number>`."""
    requests: tuple[GroupingRequest, ...]
    labels: Mapping[int, str]
    """Tag → label: of lists of groups by that of their level, of lists of hits and of outputs by that of their
    aggregation. What has none is not shown."""
    maxes: Mapping[int, int] = field(default_factory=dict)
    """Tag of a list → how many of its groups or hits a page shows; lists that are not here have one page."""
    pages: Pages = field(default_factory=Pages)
