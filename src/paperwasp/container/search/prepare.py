"""From the parameters of a request to the query that is prepared for all requests of its shape.

Most of what can be wrong with a query is found here or by `PreparedQuery.bind`, before a content node sees it: sources,
document types, fields, sort keys, inputs, rank profiles, summary classes. The node finds the rest: an attribute that
cannot limit matching, `searchAfter` of a query with other sort keys, tensors that need too much memory.
Vespa: https://docs.vespa.ai/en/querying/federation.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from paperwasp import limits
from paperwasp.application.query_profiles import ResolvedProfile
from paperwasp.base.records import replace
from paperwasp.container.search.binding import Answering, PreparedCluster, PreparedQuery, ReadyQuery, Window
from paperwasp.container.search.collapse import prefetched
from paperwasp.container.search.config import SearchConfig, Target
from paperwasp.container.search.global_ranking import GlobalRanking, check_order
from paperwasp.container.search.grouping import prepare_grouping
from paperwasp.container.search.inputs import InputTypes, input_types
from paperwasp.container.search.parameters import SWITCHED_OFF, check_search_chain, is_full_name, value_setter
from paperwasp.container.search.rewrites import (
    Failing,
    choose_checks,
    choose_rewrites,
    choose_significance,
    choose_terms,
)
from paperwasp.container.search.rules import RuledTree, rule_base_of, ruled
from paperwasp.container.search.setters import Setter
from paperwasp.container.search.settings import RequestValues, SearchParameters
from paperwasp.container.search.sorting import check_features, completed, in_any_case, keys_of_yql, read_sorting, sorts
from paperwasp.container.search.tree import read_statement, said_language, tree_template
from paperwasp.container.search.values import LIST_FEATURES_TIMEOUT_MS
from paperwasp.errors import IllegalQuery, InvalidQuery, PaperwaspError
from paperwasp.query_languages.yql import YqlQuery
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.query_languages.yql.statement import StatementTemplate
from paperwasp.schema.model import Schema
from paperwasp.schema.teaser_settings import Tags
from paperwasp.search.features.kept_profiles import ENTRY_BYTES
from paperwasp.search.operators.boolean import FalseItem
from paperwasp.search.operators.item import Item
from paperwasp.search.query import Match, Observe, QueryDeadline, Rank, Show, SortKey
from paperwasp.text.parsing.tokens import did_you_mean


def prepare_and_bind(
    config: SearchConfig, parameters: SearchParameters, now_ns: int, now_seconds: float = 0
) -> ReadyQuery:
    """The query of a request, which is prepared for it alone. Errors: as `prepare_query` and `PreparedQuery.bind`."""
    return prepare_query(config, parameters).bind(parameters.values, now_ns, now_seconds)


def prepare_query(config: SearchConfig, parameters: SearchParameters) -> PreparedQuery:
    """The query of all requests with these parameters but for their values.

    What only one of several clusters cannot do is noted with that cluster. Where semantic rules rewrite the query, they
    may set `parameters`, and the query is of this request alone.
    Errors: IllegalQuery, InvalidQuery.
    """
    if parameters.expressions and not config.allows_expressions:
        raise IllegalQuery(SWITCHED_OFF)
    if parameters.search_chain:
        check_search_chain(parameters.search_chain, config.search_chains)
    template = read_statement(parameters)
    statement = None if template is None else template.statement
    targets = config.targets(_sources(parameters, statement), parameters.restrict)
    rules = _apply_rules(config, parameters, template, targets)
    if rules is not None:
        targets = config.targets(_sources(parameters, statement), parameters.restrict)
    window = _window(parameters, statement)
    order_by = _order_by(parameters, statement, targets)
    indexes = config.indexes_of(targets)
    tree = tree_template(parameters, template, indexes) if rules is None else None
    schemas = [schema for target in targets for schema in target.schemas]
    answering = _answering(config, parameters, statement, targets, order_by, rules)
    show, failure = _show(parameters, answering, schemas, config.tags)
    clusters = tuple(_cluster(config, parameters, answering, target, place) for place, target in enumerate(targets))
    try:
        clusters = _ranked_globally(config, parameters, answering, targets, clusters)
    except PaperwaspError as error:
        failure = failure or Failing(error)
    is_merged = len(clusters) > 1 or any(cluster.ranking for cluster in clusters)
    if len(targets) == len(clusters) == 1 and _shows_plain_hits(parameters, answering):
        show = replace(show, source=targets[0].cluster.id)
    grouping = prepare_grouping(parameters, statement, targets)
    if grouping is not None:
        answering = replace(answering, is_repeatable=answering.is_repeatable and grouping.is_repeatable)
    relative = parameters.now.is_relative and not parameters.now.seconds
    share = QueryDeadline().soft_share if parameters.soft_timeout_factor is None else parameters.soft_timeout_factor
    return PreparedQuery(
        parameters=replace(parameters, values=RequestValues()),
        defaults=_defaults(parameters.profile),
        statement=template,
        tree=tree,
        add_terms=choose_terms(parameters, indexes),
        rewrites=tuple(choose_rewrites(parameters, targets, indexes)),
        checks=(*choose_checks(parameters, targets), *choose_significance(config, parameters, targets)),
        said_language=said_language(parameters),
        window=window,
        answering=replace(answering, is_merged=is_merged),
        clusters=clusters,
        compiled_bytes=_compiled_bytes(clusters) if parameters.expressions else 0,
        match=Match(FalseItem(), gram_match=parameters.text.gram_match, match_phase=parameters.match_phase_override()),
        inputs=_inputs(config, parameters, schemas),
        now=None if relative else parameters.now,
        show=show,
        observe=Observe(parameters.trace.level, parameters.trace.explain_level, parameters.trace.profiled()),
        deadline=QueryDeadline(0, parameters.soft_timeout, share),
        memory_bytes=config.query_memory_bytes,
        grouping=grouping,
        failure=failure,
    )


def _defaults(profile: ResolvedProfile | None) -> tuple[tuple[Setter, str], ...]:
    """The setters, with values, of the values in a profile on which no prepared query depends."""
    given = {} if profile is None else profile.values
    setters = ((value_setter(name), value) for name, value in given.items() if is_full_name(name))
    return tuple((setter, value) for setter, value in setters if setter is not None and isinstance(value, str))


def _apply_rules(
    config: SearchConfig,
    parameters: SearchParameters,
    template: StatementTemplate | None,
    targets: tuple[Target, ...],
) -> RuledTree | None:
    """The tree after semantic rules, which may set parameters; None: there are none."""
    base = rule_base_of(config, parameters)
    if base is None:
        return None
    indexes = config.indexes_of(targets)
    return ruled(base, _whole_tree(parameters, template, indexes), parameters, indexes)


def _whole_tree(parameters: SearchParameters, statement: StatementTemplate | None, indexes: Indexes) -> Item:
    """The tree of one request with the user's text in it."""
    template, values = tree_template(parameters, statement, indexes), parameters.values
    return choose_terms(parameters, indexes)(template.complete(template.filled(values), values), values)


