"""From the parameters of a request to one Query for each content cluster that can answer.

Everything that can be wrong with a query is found here, before a content node sees it: sources, document types, fields,
sort keys, inputs, rank profiles, summary classes.
Vespa: https://docs.vespa.ai/en/querying/federation.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from paperwasp import limits
from paperwasp.container.search.after import After, read_after
from paperwasp.container.search.checks import check_query
from paperwasp.container.search.collapse import prefetched
from paperwasp.container.search.config import SearchConfig, Target
from paperwasp.container.search.global_ranking import GlobalRanking, check_order
from paperwasp.container.search.inputs import typed_inputs
from paperwasp.container.search.rules import RuledTree, rule_base_of, ruled
from paperwasp.container.search.settings import SearchParameters
from paperwasp.container.search.significance import uses_model, with_model, with_properties
from paperwasp.container.search.sorting import check_features, completed, in_any_case, keys_of_yql, read_sorting, sorts
from paperwasp.container.search.tree import language_of, query_tree, read_statement, whole_tree
from paperwasp.errors import IllegalQuery, InvalidQuery, PaperwaspError
from paperwasp.query.items import Item
from paperwasp.schema.model import Schema
from paperwasp.search.query import Deadline, Match, Observe, Order, Query, Rank, Show, SortKey
from paperwasp.yql import YqlQuery


@dataclass(frozen=True, slots=True)
class ClusterQuery:
    """What one cluster is asked, and why some of its document types are not; no query: none of them is."""

    cluster: str
    query: Query | None
    errors: tuple[PaperwaspError, ...] = ()
    ranking: GlobalRanking | None = None
    """What ranks its hits anew; then it is asked for documents of one type."""

    def in_window(self, offset: int, hits: int) -> ClusterQuery:
        """Return the same for another page. The global phase needs all hits that it may rank."""
        if self.query is None:
            return self
        wanted = hits if self.ranking is None else max(hits, self.ranking.rerank_count)
        return replace(self, query=replace(self.query, order=replace(self.query.order, offset=offset, hits=wanted)))

    def showing(self, summary: str) -> ClusterQuery:
        """Return the same with all fields of another summary class."""
        if self.query is None:
            return self
        return replace(self, query=replace(self.query, show=replace(self.query.show, summary=summary, fields=())))


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
    rules: RuledTree | None = None
    """What semantic rules made of the query, and told; None: there are none for it."""
    is_repeatable: bool = True
    """Whether the answer depends on nothing but the documents: neither on the time nor on chance."""
    without_summary: frozenset[tuple[str, str]] = frozenset()
    """(content cluster, document type) of the types without the summary class, which others have: nothing is shown of
    their hits."""

    def window(self, offset: int, hits: int) -> SearchPlan:
        """The same query for other hits."""
        window = (0, offset + hits) if self.is_merged else (offset, hits)
        queries = tuple(query.in_window(*window) for query in self.queries)
        return replace(self, hits=hits, offset=offset, queries=queries)

    @property
    def is_merged(self) -> bool:
        """Whether the page is made of more hits than it has."""
        return len(self.queries) > 1 or any(query.ranking is not None for query in self.queries)

    def showing(self, summary: str) -> SearchPlan:
        """The same query with another summary class, and all that it shows."""
        queries = tuple(query.showing(summary) for query in self.queries)
        return replace(self, summary_fields=(), queries=queries, without_summary=frozenset())


def plan_search(config: SearchConfig, parameters: SearchParameters, now_ns: int, now_seconds: float = 0) -> SearchPlan:
    """The plan of a request that started at `now_ns` on the monotonic clock, and at `now_seconds` since 1970.

    What only one of several clusters cannot do is noted in its ClusterQuery.
    Errors: IllegalQuery, InvalidQuery.
    """
    statement = read_statement(parameters)
    targets = config.targets(_sources(parameters, statement), parameters.restrict)
    base = rule_base_of(config, parameters)
    found = None
    if base is not None:
        indexes = config.indexes_of(targets)
        found = ruled(base, query_tree(parameters, statement, indexes), parameters, indexes)
        targets = config.targets(_sources(parameters, statement), parameters.restrict)
    hits, offset = _window(parameters, statement)
    order_by = _order_by(parameters, statement, targets)
    indexes = config.indexes_of(targets)
    tree = query_tree(parameters, statement, indexes) if found is None else found.tree
    plan = SearchPlan(
        tree=whole_tree(tree, parameters, targets, indexes),
        hits=0 if parameters.is_estimate else hits,
        offset=offset,
        timeout_ms=_timeout_ms(parameters, statement),
        summary_fields=_summary_fields(parameters, statement),
        order_by=order_by,
        after=_after(parameters, offset, targets, order_by),
        rules=found,
    )
    check_query(plan.tree, parameters, targets)
    profile = parameters.rank_profile
    language = language_of(parameters, statement)
    schemas = [schema for target in targets for schema in target.schemas]
    if uses_model(parameters.use_significance_model, schemas, profile):
        said = parameters.text.language or parameters.text.locale
        plan.tree = with_model(plan.tree, config.significance, said, language)
    plan.tree = with_properties(plan.tree, parameters.rank_properties)
    plan.is_repeatable = all(config.is_repeatable(schema, profile) for schema in schemas)
    if any(parameters.presentation.summary in schema.summaries for schema in schemas):
        plan.without_summary = _without_summary(parameters.presentation.summary, targets)
    query = _query(plan, targets, parameters, language, now_ns, now_seconds)
    plan.queries = tuple(_cluster_query(config, query, target, number, plan) for number, target in enumerate(targets))
    if any(config.global_phase(schema, profile) for schema in schemas):
        _rank_globally(plan, config, targets, parameters)
    return plan


def _without_summary(summary: str, targets: tuple[Target, ...]) -> frozenset[tuple[str, str]]:
    return frozenset(
        (target.cluster.id, schema.name)
        for target in targets
        for schema in target.schemas
        if summary not in schema.summaries
    )


def _rank_globally(
    plan: SearchPlan, config: SearchConfig, targets: tuple[Target, ...], parameters: SearchParameters
) -> None:
    """Asks for documents of each type on its own where their hits are ranked anew once they are merged."""
    rankings = {
        (target.cluster.id, schema.name): GlobalRanking.of(
            config.global_phase(schema, parameters.rank_profile), parameters.global_phase
        )
        for target in targets
        for schema in target.schemas
    }
    if not any(rankings.values()):
        return
    check_order(plan.order_by)
    if plan.after is not None:
        raise IllegalQuery("'searchAfter' does not go together with a global phase")
    parts: list[ClusterQuery] = []
    for query in plan.queries:
        names = [name for cluster, name in rankings if cluster == query.cluster]
        if query.query is None or not any(rankings[query.cluster, name] for name in names):
            parts.append(query)
            continue
        errors = query.errors
        for name in query.query.match.document_types or names:
            ranking = rankings[query.cluster, name]
            own = _of_type(query.query, name, ranking.rerank_count if ranking else 0)
            parts.append(ClusterQuery(query.cluster, own, errors, ranking))
            errors = ()
    plan.queries = tuple(parts)
    plan.queries = plan.window(plan.offset, plan.hits).queries


def _of_type(query: Query, name: str, global_hits: int) -> Query:
    """Return the query of one document type, whose best `global_hits` the global phase ranks."""
    match, rank = replace(query.match, document_types=(name,)), replace(query.rank, global_hits=global_hits)
    return replace(query, match=match, rank=rank)


def _query(
    plan: SearchPlan,
    targets: tuple[Target, ...],
    parameters: SearchParameters,
    language: str,
    now_ns: int,
    now_seconds: float,
) -> Query:
    """What every cluster is asked. Where results are merged, each gives all that could be among the best."""
    merge = len(targets) > 1
    trace = parameters.trace
    schemas = [schema for target in targets for schema in target.schemas]
    deadline = Deadline(now_ns + int(plan.timeout_ms * 1e6), parameters.soft_timeout)
    if parameters.soft_timeout_factor is not None:
        deadline = replace(deadline, soft_share=parameters.soft_timeout_factor)
    return Query(
        Match(
            plan.tree,
            language=language,
            gram_match=parameters.text.gram_match,
            match_phase=parameters.match_phase_override(),
            streaming=parameters.streamed(),
        ),
        _rank(parameters, schemas, now_seconds),
        Order(plan.hits + plan.offset if merge else plan.hits, 0 if merge else plan.offset, plan.order_by),
        _show(plan, parameters, schemas),
        Observe(trace.level, trace.explain_level, trace.profiled()),
        deadline,
    )


def _rank(parameters: SearchParameters, schemas: Sequence[Schema], now_seconds: float) -> Rank:
    now, time = parameters.now, None
    if now.seconds or not now.is_relative:
        time = now_seconds - now.seconds if now.is_relative else now.seconds
    inputs: Mapping[str, object] = {}
    if parameters.inputs:
        inputs = typed_inputs(parameters.inputs, parameters.input_types, schemas, parameters.rank_profile)
    return Rank(
        parameters.rank_profile,
        inputs,
        parameters.rank_properties,
        parameters.features,
        parameters.ranking_override(),
        time,
    )


def _show(plan: SearchPlan, parameters: SearchParameters, schemas: Sequence[Schema]) -> Show:
    shown = parameters.presentation
    return Show(
        shown.summary,
        plan.summary_fields,
        shown.bolding,
        parameters.list_features,
        shown.tensor_form,
        shown.format == "cbor",
        prefetched(parameters.collapse, schemas) if parameters.collapse.fields else (),
    )


def _cluster_query(config: SearchConfig, query: Query, target: Target, number: int, plan: SearchPlan) -> ClusterQuery:
    """Asks those document types that have what the query needs."""
    profile, summary = query.rank.profile, query.show.summary
    unknown = {schema.name for schema in target.schemas if summary not in schema.summaries}
    unknown -= {name for _, name in plan.without_summary}
    problems = [_problem(config, schema, profile, summary, schema.name in unknown) for schema in target.schemas]
    errors = [problem for problem in problems if problem is not None]
    left = tuple(schema for schema, problem in zip(target.schemas, problems, strict=True) if problem is None)
    cluster = target.cluster
    for key in plan.order_by:
        if left and not any(sorts(schema, key) for schema in left):
            errors.append(InvalidQuery(f"The cluster {cluster.id} has no sortable attribute named: {key.field}"))
            left = ()
    if not left:
        return ClusterQuery(cluster.id, None, tuple(errors))
    if len(left) < len(cluster.schemas):
        query = replace(query, match=replace(query.match, document_types=tuple(schema.name for schema in left)))
    if plan.after is not None:
        query = replace(query, order=replace(query.order, after=plan.after.within(number)))
    return ClusterQuery(cluster.id, query, tuple(errors))


def _problem(
    config: SearchConfig, schema: Schema, rank_profile: str, summary: str, is_unknown: bool
) -> PaperwaspError | None:
    """Why documents of this type cannot be searched. `is_unknown`: no document type has the summary class."""
    if problem := config.profile_problem(schema, rank_profile):
        return InvalidQuery(problem)
    return InvalidQuery(f"invalid presentation.summary={summary}") if is_unknown else None


def _sources(parameters: SearchParameters, statement: YqlQuery | None) -> tuple[str, ...]:
    """Those of `from` and of the parameter; `from sources *` sets the parameter aside."""
    if statement is None or not statement.sources:
        return () if parameters.yql else parameters.sources
    return (*parameters.sources, *statement.sources)


def _timeout_ms(parameters: SearchParameters, statement: YqlQuery | None) -> float:
    if statement is None or statement.timeout_ms is None:
        return parameters.timeout_ms
    return statement.timeout_ms


def _summary_fields(parameters: SearchParameters, statement: YqlQuery | None) -> tuple[str, ...]:
    listed = parameters.select_fields if statement is None else (*parameters.select_fields, *statement.fields)
    return (*parameters.presentation.summary_fields, *listed)


def _window(parameters: SearchParameters, statement: YqlQuery | None) -> tuple[int, int]:
    """Hits and offset. Errors: InvalidQuery."""
    if statement is None or statement.hits is None or statement.offset is None:
        return parameters.hits, parameters.offset
    hits, offset = statement.hits, statement.offset
    if offset > parameters.max_offset:
        raise InvalidQuery(f"Requested offset {offset}, but the max offset allowed is {parameters.max_offset}.")
    if hits > parameters.max_hits:
        raise InvalidQuery(f"Requested {hits} hits returned, but max hits allowed is {parameters.max_hits}.")
    return hits, offset


def _order_by(
    parameters: SearchParameters, statement: YqlQuery | None, targets: tuple[Target, ...]
) -> tuple[SortKey, ...]:
    if statement is not None and statement.order_by:
        if len(statement.order_by) > limits.SORT_KEYS:
            raise IllegalQuery(f"'order by' has {len(statement.order_by)} keys; at most {limits.SORT_KEYS}")
        keys = keys_of_yql(statement.order_by, targets)
    elif parameters.sorting:
        keys = tuple(in_any_case(key, targets) for key in read_sorting(parameters.sorting))
    else:
        return ()
    check_features(keys, targets, parameters.rank_profile)
    return completed(keys, targets, parameters.text.locale)


def _after(
    parameters: SearchParameters, offset: int, targets: tuple[Target, ...], order_by: tuple[SortKey, ...]
) -> After | None:
    if parameters.search_after is None:
        return None
    if offset:
        raise IllegalQuery("'searchAfter' says where the page begins: there can be no offset beside it")
    if parameters.collapse.fields:
        raise IllegalQuery("'searchAfter' does not go together with 'collapsefield'")
    return read_after(parameters.search_after, [target.cluster.id for target in targets], len(order_by))
