"""A prepared query, which is all of a request's query that no value changes, is bound to the values of each request:
what comes of it is ready to be sent, to each content cluster its own.

Which values there are says the column of `parameters.PARAMETERS`; those of literals and of parameters in YQL are
in slots (`yql.lifting`). Everything here is frozen and shared: by requests, and by the clusters of one request.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.container.search.config import NO_QUERY_LIMITS, QueryLimits
from paperwasp.container.search.embedding import Embedding
from paperwasp.container.search.global_ranking import GlobalRanking
from paperwasp.container.search.grouping import PreparedGrouping
from paperwasp.container.search.inputs import InputTypes
from paperwasp.container.search.paging import After, read_after
from paperwasp.container.search.rewrites import AddTerms, Context, Failing, Rewrite
from paperwasp.container.search.rules import RuledTree
from paperwasp.container.search.setters import Setter
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.container.search.tree import TreeTemplate, language_of
from paperwasp.container.search.values import Now
from paperwasp.errors import IllegalQuery, PaperwaspError
from paperwasp.limits import LONGEST_QUERY_TIMEOUT_MS
from paperwasp.query_languages.yql.statement import StatementTemplate
from paperwasp.search.grouping.request import GroupingRequest, ResultLayout
from paperwasp.search.operators.item import Item
from paperwasp.search.query import (
    Match,
    Observe,
    Order,
    Query,
    QueryDeadline,
    Rank,
    Show,
    SortKey,
)

_NO_INPUTS: Final[Mapping[str, object]] = MappingProxyType({})


class PreparedCluster(Struct, frozen=True):
    """The query for one cluster, but for the values."""

    cluster: str
    place: int
    """Its place among the clusters that are searched, from 0."""
    rank: Rank | None
    """None: the cluster is not asked."""
    errors: tuple[PaperwaspError, ...] = ()
    document_types: tuple[str, ...] = ()
    ranking: GlobalRanking | None = None
    limits: QueryLimits = NO_QUERY_LIMITS


class Window(Struct, frozen=True):
    """Which hits a query shows, and within which time. None: as the values say."""

    hits: int | None
    offset: int | None
    timeout_ms: float | None
    is_estimate: bool


class _Bound(NamedTuple):
    """The parts of a query that are the same for all clusters of one request."""

    match: Match
    inputs: Mapping[str, object]
    now_seconds: float | None
    hits: int
    offset: int
    after: After | None
    started_ns: int
    deadline: QueryDeadline
    groupings: tuple[GroupingRequest, ...]


class PreparedQuery(Struct, frozen=True):
    """One shape of query under one configuration."""

    parameters: SearchParameters
    """The parameters that shape it, without values."""
    defaults: tuple[tuple[Setter, str], ...]
    """The values of a query profile for parameters that a request leaves out, with their setters."""
    statement: StatementTemplate | None
    tree: TreeTemplate | None
    """None: semantic rules have made the tree (`container.search.rules`), which is of one request alone."""
    add_terms: AddTerms
    rewrites: tuple[Rewrite, ...]
    checks: tuple[Rewrite, ...]
    """The rewrites that come after all values are read but the inputs of ranking."""
    said_language: str
    window: Window
    answering: Answering
    clusters: tuple[PreparedCluster, ...]
    match: Match
    """Without tree and language."""
    inputs: InputTypes | Failing
    now: Now | None
    """The time that rank features see; None: the present."""
    show: Show
    observe: Observe
    deadline: QueryDeadline
    """Without its time."""
    memory_bytes: int
    """Bytes that ranking may take on a content node."""
    grouping: PreparedGrouping | None
    failure: Failing | None
    """The error that is raised if nothing else is wrong; None: there is none."""
    compiled_bytes: int = 0
    """The memory of what it alone may keep: global phases with expressions of the query."""

    @property
    def names(self) -> tuple[str, ...]:
        """The parameters whose values are in the statement."""
        return self.statement.names if self.statement else ()

    @property
    def ranks_on_node(self) -> bool:
        """Whether a global phase ranks hits of one query of one cluster alone, and all that is wanted is its page."""
        return len(self.clusters) == 1 and not self.parameters.collapse.fields and not self.observe.explains_hits

    @property
    def serves_others(self) -> bool:
        """Whether other requests of the shape can be bound to it."""
        steps = (self.inputs, self.failure, *self.rewrites, *self.checks)
        return self.tree is not None and not any(isinstance(step, Failing) for step in steps)

    def bind(self, values: RequestValues, now_ns: int, now_seconds: float = 0) -> ReadyQuery:
        """The query of a request that started at `now_ns` on the monotonic clock, and at `now_seconds` since 1970.

        Errors: IllegalQuery, InvalidQuery.
        """
        window, now, deadline = self.window, self.now, self.deadline
        offset = values.offset if window.offset is None else window.offset
        hits = 0 if window.is_estimate else values.hits if window.hits is None else window.hits
        timeout_ms = values.timeout_ms if window.timeout_ms is None else window.timeout_ms
        timeout_ms = min(timeout_ms, LONGEST_QUERY_TIMEOUT_MS)
        tree, context = self._tree(values)
        for rewrite in self.rewrites:
            tree = rewrite(tree, context)
        after = None if values.search_after is None else self._after(values.search_after, offset)
        for check in self.checks:
            tree = check(tree, context)
        is_merged = self.answering.is_merged
        layouts = () if self.grouping is None else self.grouping.bind(values.given, now_seconds)
        bound = _Bound(
            self._match(tree, context),
            self._inputs(context) if values.inputs else _NO_INPUTS,
            None if now is None else now_seconds - now.seconds if now.is_relative else now.seconds,
            hits + offset if is_merged else hits,
            0 if is_merged else offset,
            after,
            now_ns,
            QueryDeadline(now_ns + int(timeout_ms * 1e6), deadline.is_soft, deadline.soft_share),
            tuple([request for layout in layouts for request in layout.requests]) if layouts else (),
        )
        if self.failure is not None:
            raise self.failure.error
        queries = tuple([self._query(cluster, bound) for cluster in self.clusters])
        embeddings = tuple([each for each in bound.inputs.values() if type(each) is Embedding]) if bound.inputs else ()
        return ReadyQuery(tree, hits, offset, timeout_ms, queries, self.answering, after, embeddings, layouts)

    def _tree(self, values: RequestValues) -> tuple[Item, Context]:
        """The tree with the user's text, and what its rewrites may look at."""
        if self.tree is None:
            assert self.answering.rules is not None
            before = None if self.statement is None else self.statement.statement.tree
            return self.answering.rules.tree, Context(values, language_of(self.said_language, values, before))
        filled = self.tree.filled(values)
        tree = self.add_terms(self.tree.complete(filled, values), values)
        spoken = filled if self.tree.says_language else None
        return tree, Context(values, language_of(self.said_language, values, spoken))

    def _after(self, token: str, offset: int) -> After:
        if offset:
            raise IllegalQuery("'searchAfter' says where the page begins: there can be no offset beside it")
        if self.parameters.collapse.fields:
            raise IllegalQuery("'searchAfter' does not go together with 'collapsefield'")
        return read_after(token, self.answering.clusters, len(self.answering.order_by))

    def _match(self, tree: Item, context: Context) -> Match:
        match, values = self.match, context.values
        streaming = values.streamed() if values.streaming else None
        return Match(tree, (), context.language, match.gram_match, match.match_phase, streaming)

    def _inputs(self, context: Context) -> Mapping[str, object]:
        if isinstance(self.inputs, Failing):
            raise self.inputs.error
        values = context.values
        return self.inputs.values(values.inputs, values.given, context.language)

    def _query(self, cluster: PreparedCluster, bound: _Bound) -> ClusterQuery:
        rank, match = cluster.rank, bound.match
        if rank is None:
            return ClusterQuery(cluster.cluster, None, cluster.errors)
        limits, deadline = cluster.limits, bound.deadline
        if limits.timeout_ms < math.inf:
            at_ns = min(deadline.at_ns, bound.started_ns + int(limits.timeout_ms * 1e6))
            deadline = replace(deadline, at_ns=at_ns)
        page = cluster.ranking.page(bound.hits) if cluster.ranking is not None and self.ranks_on_node else None
        if bound.inputs or bound.now_seconds is not None or page is not None:
            rank = rank.of_request(bound.inputs, bound.now_seconds, page)
        if cluster.document_types:
            types, phase = cluster.document_types, match.match_phase
            match = Match(match.tree, types, match.language, match.gram_match, phase, match.streaming)
        hits = bound.hits if cluster.ranking is None else max(bound.hits, cluster.ranking.rerank_count)
        after = None if bound.after is None else bound.after.within(cluster.place)
        order = Order(min(hits, limits.hits), bound.offset, self.answering.order_by, after)
        # The token of the page that follows is made of the last hit.
        show = self.show if bound.after is None else replace(self.show, source="")
        query = Query(match, rank, order, show, self.observe, deadline, bound.groupings, self.memory_bytes)
        return ClusterQuery(cluster.cluster, query, cluster.errors, cluster.ranking, limits)


class ClusterQuery(Struct, frozen=True):
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


class Answering(Struct, frozen=True):
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


class ReadyQuery(Struct, frozen=True):
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
    layouts: tuple[ResultLayout, ...] = ()
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
