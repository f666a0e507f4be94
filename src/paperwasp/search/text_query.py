"""The messages by which containers ask a content cluster for compiled plans: what is the same for all queries of a
kind, and the values of each.

These queries are for words, of a user's text or of a statement, and for what is near to a vector.

They are a part of the queries of `search.query`, for which a content node has a compiled plan (`search.plan.runs`).
What has none is answered by None, and the query is asked the general way, whose answer is the same.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import NamedTuple

from msgspec import Struct, field

from paperwasp.base.records import replace
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.nearest_neighbor import NearestNeighborItem
from paperwasp.search.query import Hit, Query


class ItemTemplate(NamedTuple):
    """An item of a statement that is made for each request."""

    fill: Callable[[tuple[str, ...]], Item]
    """Makes it of the literals of a request as they are written."""
    slots: tuple[int, ...]
    """The numbers of the literals that it is made of."""


class FacetList(NamedTuple):
    """A list of the values of an attribute, each with how many of the matches have it (`grouping.facets`)."""

    attribute: str
    order: int
    """The order of the counts: 1 rising, -1 falling; 0: values are in the order of their best hits."""
    most: int
    """How many values are left of all."""
    shown: int
    """How many of these are on the page."""
    head: str
    """The JSON of the list up to its label."""
    turn: str
    """The continuation, where more are left than are shown."""
    counts: tuple[str, ...]
    """The names of the count, as JSON with the colon."""


class FacetRoot(NamedTuple):
    """The lists of one statement."""

    head: str
    """The JSON of the root group up to its children."""
    lists: tuple[FacetList, ...]


class TextTemplate(Struct, frozen=True, eq=False):
    """The common part of queries that differ in their text, their page and their deadline: there is a plan for
    each."""

    query: Query
    """One of them, as it is asked the general way."""
    index: str
    """The index that the words of the text are in."""
    composite: str
    """How they belong together: `or`, `and`, `weakAnd`, or `phrase`; `near`: there are none, but a vector."""
    filters: tuple[ItemTemplate, ...] = ()
    """Templates of the items that documents must match besides."""
    target_hits: int = 0
    """The wanted hits of a weakAnd; 0: the default."""
    words: tuple[tuple[str, ItemTemplate], ...] = ()
    """The index of each word and what makes it, where words are of the statement in place of a text."""
    near: NearestNeighborItem | None = None
    """The nearestNeighbor besides words, or in their place; the queries have a vector for it, and no other input."""
    join: str = ""
    """How it belongs together with words: `or`; `rank`: words beside it only rank."""
    facets: tuple[FacetRoot, ...] = ()
    """The facets of the query: all that its groupings show."""
    number: int = field(default_factory=count().__next__)
    """Another for each template of this process."""

    @property
    def detects_language(self) -> bool:
        """Whether the text may be in another language than the one that is said."""
        return not (self.words or self.composite == "near" or self.query.match.language)

    def words_name(self, index: str, *, in_phrase: bool = False) -> str:
        """The name under which a snapshot has the words of an index: what they are depends on where they stand."""
        place = "phrase" if in_phrase else "statement" if self.words else ""
        return f"{index}\0{self.query.match.language}\0{place}"

    def in_language(self, language: str) -> TextTemplate:
        """The template of texts in which this language was detected, with the same number."""
        return replace(self, query=replace(self.query, match=replace(self.query.match, language=language)))


class TextQuery(NamedTuple):
    """The query of one request, which `container.search.text_answers` hands to `server.roles.content_service`."""

    template: TextTemplate
    text: str
    """The user's text; of words of a statement: the statement."""
    hits: int
    offset: int
    deadline_ns: int
    """The end of its time on the monotonic clock."""
    literals: tuple[str, ...] = ()
    """The literals of the request that its filters and words are made of, as they are written."""
    vector: bytes = b""
    """The text of the vector: a JSON array of numbers."""


class RouteQuery(NamedTuple):
    """Asks for the route (`core/http/text_route.hpp`) of all texts and vectors of a template with the same page, time
    and literals."""

    template: TextTemplate
    hits: int
    offset: int
    timeout_ns: int
    literals: tuple[str, ...]
    keeps_long: bool
    """Whether answers that take long are to be kept."""
    answers: object
    """`TextRoute.answers`."""


class TextAnswer(NamedTuple):
    """The answer to a `TextQuery`, all of whose documents were searched."""

    body: bytes
    """The JSON of the whole result, but for hits that are left."""
    total_count: int
    hits: int
    """The number of hits that are shown."""
    documents: int
    stamp: int
    """The stamp of the view that was searched."""
    summary_ns: int
    """The time that writing the hits took."""
    left: tuple[tuple[int, Hit], ...] = ()
    """Hits that are not in the JSON yet, and the places in it where they belong, rising."""
