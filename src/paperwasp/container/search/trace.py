"""The trace of a query: what the container did with it, and what the content clusters tell, as a tree of messages.

Vespa: https://docs.vespa.ai/en/querying/query-api.html#query-tracing
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from paperwasp.container.search.binding import ClusterQuery, ReadyQuery
from paperwasp.container.search.merge import ClusterReply
from paperwasp.container.search.rendering import SearchResult
from paperwasp.container.search.settings import SearchParameters
from paperwasp.search.query import Query, SearchResponse

Step = dict[str, Any]


def trace_of(
    ready: ReadyQuery,
    parameters: SearchParameters,
    answers: Sequence[ClusterReply],
    result: SearchResult,
    elapsed_ms: int,
) -> list[Step]:
    """The steps of the query; more of them at higher levels."""
    used = f"Using {parameters.profile}" if parameters.profile else "No query profile is used"
    steps = [_step(parameters, 0, used)]
    steps += rule_steps(ready, parameters)
    if parameters.yql and parameters.trace.level >= 2 and parameters.trace.query:
        steps.append(_step(parameters, 0, f"YQL query parsed: [{ready.tree.to_yql()}]"))
    if ready.layouts and parameters.trace.level >= 3:
        steps.append(_step(parameters, 0, "Grouping in 1 passes."))  # Vespa has one more for each level
    asked = list(_of_clusters(ready, parameters, answers, elapsed_ms))
    if parameters.trace.level >= 2:
        shown = f"{result.hit_count} hits of {result.total_count} merged, {len(result.errors)} errors"
        asked.append(_step(parameters, elapsed_ms, shown))
    return [*steps, {"children": asked}]


def rule_steps(ready: ReadyQuery, parameters: SearchParameters) -> list[Step]:
    """The trace of semantic rules, as far as `tracelevel.rules` requests it, and the query that they made."""
    if ready.answering.rules is None:
        return []
    steps = [_step(parameters, 0, message) for message in ready.answering.rules.trace]
    if ready.answering.rules.fired and parameters.trace.level:
        query = f": [{ready.tree.to_yql()}]" if parameters.trace.query else ""
        steps.append(_step(parameters, 0, f"SemanticSearcher: Rewrote query{query}"))
    return steps


def _of_clusters(
    ready: ReadyQuery, parameters: SearchParameters, answers: Sequence[ClusterReply], elapsed_ms: int
) -> Iterator[Step]:
    """The query to each cluster, and the cluster's own trace."""
    given = iter(answers)
    for query in ready.queries:
        if query.query is None:
            continue
        yield _step(parameters, 0, _describe_query(query, query.query, ready, parameters))
        _, answer = next(given, ("", None))
        if isinstance(answer, SearchResponse) and answer.trace:
            yield _step(parameters, elapsed_ms, answer.trace)


def _step(parameters: SearchParameters, timestamp_ms: int, message: object) -> Step:
    return {"timestamp": timestamp_ms, "message": message} if parameters.trace.timestamps else {"message": message}


def _describe_query(query: ClusterQuery, asked: Query, ready: ReadyQuery, parameters: SearchParameters) -> str:
    said = f"query=[{ready.tree.to_yql()}] " if parameters.trace.query else ""
    types = f" restrict=[{','.join(asked.match.document_types)}]" if asked.match.document_types else ""
    return (
        f"{query.cluster}: {said}timeout={query.timeout_ms(ready):g}ms "
        f"offset={asked.order.offset} hits={asked.order.hits} rankprofile[{asked.rank.profile}]{types}"
    )