def _answering(
    config: SearchConfig,
    parameters: SearchParameters,
    statement: YqlQuery | None,
    targets: tuple[Target, ...],
    order_by: tuple[SortKey, ...],
    rules: RuledTree | None,
) -> Answering:
    schemas = [schema for target in targets for schema in target.schemas]
    summary = parameters.presentation.summary
    listed = parameters.select_fields if statement is None else (*parameters.select_fields, *statement.fields)
    is_known = any(summary in schema.summaries for schema in schemas)
    expressions = parameters.rank_expressions()
    return Answering(
        summary_fields=(*parameters.presentation.summary_fields, *listed),
        order_by=order_by,
        rules=rules,
        is_repeatable=all(config.is_repeatable(schema, parameters.rank_profile, expressions) for schema in schemas),
        without_summary=_without_summary(summary, targets) if is_known else frozenset(),
        clusters=tuple(target.cluster.id for target in targets),
    )


def _without_summary(summary: str, targets: tuple[Target, ...]) -> frozenset[tuple[str, str]]:
    """(content cluster, document type) of those that find hits and have nothing to show of them. Types of mode
    streaming find none: their summaries are made with them."""
    return frozenset(
        (target.cluster.id, schema.name)
        for target in targets
        for schema in target.schemas
        if summary not in schema.summaries and schema.document.name not in target.cluster.streamed
    )


def _inputs(config: SearchConfig, parameters: SearchParameters, schemas: Sequence[Schema]) -> InputTypes | Failing:
    names, by_profile = parameters.values.inputs, parameters.input_types
    try:
        return input_types(names, by_profile, schemas, parameters.rank_profile, config.embedders)
    except PaperwaspError as error:
        return Failing(error)


def _show(
    parameters: SearchParameters, answering: Answering, schemas: Sequence[Schema], tags: Tags
) -> tuple[Show, Failing | None]:
    shown, failure = parameters.presentation, None
    prefetch: tuple[str, ...] = ()
    if parameters.collapse.fields:
        try:
            prefetch = prefetched(parameters.collapse, schemas)
        except PaperwaspError as error:
            failure = Failing(error)
    show = Show(
        shown.summary,
        answering.summary_fields,
        shown.bolding,
        parameters.list_features,
        shown.tensor_form,
        shown.format == "cbor",
        prefetch,
        tags=tags,
        objects=shown.objects(),
    )
    return show, failure


def _shows_plain_hits(parameters: SearchParameters, answering: Answering) -> bool:
    """Whether hits of one query of a cluster are needed for nothing but to be shown as JSON, so that the cluster may
    render them itself; where it ranks them by a global phase, only if it does that itself, too."""
    return (
        parameters.presentation.format == "json"
        and not parameters.collapse.fields
        and not (parameters.trace.level and parameters.trace.explain_level)
        and not answering.without_summary
    )


