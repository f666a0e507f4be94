"""The answers of the content clusters as one result.

Vespa: https://docs.vespa.ai/en/querying/federation.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from heapq import merge
from itertools import chain, islice, repeat
from typing import Any, Final, ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.container.search.binding import ClusterQuery, ReadyQuery
from paperwasp.container.search.global_ranking import GlobalRanking
from paperwasp.container.search.paging import token_of
from paperwasp.container.search.rendering import Coverage, SearchError, SearchResult
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import InvalidQuery
from paperwasp.search.grouped_hits import merged_results
from paperwasp.search.grouping.partial import PartialResult
from paperwasp.search.grouping.shown_groups import ShownGroups, ShownRoot, shown, shown_facets
from paperwasp.search.query import Hit, SearchResponse, SortKey

TIMED_OUT: Final = 12
GRACE_SECONDS: Final = 0.05
"""How long a content node may overrun the deadline, which it keeps itself, before its answer is no longer awaited."""

ClusterReply = tuple[str, SearchResponse | SearchError]
"""A cluster, and what it said or the error to show for it."""
Entry = tuple[str, Hit]


def merged(ready: ReadyQuery, answers: Sequence[ClusterReply], *, soft_timeout: bool = True) -> SearchResult:
    """The page of the query's hits and offset; without `soft_timeout`, a cluster out of time gives no hits."""
    answering = ready.answering
    if len(answers) == 1 and not (answering.without_summary or ready.queries[0].errors):
        cluster, answer = answers[0]
        if isinstance(answer, SearchResponse) and (soft_timeout or not answer.timed_out):
            if not answering.is_merged:
                return _result(ready, list(zip(repeat(cluster), answer.hits)), [(cluster, answer)], [])
            if answer.is_page:
                answer = _from_offset(answer, ready.offset)
                return _result(ready, list(zip(repeat(cluster), answer.hits)), [(cluster, answer)], [])
    return _merge(ready, answers, soft_timeout)


def _from_offset(answer: SearchResponse, offset: int) -> SearchResponse:
    """The page of a cluster that ranked by the global phase itself, without the hits before the offset."""
    if not offset:
        return answer
    if answer.page is None:
        return replace(answer, hits=answer.hits[offset:])
    before, page = answer.page[:offset], answer.page[offset:]
    return replace(answer, page=page, hits=answer.hits[before.count(None) :])


def _merge(ready: ReadyQuery, answers: Sequence[ClusterReply], soft_timeout: bool) -> SearchResult:
    errors = [SearchError.of(error, query.cluster) for query in ready.queries for error in query.errors]
    found: list[tuple[str, SearchResponse]] = []
    asked = [query for query in ready.queries if query.query is not None]
    for query, (cluster, answer) in zip(asked, answers, strict=True):
        if isinstance(answer, SearchError):
            errors.append(answer)
        elif answer.timed_out and not soft_timeout:
            errors.append(SearchError(TIMED_OUT, f"Timed out after {query.timeout_ms(ready):g} ms", cluster))
        else:
            if answer.is_page:
                answer = _from_offset(answer, ready.offset)
            elif query.ranking is not None:
                answer = _rerank(query.ranking, answer)
            found.append((cluster, answer))
    hits = _merged_hits(ready, found)
    bare = {cluster for cluster, hit in hits if (cluster, hit.document_type) in ready.answering.without_summary}
    errors += [_no_summary(query) for query in ready.queries if query.cluster in bare and query.query is not None]
    return _result(ready, hits, found, errors)


def _result(
    ready: ReadyQuery, hits: list[Entry], found: Sequence[tuple[str, SearchResponse]], errors: list[SearchError]
) -> SearchResult:
    """The result of a page, and what the clusters count for it."""
    return SearchResult(
        hits=hits,
        page=found[0][1].page if len(found) == 1 else None,
        total_count=sum([answer.total_count for _, answer in found]),
        coverage=_coverage(found) if found else None,
        errors=errors,
        summary_fields=ready.answering.summary_fields,
        bare_types=ready.answering.without_summary,
        summary_ns=max([answer.summary_ns for _, answer in found], default=0),
        continuation=token_of(*hits[-1]) if ready.after is not None and hits and len(hits) == ready.hits else None,
        groups=_groups(ready, found) if ready.layouts else (),
        is_sorted=bool(ready.answering.order_by),
    )


def _groups(ready: ReadyQuery, found: Sequence[tuple[str, SearchResponse]]) -> list[tuple[str, ShownRoot]]:
    """The root groups, statement by statement. Each cluster has its own, as in Vespa, where groups are made in the
    chain of a cluster (GroupingExecutor.java, BlendingSearcher.java)."""
    by_cluster: dict[str, list[tuple[PartialResult, ...]]] = {}
    for cluster, answer in found:  # a global phase asks for each document type on its own
        if answer.groupings:
            by_cluster.setdefault(cluster, []).append(answer.groupings)
    requests = [request for layout in ready.layouts for request in layout.requests]
    results = [
        (cluster, parts[0] if len(parts) == 1 else merged_results(requests, parts))
        for cluster, parts in by_cluster.items()
    ]
    roots = []
    for layout in ready.layouts:
        for cluster, of_cluster in results:
            found_by_number = {result.number: result for result in of_cluster}
            root = shown_facets(layout, found_by_number) or shown(layout, found_by_number)
            if root is not None:
                roots.append((cluster, root))
    return roots


