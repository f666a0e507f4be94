"""Answers a query from one view, in steps: bind, match and rank, order, write hits.

    Query + View → BoundQuery of each document type (`bind`) → RankedHits (`rank`) → Hits (`hits`) → SearchResponse

May run in any thread, beside the writer: the documents of a view stay. Of a value that is changed in place meanwhile,
the query sees the old one or the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, repeat
from math import inf
from typing import Any, Final, NamedTuple

import numpy as np

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.records import replace
from paperwasp.content.log.records import Mutate
from paperwasp.content.views.view import View
from paperwasp.core.clock import OutOfTime
from paperwasp.errors import Timeout
from paperwasp.ranking.typed_expression import coarse, fields_of_profile, unsearched
from paperwasp.search.bind import bind, indexed_types, streaming_types
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.grouped_hits import HitGroups
from paperwasp.search.grouping.facets import is_facet
from paperwasp.search.grouping.merging import most_groups
from paperwasp.search.observe import QueryTrace
from paperwasp.search.operators.item import Item
from paperwasp.search.phases.later_phases import rank_globally
from paperwasp.search.phases.order import SortLevel, located, streamed_lid, within_batch
from paperwasp.search.phases.rank import match, page_of_all, rank, rank_all
from paperwasp.search.phases.ranked_hits import NO_LIDS, NO_SCORES, TIMEOUT, Matches, RankedHits
from paperwasp.search.query import Hit, Query, SearchResponse
from paperwasp.search.query_resources import QueryClock
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show.hits import Page, SortKeys, hits_of, rendered_hits
from paperwasp.search.streaming_search import batches_of

_GENERAL: Final = "general (documents)"
"""In a trace: hits are written from documents that were read for them."""


def search(view: View, query: Query, served: ServedSchemas, env: Environment = SYSTEM) -> SearchResponse:
    """Return the hits of a query.

    Errors: InvalidQuery where it cannot be executed; Timeout where there was no time for it, and none for a part.
    """
    return BoundSearch(view, query, served, env).answer()


class BoundSearch:
    """A query that is bound to one view. One thread may bind it, and another do the rest.

    Errors: InvalidQuery where it cannot be executed; Timeout where there is no time for it.
    """

    def __init__(
        self, view: View, query: Query, served: ServedSchemas, env: Environment = SYSTEM, *, small: bool | None = None
    ) -> None:
        """`small`: what `is_plain` says of the query, where that is known."""
        observe = query.observe
        if query.order.after is not None:
            query = replace(query, order=replace(query.order, after=located(query.order.after, view)))
        if small is None:
            small = is_plain(query.match.tree, len(view.schemas))
        self._view = view
        self._query = query
        self._served = served
        self._trace = QueryTrace(env, observe.trace_level, observe.explain_level) if observe.trace_level > 0 else None
        self._clock = QueryClock(query, env)
        with self._clock:
            self._streamed = streaming_types(view, query)
            self._indexed = [
                bind(view, name, query, served, self._clock, self._trace, small=small)
                for name in indexed_types(view, query)
            ]
        is_one = len(self._indexed) == 1 and not self._streamed
        self._groups = HitGroups(query, served.summaries, is_one=is_one) if query.groupings else None
        self._matches: dict[int, Matches] = {}
        """The matches of bound queries, by id, that were looked for to estimate the cost of grouping."""

    @classmethod
    def if_short(cls, view: View, query: Query, served: ServedSchemas) -> BoundSearch | None:
        """Return the bound query if planning it is known to be short; None: it is to be planned on a worker thread."""
        if query.observe.trace_level or query.order.hits > limits.INLINE_RANKED_HITS:
            return None
        if query.groupings and not all(map(is_facet, query.groupings)):
            return None
        if _written_hits(query) > limits.INLINE_QUERY_HITS:
            return None
        if not is_plain(query.match.tree, len(view.schemas)):
            return None
        profile, given = query.rank.profile, query.rank.expressions
        if given is not None and not all(
            served.is_compiled(view.schemas[name], profile, given) for name in indexed_types(view, query)
        ):
            return None
        return cls(view, query, served, small=True)

    @property
    def bound(self) -> tuple[BoundQuery, ...]:
        """The query as it is planned for each document type that is indexed."""
        return tuple(self._indexed)

    def expected_ns(self) -> float:
        """About how long the answer will take, rather too long than too short."""
        if self._streamed:
            return inf
        hits = _written_hits(self._query)
        found = 0.0
        for bound in self._indexed:
            found += estimate_ns(bound, hits)
        return found if self._groups is None or found > limits.INLINE_QUERY_NS else self._expected_with_groups(hits)

    def _expected_with_groups(self, hits: int) -> float:
        """The same where all matches are scored and grouped: as many as there are, which are looked for. They are kept
        for the answer."""
        found = 0.0
        try:
            with self._clock:
                for bound in self._indexed:
                    if not bound.is_late:
                        self._matches[id(bound)] = matches = match(bound)
                        found += grouped_ns(bound, hits, matches.count)
        except OutOfTime:
            return inf
        return found

    def answer(self) -> SearchResponse:
        """Return the hits. Errors: Timeout."""
        query, trace = self._query, self._trace
        try:
            with self._clock:
                whole = self._among_indexed()
                if self._streamed:
                    whole = _joined([whole, *map(self._among_streamed, self._streamed)], query)
                if self._groups is not None:
                    whole = replace(whole, groupings=self._groups.results())
        except OutOfTime:
            raise Timeout("the time was over before the hits were written") from None
        if "timeout" in whole.degraded and not query.deadline.is_soft:
            raise Timeout("the time was over before all documents were searched, and there is no soft timeout")
        if trace is None:
            return whole
        trace.event("Complete query execution: hits are written")
        return replace(whole, trace=trace.finished())

    def _among_indexed(self) -> SearchResponse:
        """The hits among documents that are indexed. Where there are streamed ones too, those before the offset are
        written as well, to be merged with others."""
        order, clock = self._query.order, self._clock
        wanted = order.offset + order.hits
        ranked = [self._ranked(bound, wanted, self._view) for bound in self._indexed]
        clock.begin_writing()
        begun_ns, spent_ns = clock.now_ns(), time.thread_time_ns()
        last = self._last_phase(ranked)
        if last is not None:
            page, hits, dropped = last
            if dropped:
                ranked = [replace(ranked[0], total_count=ranked[0].total_count - dropped)]
        else:
            page, hits = self._rendered(ranked, slice(order.offset, wanted)) or (
                None,
                self._page(ranked, 0 if self._streamed else order.offset, wanted),
            )
        took_ns, spent_ns = clock.now_ns() - begun_ns, time.thread_time_ns() - spent_ns
        for bound in self._indexed:
            bound.cost.wrote(len(hits if page is None else page), spent_ns)
            if bound.observer.is_tracing:
                bound.observer.step("hits", _GENERAL if page is None else _rendered_by(page))
        if len(ranked) == 1:
            one, documents = ranked[0], self._indexed[0].setting.space.documents
            return SearchResponse(
                one.total_count,
                documents,
                tuple(hits),
                one.coverage if documents else 1.0,
                None,
                one.degraded,
                self._view.stamp,
                took_ns,
                page,
                last is not None,
                self._mutations(one),
            )
        counts = [bound.setting.space.documents for bound in self._indexed]
        documents = sum(counts)
        covered = sum(kind.coverage * count for kind, count in zip(ranked, counts, strict=True))
        return SearchResponse(
            sum(kind.total_count for kind in ranked),
            documents,
            tuple(hits),
            covered / documents if documents else 1.0,
            degraded=frozenset[str]().union(*(kind.degraded for kind in ranked)),
            stamp=self._view.stamp,
            summary_ns=took_ns,
            mutations=tuple(chain.from_iterable(map(self._mutations, ranked))),
        )

    def _mutations(self, ranked: RankedHits) -> tuple[Mutate, ...]:
        """Return the changes of the rank profile in documents that reached its phases."""
        bound = ranked.bound
        return bound.observer.mutations(bound.setting.space.schema.document.name, self._view.gids)

    def _last_phase(self, ranked: Sequence[RankedHits]) -> tuple[Page | None, list[Hit], int] | None:
        """The page by the global phase, as far as it can be rendered, the other hits, and how many hits the phase
        drops; None where the container ranks by it."""
        if self._query.rank.global_page is None or self._streamed or len(ranked) != 1:
            return None
        found = rank_globally(self._query, ranked[0])
        if found is None:
            return None
        view, query, served, count = self._view, self._query, self._served, len(found.before)
        rendered = rendered_hits(view, query, found.ranked, slice(0, count), served.pages, served.summaries)
        if rendered is not None:
            return *rendered, found.dropped_count
        shown = found.ranked.of(slice(None), found.before)  # features of hits see the scores of the phase before
        hits = hits_of(view, query, shown, range(count), [None] * count, served.summaries)
        pairs = zip(hits, found.ranked.scores.tolist(), strict=True)
        return None, [hit._replace(relevance=relevance) for hit, relevance in pairs], found.dropped_count

    def _rendered(self, ranked: Sequence[RankedHits], window: slice) -> tuple[Page, list[Hit]] | None:
        """The hits of the page where they can be rendered by a kernel: those of one type, which nothing is merged
        with."""
        if self._streamed or len(ranked) != 1:
            return None
        served = self._served
        return rendered_hits(self._view, self._query, ranked[0], window, served.pages, served.summaries)

    def _page(self, ranked: Sequence[RankedHits], start: int, end: int) -> list[Hit]:
        """The hits from one number to another of all types together."""
        view, query, forms = self._view, self._query, self._served.summaries
        levels = [bound.levels for bound in self._indexed]
        if len(ranked) == 1:
            numbers = range(start, min(end, len(ranked[0].lids)))
            return hits_of(view, query, ranked[0], numbers, _keys(ranked[0], levels[0], numbers), forms)
        places = sorted(
            chain.from_iterable(_places(kind, hits, levels[kind]) for kind, hits in enumerate(ranked)),
        )[start:end]
        written = []
        for kind, hits in enumerate(ranked):
            own = [place for place in places if place.kind == kind]
            keys = [place.keys for place in own]
            written.append(iter(hits_of(view, query, hits, [place.number for place in own], keys, forms)))
        return [next(written[place.kind]) for place in places]

    def _among_streamed(self, name: str) -> SearchResponse:
        """The hits among the documents of a type with mode streaming: the best of each batch, merged with those
        before."""
        query, clock, served = self._query, self._clock, self._served
        wanted = query.order.offset + query.order.hits
        after = query.order.after
        hits: list[Hit] = []
        total_count = documents = summary_ns = 0
        progress, degraded = 0.0, frozenset[str]()
        clock.begin_writing()  # a batch that was read is small: it is searched, and its hits are written
        streamed = served.streamed(self._view.schemas[name])
        for batch in batches_of(self._view, streamed, query.match.streaming, clock):
            if after is not None:
                query = replace(query, order=replace(query.order, after=within_batch(after, batch.gids)))
            bound = bind(batch.view, name, query, served, clock, self._trace, streamed=True)
            ranked = self._ranked(bound, wanted, batch.view)
            numbers = range(len(ranked.lids))
            begun_ns = clock.now_ns()
            keys = _keys(ranked, bound.levels, numbers)
            best = hits_of(batch.view, query, ranked, numbers, keys, served.summaries)
            bound.observer.step("hits", _GENERAL)
            hits = sorted(chain(hits, (hit._replace(lid=streamed_lid(hit.gid)) for hit in best)), key=_order_of(query))
            del hits[wanted:]
            summary_ns += clock.now_ns() - begun_ns
            total_count += ranked.total_count
            documents += batch.view.limit
            degraded |= ranked.degraded
            progress = batch.progress
        if progress < 1:
            degraded |= {"timeout"}
        seen = round(documents / progress) if progress > 0 else documents
        return SearchResponse(total_count, seen, tuple(hits), progress, degraded=degraded, summary_ns=summary_ns)

    def _ranked(self, bound: BoundQuery, wanted: int, view: View) -> RankedHits:
        """The best documents of one type; none where there was no time for any. Where there are groups, all are put
        into these."""
        groups, ranked = self._groups, None
        try:
            if not bound.is_late:
                ranked = _ranked_in_time(bound, wanted if groups is None else None, self._matches.get(id(bound)))
        except OutOfTime:
            pass
        if ranked is None:
            ranked = RankedHits(bound, 0, NO_LIDS, NO_SCORES, NO_SCORES, coverage=0.0, degraded=TIMEOUT)
        if groups is None:
            return ranked
        self._clock.begin_writing()  # what was found in time is put into groups
        groups.add(view, bound, ranked)
        page = page_of_all(bound, ranked, wanted)
        if view is self._view:  # kernels work on a batch for as long as somebody waits for the answer
            self._clock.begin_matching()
        return page


def _written_hits(query: Query) -> int:
    """How many hits are written at most. A node that ranks by the global phase itself only writes the page."""
    page, order = query.rank.global_page, query.order
    return order.offset + order.hits if page is None else page.hits


def _ranked_in_time(bound: BoundQuery, wanted: int | None, matches: Matches | None) -> RankedHits:
    """The first `wanted` hits, or all; `matches`: where they are known. Raises OutOfTime where there was no time for
    any hit."""
    bound.observer.begin(bound.setting.operator, bound.setting.space, bound.profile.name)
    if bound.observer.is_tracing:
        for note in _doubts(bound):
            bound.observer.tag("warning", message=note)
    ranked = rank_all(bound, matches) if wanted is None else rank(bound, wanted)
    bound.observer.end(bound.setting.operator, bound.setting.space)
    return ranked


def _doubts(bound: BoundQuery) -> Iterator[str]:
    """Warnings, for a trace, of a valid query that may find or score less than its author means."""
    space = bound.setting.space
    for item in bound.query.match.tree.walk():
        yield from item.doubts(space)
    searched = {match.field for term in bound.setting.terms for match in term.matches}
    yield from unsearched(bound.profile, searched)
    yield from coarse(space.schema, [field for field in fields_of_profile(bound.profile) if field in searched])


def _rendered_by(page: Sequence[bytes | None]) -> str:
    left = sum(hit is None for hit in page)
    return f"kernel page, {left} of {len(page)} {_GENERAL}" if left else "kernel page"


def _joined(found: Sequence[SearchResponse], query: Query) -> SearchResponse:
    """Join answers of several ways into one."""
    hits = sorted(chain.from_iterable(part.hits for part in found), key=_order_of(query))
    documents = sum(part.documents for part in found)
    covered = sum(part.documents * part.coverage for part in found)
    return SearchResponse(
        sum(part.total_count for part in found),
        documents,
        tuple(hits[query.order.offset : query.order.offset + query.order.hits]),
        covered / documents if documents else min(part.coverage for part in found),
        degraded=frozenset[str]().union(*(part.degraded for part in found)),
        stamp=found[0].stamp,
        summary_ns=sum(part.summary_ns for part in found),
        mutations=found[0].mutations,
    )


def _order_of(query: Query) -> Callable[[Hit], Any]:
    """Return the sort key of hits that are written."""
    if query.order.keys:
        return lambda hit: (hit.sort_keys, hit.lid)
    return lambda hit: (_falling(hit.relevance), hit.lid)


def _falling(relevance: float) -> float:
    """Rises where the relevance falls. NaN is worse than any number."""
    return -float(np.nan_to_num(relevance, nan=-np.inf))


def _keys(hits: RankedHits, levels: Sequence[SortLevel], numbers: Sequence[int]) -> Iterable[SortKeys]:
    """Return the keys that sort hits with these numbers among others; None where the query does not sort."""
    if not levels:
        return repeat(None, len(numbers))
    lids, scores = hits.lids[numbers], hits.scores[numbers]
    return zip(*(level.portable_keys(lids, scores) for level in levels), strict=True)


class _Place(NamedTuple):
    """One hit before it is written, in the order of hits."""

    order: Any
    lid: int
    kind: int
    """The number of its document type."""
    number: int
    """Among the hits of its type."""
    keys: SortKeys


def _places(kind: int, hits: RankedHits, levels: Sequence[SortLevel]) -> Iterator[_Place]:
    numbers = range(len(hits.lids))
    for number, keys in zip(numbers, _keys(hits, levels, numbers), strict=True):
        order = _falling(hits.scores[number]) if keys is None else keys
        yield _Place(order, int(hits.lids[number]), kind, number, keys)


# How long a query takes, before it runs: short ones run where they are, others on a worker thread.
#
# A hand-off to another thread costs more than most queries do. Which queries are short is estimated from how many
# documents their terms match, and from what ranking and writing hits by the same rank profile has taken before.


FACET_NS: Final = 30_000
"""The assumed cost of a facet, whatever it counts."""
FACET_HIT_NS: Final = 10
"""The assumed cost of one hit that it counts."""
FACET_GROUP_NS: Final = 1_500
"""The assumed cost of one group that is shown."""


def is_plain(tree: Item, types_count: int) -> bool:
    """Return whether a tree is planned for this number of document types in little time, whatever the index holds."""
    waiting = [tree]
    left = limits.INLINE_QUERY_ITEMS // max(1, types_count)
    while waiting:
        item = waiting.pop()
        left -= item.lookups()
        if left < 0 or not item.is_plain:
            return False
        waiting.extend(item.children_of())
    return True


def estimate_ns(bound: BoundQuery, hits: int) -> float:
    """Return about how long a query takes for one document type, rather too long than too short."""
    space, cost, profile = bound.setting.space, bound.cost, bound.profile
    matching_ns, matches = bound.setting.operator.cost(space.limit)
    ranking_ns = 0.0 if bound.is_pruned else matches * cost.first_ns
    if profile.second_phase is not None:
        ranking_ns += min(matches, profile.rerank_count) * cost.second_ns
    if profile.global_phase is not None:
        ranking_ns += min(matches, bound.query.rank.global_hits) * cost.global_ns
    return matching_ns + ranking_ns + min(matches, hits) * (cost.write_ns + cost.shown_ns) + cost.fixed_ns


def grouped_ns(bound: BoundQuery, hits: int, matches: int) -> float:
    """Return about how long a query takes whose matches were found: all are scored, and the facets counted."""
    cost, profile = bound.cost, bound.profile
    found = matches * cost.first_ns + min(matches, hits) * (cost.write_ns + cost.shown_ns) + cost.fixed_ns
    if profile.second_phase is not None:
        found += min(matches, profile.rerank_count) * cost.second_ns
    for request in bound.query.groupings:
        most = most_groups(request.levels[0])
        groups = matches if most is None else min(matches, most)
        found += FACET_NS + matches * FACET_HIT_NS + groups * FACET_GROUP_NS
    return found
