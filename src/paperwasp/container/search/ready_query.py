"""The query of one request, ready to be sent: to each content cluster its own."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import isfinite
from typing import Any, Final

import orjson

from paperwasp.base.records import dataclass
from paperwasp.container.search.config import NO_QUERY_LIMITS, QueryLimits
from paperwasp.container.search.global_ranking import GlobalRanking
from paperwasp.container.search.inputs import Embedding
from paperwasp.container.search.rules import RuledTree
from paperwasp.errors import IllegalQuery, PaperwaspError
from paperwasp.search.grouping.request import Layout
from paperwasp.search.operators.item import Item
from paperwasp.search.query import AFTER_ALL, BEFORE_ALL, Hit, Query, SearchAfter, SortKey
from paperwasp.storage.attributes.sort_order import PortableKey


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


# Pages that follow each other: each begins behind the last hit of the page before, however deep that is.
#
# A page says where it ended as a token, which the next request gives back. A token is of one query: the order of the
# hits must be the same. It names the last hit by its relevance or sort keys, its cluster and its global id, so that
# nothing is counted off: a node finds the hits behind at the cost of the first page. What is written between two pages
# may be missed or seen twice, as with an offset; all else is seen once.


_TOKEN_CHARACTERS: Final = 64 * 1024
_GID_DIGITS: Final = 24


@dataclass(frozen=True, slots=True)
class After:
    """Where a page begins. `cluster` is the place of the last hit's cluster among those that are searched; None: the
    page is the first."""

    cluster: int | None = None
    gid: bytes = b""
    relevance: float = 0.0
    sort_keys: tuple[Any, ...] = ()

    def within(self, cluster: int) -> SearchAfter | None:
        """The position for one cluster: of hits equal to the last one, those of earlier clusters have been shown."""
        if self.cluster is None:
            return None
        gid = self.gid if cluster == self.cluster else AFTER_ALL if cluster < self.cluster else BEFORE_ALL
        return SearchAfter(self.relevance, self.sort_keys, gid)


def token_of(cluster: str, hit: Hit) -> str:
    """The token of the page that ends with this hit."""
    relevance = hit.relevance if isfinite(hit.relevance) else str(hit.relevance)
    keys = [[*key[:-1], _as_json(key[-1])] for key in hit.sort_keys or ()]
    return urlsafe_b64encode(orjson.dumps([cluster, hit.gid.hex(), relevance, *keys])).decode().rstrip("=")


def _as_json(value: object) -> object:
    """A value of a sort key in JSON: bytes as the characters of those numbers, what is not finite as a text."""
    if isinstance(value, float) and not isfinite(value):
        return str(value)
    return value.decode("latin-1") if isinstance(value, bytes) else value


def read_after(token: str, clusters: Sequence[str], keys: int) -> After:
    """Where the page begins that follows the one of the token. Errors: IllegalQuery."""
    if not token:
        return After()
    try:
        if len(token) > _TOKEN_CHARACTERS:
            raise ValueError("it is too long")
        content = orjson.loads(urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        cluster, gid, relevance, *sort_keys = content
        if not isinstance(gid, str) or len(gid) != _GID_DIGITS or len(sort_keys) != keys:
            raise ValueError("it is of another query")
        return After(clusters.index(cluster), bytes.fromhex(gid), float(relevance), tuple(map(_key, sort_keys)))
    except (ValueError, TypeError):
        problem = "must be what the page before ended with"
        raise IllegalQuery(f"Could not set 'searchAfter' to '{token[:100]}': {problem}") from None


def _key(shown: Any) -> PortableKey:
    """One sort key. Errors: ValueError, TypeError."""
    place, kind, value = shown
    if type(place) is not int or type(kind) is not int:
        raise TypeError
    if kind == 1 and isinstance(value, str):
        return place, kind, value.encode("latin-1")
    if kind == 0 and type(value) in (int, float):
        return place, kind, value
    if kind == 0 and value in ("inf", "-inf"):
        return place, kind, float(value)
    raise TypeError