def _cluster(
    config: SearchConfig, parameters: SearchParameters, answering: Answering, target: Target, place: int
) -> PreparedCluster:
    """Asks those document types that have what the query needs."""
    profile, summary = parameters.rank_profile, parameters.presentation.summary
    unknown = _unknown_summaries(summary, target, answering)
    expressions = parameters.rank_expressions()
    why_not = {schema.name: config.profile_problem(schema, profile, expressions) for schema in target.schemas}
    problems = [InvalidQuery(problem) if problem else unknown.get(name) for name, problem in why_not.items()]
    errors = [problem for problem in problems if problem is not None]
    left = tuple(schema for schema, problem in zip(target.schemas, problems, strict=True) if problem is None)
    cluster = target.cluster
    for key in answering.order_by:
        if left and not any(sorts(schema, key) for schema in left):
            errors.append(InvalidQuery(f"The cluster {cluster.id} has no sortable attribute named: {key.field}"))
            left = ()
    if not left:
        return PreparedCluster(cluster.id, place, None, tuple(errors), limits=cluster.limits)
    rank = Rank(
        profile,
        properties=parameters.rank_properties,
        features=parameters.features,
        override=parameters.ranking_override(),
        expressions=expressions,
    )
    types = () if len(left) == len(cluster.schemas) else tuple(schema.name for schema in left)
    return PreparedCluster(cluster.id, place, rank, tuple(errors), types, limits=cluster.limits)


def _unknown_summaries(summary: str, target: Target, answering: Answering) -> Mapping[str, PaperwaspError]:
    """Names of the types that are not searched, as they do not have the summary class → the error.

    Vespa: StreamingBackend.java, IndexedBackend.java
    """
    bare = {name for _, name in answering.without_summary}
    hint = did_you_mean(summary, {name for schema in target.schemas for name in schema.summaries})
    message = f"invalid presentation.summary={summary}{hint}"
    return {
        schema.name: (IllegalQuery if schema.document.name in target.cluster.streamed else InvalidQuery)(message)
        for schema in target.schemas
        if summary not in schema.summaries and schema.name not in bare
    }


def _ranked_globally(
    config: SearchConfig,
    parameters: SearchParameters,
    answering: Answering,
    targets: tuple[Target, ...],
    clusters: tuple[PreparedCluster, ...],
) -> tuple[PreparedCluster, ...]:
    """The clusters, with a query for each document type on its own where a global phase ranks its merged hits.

    Errors: IllegalQuery.
    """
    expressions = parameters.rank_expressions()
    rankings = {
        (target.cluster.id, schema.name): GlobalRanking.of(
            config.global_phase(schema, parameters.rank_profile, expressions), parameters.global_phase
        )
        for target in targets
        for schema in target.schemas
    }
    if not any(rankings.values()):
        return clusters
    check_order(answering.order_by)
    if parameters.values.search_after is not None:
        raise IllegalQuery("'searchAfter' does not go together with a global phase")
    parts: list[PreparedCluster] = []
    for cluster in clusters:
        names = [name for of, name in rankings if of == cluster.cluster]
        if cluster.rank is None or not any(rankings[cluster.cluster, name] for name in names):
            parts.append(cluster)
            continue
        errors = cluster.errors
        for name in cluster.document_types or names:
            ranking = rankings[cluster.cluster, name]
            rank = replace(cluster.rank, global_hits=ranking.rerank_count if ranking else 0)
            parts.append(replace(cluster, rank=rank, errors=errors, document_types=(name,), ranking=ranking))
            errors = ()
    return tuple(parts)


def _compiled_bytes(clusters: tuple[PreparedCluster, ...]) -> int:
    """The memory of the global phases of a query that brings expressions."""
    phases = (cluster.ranking.phase for cluster in clusters if cluster.ranking is not None)
    return sum(ENTRY_BYTES + phase.program.size_bytes for phase in phases)


def _sources(parameters: SearchParameters, statement: YqlQuery | None) -> tuple[str, ...]:
    """Return the sources of `from` and of the parameter; `from sources *` sets the parameter aside."""
    if statement is None or not statement.sources:
        return () if parameters.yql else parameters.sources
    return (*parameters.sources, *statement.sources)


def _window(parameters: SearchParameters, statement: YqlQuery | None) -> Window:
    """Errors: InvalidQuery."""
    timeout_ms: float | None = None if statement is None else statement.timeout_ms
    if parameters.list_features:
        timeout_ms = LIST_FEATURES_TIMEOUT_MS
    if statement is None or statement.hits is None or statement.offset is None:
        return Window(None, None, timeout_ms, parameters.is_estimate)
    hits, offset = statement.hits, statement.offset
    if offset > parameters.max_offset:
        raise InvalidQuery(f"Requested offset {offset}, but the max offset allowed is {parameters.max_offset}.")
    if hits > parameters.max_hits:
        raise InvalidQuery(f"Requested {hits} hits returned, but max hits allowed is {parameters.max_hits}.")
    return Window(hits, offset, timeout_ms, parameters.is_estimate)


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
