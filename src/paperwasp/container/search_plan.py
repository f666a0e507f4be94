"""From the parameters of a request to one SearchRequest for each content cluster that can answer.

Everything that can be wrong with a query is found here, before a content node sees it: sources, document types, fields,
sort keys, inputs, rank profiles, summary classes.
Vespa: https://docs.vespa.ai/en/querying/federation.html
"""

from __future__ import annotations

from dataclasses import dataclass

from paperwasp.container.search_after import After, read_after
from paperwasp.container.search_collapse import prefetched
from paperwasp.container.search_config import SearchConfig, Target
from paperwasp.container.search_inputs import typed_inputs
from paperwasp.container.search_settings import SearchParameters
from paperwasp.container.search_sorting import completed, keys_of_yql, read_sorting, sorts
from paperwasp.container.search_tree import language_of, query_tree, read_statement
from paperwasp.content.messages import SearchRequest, SortKey
from paperwasp.errors import IllegalQuery, InvalidQuery, PaperwaspError
from paperwasp.query.items import Item
from paperwasp.schema.model import Schema
from paperwasp.yql import YqlQuery


@dataclass(frozen=True, slots=True)
class ClusterQuery:
    """What one cluster is asked, and why some of its document types are not; no request: none of them is."""

    cluster: str
    request: SearchRequest | None
    errors: tuple[PaperwaspError, ...] = ()


@dataclass(slots=True)
class SearchPlan:
    """A query, ready to be sent. `hits` and `offset` are of the merged result."""

    tree: Item
    hits: int
    offset: int
    timeout_ms: float
    summary_fields: tuple[str, ...]
    order_by: tuple[SortKey, ...] = ()
    after: After | None = None
    """Where the page before ended; None: pages do not follow each other."""
    queries: tuple[ClusterQuery, ...] = ()


def plan_search(config: SearchConfig, parameters: SearchParameters, now_ns: int, now_seconds: float = 0) -> SearchPlan:
    """The plan of a request that started at `now_ns` on the monotonic clock, and at `now_seconds` since 1970.

    What only one of several clusters cannot do is noted in its ClusterQuery.
    Errors: IllegalQuery, InvalidQuery.
    """
    statement = read_statement(parameters)
    targets = config.targets(_sources(parameters, statement), parameters.restrict)
    hits, offset = _window(parameters, statement)
    order_by = _order_by(parameters, statement, targets)
    plan = SearchPlan(
        tree=query_tree(parameters, statement, targets, config.indexes_of(targets)),
        hits=0 if parameters.is_estimate else hits,
        offset=offset,
        timeout_ms=_timeout_ms(parameters, statement),
        summary_fields=_summary_fields(parameters, statement),
        order_by=order_by,
        after=_after(parameters, offset, len(order_by)),
    )
    asked = _request(plan, targets, parameters, now_ns, now_seconds)
    plan.queries = tuple(_cluster_query(asked, target, number, plan) for number, target in enumerate(targets))
    return plan


def _request(
    plan: SearchPlan, targets: tuple[Target, ...], parameters: SearchParameters, now_ns: int, now_seconds: float
) -> SearchRequest:
    """What every cluster is asked. Where results are merged, each gives all that could be among the best."""
    merge = len(targets) > 1
    schemas = [schema for target in targets for schema in target.schemas]
    shown, now = parameters.presentation, parameters.now
    factor = parameters.soft_timeout_factor
    request = SearchRequest(
        tree=plan.tree,
        rank_profile=parameters.rank_profile,
        hits=plan.hits + plan.offset if merge else plan.hits,
        offset=0 if merge else plan.offset,
        order_by=plan.order_by,
        inputs=typed_inputs(parameters.inputs, parameters.input_types, schemas, parameters.rank_profile),
        rank_properties=parameters.rank_properties,
        summary=shown.summary,
        summary_fields=plan.summary_fields,
        bolding=shown.bolding,
        list_features=parameters.list_features,
        deadline_ns=now_ns + int(plan.timeout_ms * 1e6),
        language=language_of(parameters.text),
        soft_timeout=parameters.soft_timeout,
        match_phase=parameters.match_phase_override(),
        ranking=parameters.ranking_override(),
        tensor_form=shown.tensor_form,
        streaming=parameters.streamed(),
        prefetch=prefetched(parameters.collapse, targets) if parameters.collapse.fields else (),
        trace_level=parameters.trace.level,
        explain_level=parameters.trace.explain_level,
    )
    changes: dict[str, object] = {}
    if factor is not None:
        changes["soft_timeout_factor"] = factor
    if now.seconds or not now.is_relative:
        changes["now_seconds"] = now_seconds - now.seconds if now.is_relative else now.seconds
    return replace(request, **changes) if changes else request  # type: ignore[arg-type]


def _cluster_query(asked: SearchRequest, target: Target, number: int, plan: SearchPlan) -> ClusterQuery:
    """Asks those document types that have what the query needs."""
    problems = [_problem(schema, asked) for schema in target.schemas]
    errors = [problem for problem in problems if problem is not None]
    left = tuple(schema for schema, problem in zip(target.schemas, problems, strict=True) if problem is None)
    cluster = target.cluster
    for key in asked.order_by:
        if left and not any(sorts(schema, key) for schema in left):
            errors.append(InvalidQuery(f"The cluster {cluster.id} has no sortable attribute named: {key.field}"))
            left = ()
    if not left:
        return ClusterQuery(cluster.id, None, tuple(errors))
    if len(left) < len(cluster.schemas):
        asked = replace(asked, document_types=tuple(schema.name for schema in left))
    if plan.after is not None:
        asked = replace(asked, search_after=plan.after.within(cluster.id, number))
    return ClusterQuery(cluster.id, asked, tuple(errors))


def _problem(schema: Schema, asked: SearchRequest) -> PaperwaspError | None:
    """Why documents of this type cannot be searched."""
    if asked.rank_profile not in schema.rank_profiles:
        return InvalidQuery(f"schema '{schema.name}' does not contain requested rank profile '{asked.rank_profile}'")
    if asked.summary not in schema.summaries:
        return InvalidQuery(f"invalid presentation.summary={asked.summary}")
    return None
