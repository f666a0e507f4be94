"""Queries and what is found for them as messages, and back: for both ends of a messenger between processes.

What makes sense within one process only does not cross: compiled plans and routes (`search.text_query`) are asked for
again the general way, and hits have no rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.coordination.messages.message import Conversion, Sent
from paperwasp.coordination.messages.queries import (
    AfterPart,
    Explained,
    Found,
    FoundHit,
    GroupsPart,
    MatchPart,
    OrderPart,
    RankPart,
    Search,
    ShowPart,
)
from paperwasp.coordination.messages.trees import Tree, Trees, declared_in, subclasses
from paperwasp.coordination.messages.values import plain
from paperwasp.errors import UnreadableMessage
from paperwasp.ranking.explanation import NodeValue, PartValue
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.teaser_settings import Tags
from paperwasp.search.grouping import request
from paperwasp.search.grouping.aggregators.summary import HitsState
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.partial_bytes import partial_from_bytes, partial_to_bytes
from paperwasp.search.grouping.request import GroupingRequest
from paperwasp.search.operators.item import Item
from paperwasp.search.query import (
    Hit,
    HitExplanation,
    Match,
    Order,
    Query,
    QueryDeadline,
    Rank,
    SearchAfter,
    SearchResponse,
    Show,
)
from paperwasp.search.show.values import Objects
from paperwasp.search.yql_syntax import Annotations

_T = TypeVar("_T")


def _item_classes() -> Iterator[type]:
    yield from subclasses(Item)
    yield Annotations


ITEMS: Final = Trees(_item_classes)
"""Items of a query as trees, by the declared fields of their classes."""
GROUPINGS: Final = Trees(lambda: declared_in(request))
"""Grouping requests as trees."""


def to_search(query: Query) -> Sent:
    """The message of a query. Errors: TypeError for what cannot cross."""
    match, rank, order, show = query.match, query.rank, query.order, query.show
    expressions = None if rank.expressions is None else tuple(rank.expressions)
    after = order.after
    message = Search(
        MatchPart(
            ITEMS.to_tree(match.tree),
            match.document_types,
            match.language,
            match.gram_match,
            match.match_phase,
            match.streaming,
        ),
        RankPart(
            rank.profile,
            plain(rank.inputs),
            plain(rank.properties),
            plain(rank.features),
            rank.override,
            rank.now_seconds,
            rank.global_hits,
            rank.global_page,
            expressions,
        ),
        OrderPart(
            order.hits,
            order.offset,
            order.keys,
            None if after is None else AfterPart(after.relevance, _keys(after.sort_keys), after.gid),
        ),
        ShowPart(
            show.summary,
            show.fields,
            show.bolding,
            show.list_features,
            show.tensor_form,
            show.exact_tensors,
            show.prefetch,
            show.source,
            (show.tags.open, show.tags.close, show.tags.separator),
            tuple(show.objects),
        ),
        query.observe,
        query.deadline.is_soft,
        query.deadline.soft_share,
        tuple(map(GROUPINGS.to_tree, query.groupings)),
        query.memory_bytes,
    )
    return Sent(message, query.deadline.at_ns)


def from_search(message: Search, deadline_ns: int, _: object = None) -> Query:
    """The query of a message. Errors: UnreadableMessage."""
    match, rank, order, show = message.match, message.rank, message.order, message.show
    after = order.after
    return Query(
        Match(
            _tree_of(ITEMS, match.tree, Item),
            match.document_types,
            match.language,
            match.gram_match,
            match.match_phase,
            match.streaming,
        ),
        Rank(
            rank.profile,
            rank.inputs,
            rank.properties,
            rank.features,
            rank.override,
            rank.now_seconds,
            rank.global_hits,
            rank.global_page,
            None if rank.expressions is None else RankExpressions(*rank.expressions),
        ),
        Order(
            order.hits,
            order.offset,
            order.keys,
            None if after is None else SearchAfter(after.relevance, after.sort_keys, after.gid),
        ),
        Show(
            show.summary,
            show.fields,
            show.bolding,
            show.list_features,
            show.tensor_form,
            show.exact_tensors,
            show.prefetch,
            show.source,
            Tags(*show.tags),
            Objects(*show.objects),
        ),
        message.observe,
        QueryDeadline(deadline_ns, message.is_soft, message.soft_share),
        tuple([_tree_of(GROUPINGS, tree, GroupingRequest) for tree in message.groupings]),
        message.memory_bytes,
    )


def to_found(response: SearchResponse) -> Sent:
    """The message of an answer, whose mutations are applied. Errors: TypeError for what cannot cross."""
    listed = _Listed()
    groupings = [GroupsPart(each.number, partial_to_bytes(listed.numbered(each))) for each in response.groupings]
    message = Found(
        response.total_count,
        response.documents,
        tuple(map(_found_hit, response.hits)),
        response.coverage,
        plain(response.trace),
        response.degraded,
        response.stamp,
        response.summary_ns,
        response.page,
        response.is_page,
        tuple(groupings),
        tuple(map(_found_hit, listed.hits)),
    )
    return Sent(message)


def from_found(message: Found, _: int, query: Query) -> SearchResponse:
    """The answer to a query that a message says. Errors: UnreadableMessage; ValueError."""
    listed = np.empty(len(message.listed), np.object_)
    listed[:] = list(map(_hit, message.listed))
    requests = {request.number: request for request in query.groupings}
    groupings = [_with_hits(_partial(part, requests), listed) for part in message.groupings]
    return SearchResponse(
        message.total_count,
        message.documents,
        tuple(map(_hit, message.hits)),
        message.coverage,
        message.trace,
        message.degraded,
        message.stamp,
        message.summary_ns,
        message.page,
        message.is_page,
        groupings=tuple(groupings),
    )


def _tree_of(trees: Trees, tree: Tree, kind: type[_T]) -> _T:
    found = trees.from_tree(tree)
    if not isinstance(found, kind):
        raise UnreadableMessage(f"a tree of a message is no {kind.__name__}")
    return found


def _keys(keys: Sequence[Any]) -> tuple[tuple[int, int, Any], ...]:
    return tuple([(place, kind, plain(value)) for place, kind, value in keys])


def _found_hit(hit: Hit) -> FoundHit:
    why = hit.explanation
    return FoundHit(
        hit.gid,
        hit.document_type,
        hit.document_id,
        float(hit.relevance),
        hit.fields,
        plain(hit.match_features),
        plain(hit.summary_features),
        plain(hit.rank_features),
        hit.show_document_id,
        None if hit.sort_keys is None else _keys(hit.sort_keys),
        plain(hit.attributes),
        plain(hit.global_inputs),
        None if why is None else Explained(plain(why.phases), why.note, plain(why.global_values)),
    )


def _hit(found: FoundHit) -> Hit:
    why = found.explanation
    return Hit(
        found.gid,
        found.document_type,
        found.document_id,
        found.relevance,
        found.fields,
        found.match_features,
        found.summary_features,
        found.rank_features,
        found.show_document_id,
        found.sort_keys,
        found.attributes,
        global_inputs=found.global_inputs,
        explanation=None if why is None else _explanation(why),
    )


def _explanation(why: Explained) -> HitExplanation:
    values = why.global_values
    return HitExplanation(why.phases, why.note, None if values is None else tuple(map(_node_value, values)))


def _node_value(said: Any) -> NodeValue:
    value, taken, parts = said
    return NodeValue(value, taken, tuple(map(_part_value, parts)))


def _part_value(said: Any) -> PartValue:
    text, value, parts = said
    return PartValue(text, value, tuple(map(_part_value, parts)))


class _Listed:
    """The hits that lists of hits have, each once; the lists have their numbers."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []
        self._numbers: dict[int, int] = {}
        """By `id` of the hit, which the answer keeps."""

    def numbered(self, partial: PartialResult) -> PartialResult:
        """The partial result with numbers in place of its hits."""
        return _with_states(partial, self._numbered)

    def _numbered(self, state: HitsState) -> HitsState:
        if state.hits is None:
            raise TypeError("its hits are not written yet")
        numbers = [self._number_of(hit) for hit in state.hits.tolist()]
        return replace(state, lids=np.array(numbers, np.uint32), sources=np.zeros(len(numbers), np.uint32), hits=None)

    def _number_of(self, hit: Hit) -> int:
        number = self._numbers.setdefault(id(hit), len(self.hits))
        if number == len(self.hits):
            self.hits.append(hit)
        return number


