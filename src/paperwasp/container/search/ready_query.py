"""The query of one request, ready to be sent: to each content cluster its own."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paperwasp.base.records import dataclass
from paperwasp.container.search.after import After
from paperwasp.container.search.config import NO_QUERY_LIMITS, QueryLimits
from paperwasp.container.search.embedding import Embedding
from paperwasp.container.search.global_ranking import GlobalRanking
from paperwasp.container.search.rules import RuledTree
from paperwasp.errors import PaperwaspError
from paperwasp.search.grouping.request import Layout
from paperwasp.search.operators.item import Item
from paperwasp.search.query import Query, SortKey


@dataclass(frozen=True, slots=True)
class ClusterQuery:
    """The query for one cluster, and errors for the document types that are left out; None: all of them are."""

    cluster: str
    query: Query | None
    errors: tuple[PaperwaspError, ...] = ()
    ranking: GlobalRanking | None = None
    """Its global phase; then the query is for documents of one type."""
    limits: QueryLimits = NO_QUERY_LIMITS

    def with_inputs(self, made: Mapping[str, object]) -> ClusterQuery:
        """The same query with these values of inputs."""
        if self.query is None:
            return self
        rank = replace(self.query.rank, inputs={**self.query.rank.inputs, **made})
        return replace(self, query=replace(self.query, rank=rank))

    def timeout_ms(self, ready: ReadyQuery) -> float:
        """The time that the cluster has."""
        return min(ready.timeout_ms, self.limits.timeout_ms)

    def in_window(self, offset: int, hits: int) -> ClusterQuery:
        """Return the same for another page. The global phase needs all hits that it may rank."""
        if self.query is None:
            return self
        wanted = min(hits if self.ranking is None else max(hits, self.ranking.rerank_count), self.limits.hits)
        return replace(self, query=replace(self.query, order=replace(self.query.order, offset=offset, hits=wanted)))

    def without_groups(self) -> ClusterQuery:
        """Return the same without groupings."""
        return self if self.query is None else replace(self, query=replace(self.query, groupings=()))

    def showing(self, summary: str) -> ClusterQuery:
        """Return the same with all fields of another summary class."""
        if self.query is None:
            return self
        return replace(self, query=replace(self.query, show=replace(self.query.show, summary=summary, fields=())))


@dataclass(frozen=True, slots=True)
class Answering:
    """The parts of a query and its answer that do not depend on the values of a request."""

    summary_fields: tuple[str, ...] = ()
    order_by: tuple[SortKey, ...] = ()
    rules: RuledTree | None = None
    """The tree after semantic rules, and their trace; None: there are none for the query."""
    is_repeatable: bool = True
    """Whether the answer depends on nothing but the documents: neither on the time nor on chance."""
    without_summary: frozenset[tuple[str, str]] = frozenset()
    """(content cluster, document type) of the types without the summary class, which others have: nothing is shown of
    their hits."""
    clusters: tuple[str, ...] = ()
    """The content clusters that are searched."""
    is_merged: bool = False
    """Whether the page is made of more hits than it has."""


@dataclass(frozen=True, slots=True)
class ReadyQuery:
    """A query, ready to be sent. `hits` and `offset` are of the merged result."""

    tree: Item
    hits: int
    offset: int
    timeout_ms: float
    queries: tuple[ClusterQuery, ...]
    answering: Answering
    after: After | None = None
    """Where the page before ended; None: pages do not follow each other."""
    embeddings: tuple[Embedding, ...] = ()
    """The inputs that are to be made before the query is sent."""
    layouts: tuple[Layout, ...] = ()
    """Of each grouping statement."""

    def with_inputs(self, made: Mapping[str, object]) -> ReadyQuery:
        """The same query with these values of inputs."""
        queries = tuple(query.with_inputs(made) for query in self.queries)
        return replace(self, queries=queries, embeddings=())

    def window(self, offset: int, hits: int) -> ReadyQuery:
        """The same query for other hits."""
        window = (0, offset + hits) if self.answering.is_merged else (offset, hits)
        queries = tuple(query.in_window(*window) for query in self.queries)
        return replace(self, hits=hits, offset=offset, queries=queries)

    def without_groups(self) -> ReadyQuery:
        """The same query without groupings."""
        queries = tuple(query.without_groups() for query in self.queries)
        return replace(self, queries=queries, layouts=())

    def showing(self, summary: str) -> ReadyQuery:
        """The same query with another summary class, and all that it shows."""
        queries = tuple(query.showing(summary) for query in self.queries)
        answering = replace(self.answering, summary_fields=(), without_summary=frozenset())
        return replace(self, queries=queries, answering=answering)
