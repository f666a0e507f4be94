"""The step that groups hits: those of each document type, or of each batch of a streaming search, then all together.

All matches are grouped, with the scores that ranking gives them in the end. Vespa: matching/matcher.cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import repeat
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.content.view import View
from paperwasp.grouping.aggregator import State
from paperwasp.grouping.aggregators.summary import HitsState
from paperwasp.grouping.binding import Binding, BoundRequest, bound_request
from paperwasp.grouping.execution import Hits, execute
from paperwasp.grouping.expressions import Scope, bind
from paperwasp.grouping.filters import bind_filter
from paperwasp.grouping.merging import merged
from paperwasp.grouping.node import Lids
from paperwasp.grouping.partial import Groups, PartialResult
from paperwasp.grouping.request import GroupingRequest
from paperwasp.search.bound import BoundQuery
from paperwasp.search.fill import hits_of
from paperwasp.search.query import Query
from paperwasp.search.ranked import RankedHits
from paperwasp.search.summary import SummaryForms

DocumentIds = Callable[[Lids], Sequence[str]]
Places = NDArray[np.intp]
"""The numbers of hits, in the order of their lids."""
_NO_SCOPE: Final = Scope()


class HitGroups:
    """The groups of a query's hits, which are added document type by document type, or batch by batch."""

    def __init__(self, query: Query, forms: SummaryForms, *, is_one: bool) -> None:
        """`is_one`: whether all hits are added at once, so that levels may be cut while they are grouped."""
        self._query = query
        self._forms = forms
        self._is_one = is_one
        self._parts: list[tuple[PartialResult, ...]] = []

    def add(self, view: View, bound: BoundQuery, ranked: RankedHits) -> None:
        """Group all hits of one document type, in their order. Errors: InvalidQuery, OutOfTime."""
        order = np.argsort(ranked.lids)
        hits = Hits(ranked.lids[order], ranked.scores[order], order if bound.levels else None)
        ids = None if view.own_lids is None else lambda lids: _ids_of(view, lids)
        found = (execute(_bound(request, bound, ids), hits, cuts=self._is_one) for request in self._query.groupings)
        self._parts.append(tuple(self._written(result, view, ranked, order) for result in found))

    def results(self) -> tuple[PartialResult, ...]:
        """The groups of all hits that were added, one result for each request."""
        if self._is_one or not self._parts:
            return self._parts[0] if self._parts else ()
        requests, parts = self._query.groupings, zip(*self._parts, strict=True)
        return tuple(
            merged(request, of_types, _binding(_NO_SCOPE)) for request, of_types in zip(requests, parts, strict=True)
        )

    def _written(self, result: PartialResult, view: View, ranked: RankedHits, order: Places) -> PartialResult:
        """The result with the hits of its groups as they are shown."""
        levels = tuple(
            Groups(
                level.tag,
                level.parents,
                level.ids,
                level.relevances,
                tuple(self._shown(state, view, ranked, order) for state in level.states),
            )
            for level in result.levels
        )
        return replace(result, levels=levels)

    def _shown(self, state: State, view: View, ranked: RankedHits, order: Places) -> State:
        if not isinstance(state, HitsState):
            return state
        query = self._query
        if state.summary:
            query = replace(query, show=replace(query.show, summary=state.summary))
        lids, places = np.unique(state.lids, return_inverse=True)
        numbers = order[np.searchsorted(ranked.lids[order], lids)]
        written = np.empty(len(lids), np.object_)
        written[:] = hits_of(view, query, ranked, numbers.tolist(), repeat(None), self._forms)
        return state.written(written[places])


def _bound(request: GroupingRequest, bound: BoundQuery, document_ids: DocumentIds | None) -> BoundRequest:
    setting = bound.setting
    scope = Scope(
        setting.space.columns, request.time_offset_seconds, int(setting.now_seconds), document_ids=document_ids
    )
    return bound_request(request, _binding(scope))


def _ids_of(batch: View, lids: Lids) -> list[str]:
    """The ids of documents that were read for a streaming search."""
    found = batch.store.multi_get([gid.tobytes() for gid in batch.gids[lids]])
    return ["" if document is None else document.id for document in found]


def _binding(scope: Scope) -> Binding:
    """How expressions over the columns of one document type are bound."""
    return Binding(
        node=lambda expression, given: bind(expression, replace(scope, given=given)),
        filter=lambda wanted: bind_filter(wanted, scope),
        within=lambda array: _binding(scope.within(array)),
    )
