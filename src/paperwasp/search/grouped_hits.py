"""The step that groups hits: those of each document type, or of each batch of a streaming search, then all together.

All matches are grouped, with the scores that ranking gives them in the end. Vespa: matching/matcher.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from itertools import chain, repeat
from typing import Final

import numpy as np

from paperwasp.base.records import replace
from paperwasp.content.views.view import View
from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.search.bound_query import BoundQuery
from paperwasp.search.grouping.aggregator import State
from paperwasp.search.grouping.aggregators.summary import HitsState
from paperwasp.search.grouping.attribute_columns import MissingAttribute
from paperwasp.search.grouping.binding import Binding, BoundRequest, bind_filter, bound_request
from paperwasp.search.grouping.execution import Hits, execute
from paperwasp.search.grouping.expression_node import Lids
from paperwasp.search.grouping.expressions import Scope, bind
from paperwasp.search.grouping.facets import PART_ROWS, facet, facet_bytes
from paperwasp.search.grouping.memory import TextMemory, check_memory, held_bytes
from paperwasp.search.grouping.merging import merged
from paperwasp.search.grouping.partial import Groups, PartialResult
from paperwasp.search.grouping.request import GroupingRequest
from paperwasp.search.phases.rank import sorted_places
from paperwasp.search.phases.ranked_hits import RankedHits
from paperwasp.search.phases.scored_blocks import threads_of
from paperwasp.search.query import Query
from paperwasp.search.show.hits import hits_of
from paperwasp.search.show.summary import SummaryForms
from paperwasp.storage.attributes import ColumnView

DocumentIds = Callable[[Lids], Sequence[str]]
HITS: Final = "summary"
"""The aggregator that collects hits."""


class HitGroups:
    """The groups of a query's hits, which are added document type by document type, or batch by batch."""

    def __init__(self, query: Query, forms: SummaryForms, *, is_one: bool) -> None:
        """`is_one`: whether all hits are added at once, so that levels may be cut while they are grouped."""
        self._query = query
        self._forms = forms
        self._is_one = is_one
        self._parts: list[tuple[PartialResult, ...]] = []
        self._held_bytes = 0
        self._left: dict[tuple[str, int], int] = {}
        """(document type, number of a request) → how many of its streamed documents may still be grouped."""

    def add(self, view: View, bound: BoundQuery, ranked: RankedHits) -> None:
        """Group all hits of one document type, which are by ascending lid; of documents that are streamed, those of a
        batch.

        Requests for attributes that the type does not have are left out. Errors: InvalidQuery, OutOfTime.
        Vespa: groupingmanager.cpp (`init`), which tells of such a request by an error beside the groups.
        """
        hits = Hits(ranked.lids, ranked.scores, sorted_places(bound, ranked))
        ids = None if view.own_lids is None else lambda lids: _ids_of(view, lids)
        found, texts = [], TextMemory()
        for request in self._query.groupings:
            grouped = hits if view.own_lids is None else self._of_batch(request, bound, hits)
            with suppress(MissingAttribute):
                result = None
                if self._is_one:
                    threads = threads_of(bound, len(grouped.lids)) if len(grouped.lids) > PART_ROWS else 1
                    result = facet(request, bound.setting.space.columns, grouped, threads, bound.helpers.work)
                if result is not None:
                    self._held_bytes += facet_bytes(result)
                else:
                    columns = bound.setting.space.columns if view.grouped is None else view.grouped
                    result = execute(_bound(request, bound, columns, ids, texts), grouped, cuts=self._is_one)
                    result = self._written(result, view, ranked)
                    self._held_bytes += held_bytes(result)
                found.append(result)
                check_memory(self._held_bytes)
        if bound.observer.is_tracing:
            bound.observer.tag("grouping", groups=[[len(level.parents) for level in result.levels] for result in found])
        self._parts.append(tuple(found))

    def _of_batch(self, request: GroupingRequest, bound: BoundQuery, hits: Hits) -> Hits:
        """Return the hits of a batch to group, for `where(true)` all documents; no more of either than `max` of the
        outermost `all` says: those that are read first.

        Vespa: searchvisitor.cpp (`GroupingEntry`)
        """
        found = _all(request, bound) if request.is_all else hits
        if request.top_n is None:
            return found
        key = (bound.setting.space.schema.document.name, request.number)
        left = self._left.get(key, request.top_n)
        self._left[key] = max(0, left - len(found.lids))
        places = None if found.places is None else found.places[:left]
        return Hits(found.lids[:left], found.relevances[:left], places)

    def results(self) -> tuple[PartialResult, ...]:
        """The groups of all hits that were added, at most one result for each request."""
        if self._is_one or not self._parts:
            return self._parts[0] if self._parts else ()
        return merged_results(self._query.groupings, self._parts)

    def _written(self, result: PartialResult, view: View, ranked: RankedHits) -> PartialResult:
        """The result with the hits of its groups as they are shown."""
        if not any(isinstance(state, HitsState) for level in result.levels for state in level.states):
            return result
        levels = tuple(
            Groups(
                level.tag,
                level.parents,
                level.ids,
                level.relevances,
                tuple(self._shown(state, view, ranked) for state in level.states),
            )
            for level in result.levels
        )
        return replace(result, levels=levels)

    def _shown(self, state: State, view: View, ranked: RankedHits) -> State:
        if not isinstance(state, HitsState):
            return state
        # What the global phase needs is only known of hits of the page.
        query = replace(self._query, rank=replace(self._query.rank, global_hits=0))
        if state.summary:
            query = replace(query, show=replace(query.show, summary=state.summary))
        lids, places = np.unique(state.lids, return_inverse=True)
        numbers = np.searchsorted(ranked.lids, lids)
        written = np.empty(len(lids), np.object_)
        written[:] = hits_of(view, query, ranked, numbers.tolist(), repeat(None), self._forms)
        return state.written(written[places])