def _partial(part: GroupsPart, requests: dict[int, GroupingRequest]) -> PartialResult:
    """Errors: UnreadableMessage; ValueError."""
    if part.number not in requests:
        raise UnreadableMessage(f"an answer has groups of a request {part.number} that was not made")
    return partial_from_bytes(part.data, requests[part.number])


def _with_hits(partial: PartialResult, listed: NDArray[np.object_]) -> PartialResult:
    """The partial result with hits in place of their numbers. Errors: UnreadableMessage."""

    def with_hits(state: HitsState) -> HitsState:
        if len(state.lids) and int(state.lids.max()) >= len(listed):
            raise UnreadableMessage("a list of an answer has a hit that is not there")
        return state.written(listed[state.lids])

    return _with_states(partial, with_hits)


def _with_states(partial: PartialResult, change: Callable[[HitsState], HitsState]) -> PartialResult:
    """The partial result with other lists of hits."""
    levels = [
        replace(
            level, states=tuple([change(state) if isinstance(state, HitsState) else state for state in level.states])
        )
        for level in partial.levels
    ]
    return replace(partial, levels=tuple(levels))


CONVERSIONS: Final = (
    Conversion(Query, Search, to_search, from_search),
    Conversion(SearchResponse, Found, to_found, from_found),
)
"""All that cross of what is about a query."""