def _no_summary(query: ClusterQuery) -> SearchError:
    """The error of a cluster with hits of a document type that does not have the summary class."""
    assert query.query is not None
    return SearchError(InvalidQuery.search_code, f"Summary '{query.query.show.summary}' does not exist", query.cluster)


def _rerank(ranking: GlobalRanking, answer: SearchResponse) -> SearchResponse:
    """Ranks the hits of an answer by the global phase; hits that it drops are not counted."""
    hits = tuple(ranking.ranked(answer.hits))
    return replace(answer, hits=hits, total_count=answer.total_count - (len(answer.hits) - len(hits)))


def _merged_hits(ready: ReadyQuery, found: Sequence[tuple[str, SearchResponse]]) -> list[Entry]:
    lists = [[(cluster, hit) for hit in answer.hits] for cluster, answer in found]
    if not ready.answering.is_merged or (len(found) == 1 and found[0][1].is_page):
        return lists[0] if lists else []
    key: Callable[[Entry], Any] = _by_relevance
    if ready.answering.order_by and not any(query.ranking for query in ready.queries):
        key = _key_of(ready.answering.order_by, [query.cluster for query in ready.queries])
    return list(islice(merge(*lists, key=key), ready.offset, ready.offset + ready.hits))


def _by_relevance(entry: Entry) -> float:
    return -entry[1].relevance


def _key_of(order_by: Sequence[SortKey], clusters: Sequence[str]) -> Callable[[Entry], tuple[Any, ...]]:
    """The key by which hits of all clusters are sorted. Only here is it known of which cluster a hit is."""
    numbers = {cluster: number for number, cluster in enumerate(sorted(clusters))}
    signs = {place: -1 if key.descending else 1 for place, key in enumerate(order_by) if key.field == "[source]"}

    def key(entry: Entry) -> tuple[Any, ...]:
        keys = entry[1].sort_keys or ()
        if not signs:
            return keys
        number = numbers[entry[0]]
        return tuple(signs[place] * number if place in signs else own for place, own in enumerate(keys))

    return key


def _coverage(found: Sequence[tuple[str, SearchResponse]]) -> Coverage:
    if len(found) == 1 and not found[0][1].degraded:
        return Coverage(found[0][1].documents, 100, 1, 1)
    answers = [answer for _, answer in found]
    documents = sum(answer.documents for answer in answers)
    searched = sum(answer.covered_documents for answer in answers)
    return Coverage(
        documents=searched,
        percent=100 * searched // documents if documents else 100,
        clusters=len(answers),
        full_clusters=sum(not answer.degraded for answer in answers),
        degraded=frozenset[str]().union(*(answer.degraded for answer in answers)),
    )


# Which answers take long to be made of what the clusters have found: these are made outside the event loop.
#
# Everything here looks at few numbers, and at none of the values.


_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


def has_many_groups(answers: Sequence[ClusterReply]) -> bool:
    """Whether the groups of the clusters take long to be put together, and to be turned into pages."""
    left = limits.INLINE_GROUPS
    for _, answer in answers:
        if not isinstance(answer, SearchResponse):
            continue
        for part in answer.groupings or ():
            left -= limits.GROUPING_AS_GROUPS + sum([len(level.parents) for level in part.levels])
            if left < 0:
                return True
    return False


def is_large(result: SearchResult, *, is_json: bool) -> bool:
    """Whether it takes long to write an answer. As JSON, what hits show of documents is written already."""
    hits, features = result.hits, 0
    size = sum(map(len, filter(None, result.page))) if result.page else 0
    if hits:
        first = hits[0][1]
        if first.match_features or first.summary_features or first.rank_features:
            kinds = (first.match_features, first.summary_features, first.rank_features)
            features = sum(len(kind) for kind in kinds if kind)
        if features * len(hits) > limits.INLINE_FEATURES:
            return True
        if first.explanation is not None and len(hits) > limits.INLINE_EXPLANATIONS:
            return True
        size += sum(map(len, [hit.fields for _, hit in hits]))
    if size > (limits.INLINE_JSON_BYTES if is_json else limits.INLINE_XML_BYTES):
        return True
    if result.groups and _has_many([root.groups for _, root in result.groups]):
        return True
    return features > 0 and _tensor_cells(result) > limits.INLINE_TENSOR_CELLS


def yielding(work: Callable[_Given, _Made]) -> Callable[_Given, _Made]:
    """The work, which lets the event loop have the interpreter's lock soon."""

    def run(*given: _Given.args, **named: _Given.kwargs) -> _Made:
        with yielding_to_requests():
            return work(*given, **named)

    return run


def _has_many(roots: Iterable[ShownGroups]) -> bool:
    left = limits.INLINE_GROUPS
    for root in roots:
        waiting = [root]
        while waiting:
            groups = waiting.pop()
            count = len(groups.relevances)
            hits = sum([len(found) for lists in groups.hit_lists for found in lists.hits if found is not None])
            left -= limits.GROUPING_AS_GROUPS // 2 + count * (1 + len(groups.outputs)) + hits
            if left < 0:
                return True
            waiting.extend(lists.groups for lists in groups.group_lists)
    return False


def _tensor_cells(result: SearchResult) -> int:
    """The cells of all tensors among the features of hits."""
    kinds = (kind for _, hit in result.hits for kind in (hit.match_features, hit.summary_features, hit.rank_features))
    values = chain.from_iterable(kind.values() for kind in kinds if kind)
    return sum(value.cells.size for value in values if isinstance(value, Tensor))