def merged_results(
    requests: Sequence[GroupingRequest], parts: Sequence[tuple[PartialResult, ...]]
) -> tuple[PartialResult, ...]:
    """One result for each request of which a part has one."""
    found: dict[int, list[PartialResult]] = {}
    for result in chain.from_iterable(parts):
        found.setdefault(result.number, []).append(result)
    binding = _binding(Scope())  # it counts the texts that it makes: each answer has its own
    return tuple(merged(request, found[request.number], binding) for request in requests if request.number in found)


def _all(request: GroupingRequest, bound: BoundQuery) -> Hits:
    """All documents of a batch, for `where(true)`. Errors: InvalidQuery where their hits are to be shown.

    Vespa: searchvisitor.cpp (`group`); where documents are indexed it groups those that match.
    """
    aggregations = chain(request.aggregations, *(level.aggregations for level in request.levels))
    if any(each.expression.function == HITS for each in aggregations):
        raise InvalidQuery("You can not collect hits with an all aggregator yet.")
    space = bound.setting.space
    lids = _core.bitmap_lids(space.accept, space.limit)
    return Hits(lids, np.zeros(len(lids)))


def _bound(
    request: GroupingRequest,
    bound: BoundQuery,
    columns: Mapping[str, ColumnView],
    document_ids: DocumentIds | None,
    texts: TextMemory,
) -> BoundRequest:
    setting = bound.setting
    scope = Scope(
        columns,
        request.time_offset_seconds,
        int(setting.now_seconds),
        document_ids=document_ids,
        is_streamed=document_ids is not None,
        texts=texts,
    )
    return bound_request(request, _binding(scope))


def _ids_of(batch: View, lids: Lids) -> list[str]:
    """The ids of documents that were read for a streaming search."""
    found = batch.store.multi_get([gid.tobytes() for gid in batch.gids[lids]])
    return ["" if document is None else document.id for document in found]


def _binding(scope: Scope) -> Binding:
    """How expressions over the columns of one document type are bound."""
    return Binding(
        node=lambda expression, given: bind(expression, replace(scope, given=given) if given else scope),
        filter=lambda wanted: bind_filter(wanted, scope),
        within=lambda array: _binding(scope.within(array)),
    )
