"""From the parameters of a request to one SearchRequest for each content cluster that can answer.

Everything that can be wrong with a query is found here, before a content node sees it: sources, document types, fields,
sort keys, rank profiles, summary classes.
Vespa: https://docs.vespa.ai/en/querying/federation.html
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from paperwasp.application.query_profiles import NO_QUERY_PROFILES, QueryProfiles
from paperwasp.container.search_parameters import SearchParameters
from paperwasp.content.messages import SearchRequest, SortKey
from paperwasp.document.types import STRING, URI, ArrayType, MapType, NumericType, WeightedSetType
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError, PaperwaspError
from paperwasp.query.items import Item
from paperwasp.schema.model import Schema
from paperwasp.yql import UserText, YqlQuery, complete, parse_simple, parse_yql

_PSEUDO_FIELDS: Final[frozenset[str]] = frozenset({"sddocname"})
_RELEVANCE: Final = {"[relevance]": "[relevance]", "[relevancy]": "[relevance]", "[rank]": "[relevance]"}


@dataclass(frozen=True)
class ClusterConfig:
    """A content cluster and the schemas of its document types."""

    id: str
    schemas: Mapping[str, Schema]


@dataclass(frozen=True)
class SearchConfig:
    """The application that is searched. Replaced as a whole by a deploy."""

    clusters: tuple[ClusterConfig, ...] = ()
    query_profiles: QueryProfiles = NO_QUERY_PROFILES

    @cached_property
    def everything(self) -> tuple[Target, ...]:
        return tuple(Target(cluster, tuple(cluster.schemas.values())) for cluster in self.clusters if cluster.schemas)

    @cached_property
    def indexes(self) -> frozenset[str]:
        """What a query may search: indexed fields, attributes, fieldsets, pseudo-fields."""
        return _PSEUDO_FIELDS.union(*(target.indexes for target in self.everything))

    @cached_property
    def targets_by_source(self) -> Mapping[str, tuple[Target, ...]]:
        """A source is a cluster, a document type, or `cluster.type`."""
        sources: dict[str, tuple[Target, ...]] = {}
        for target in self.everything:
            for schema in target.schemas:
                one = Target(target.cluster, (schema,))
                sources[schema.name] = (*sources.get(schema.name, ()), one)
                sources[f"{target.cluster.id}.{schema.name}"] = (one,)
        return sources | {target.cluster.id: (target,) for target in self.everything}


@dataclass(frozen=True)
class Target:
    """A cluster, and the schemas in it that are searched."""

    cluster: ClusterConfig
    schemas: tuple[Schema, ...]

    @property
    def is_whole_cluster(self) -> bool:
        return len(self.schemas) == len(self.cluster.schemas)

    @cached_property
    def indexes(self) -> frozenset[str]:
        return _PSEUDO_FIELDS.union(*map(_indexes_of, self.schemas))


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
    queries: tuple[ClusterQuery, ...] = ()


def _indexes_of(schema: Schema) -> Iterable[str]:
    yield from (f.name for f in schema.fields.values() if f.index is not None or f.attribute is not None)
    yield from schema.fieldsets


def plan_search(config: SearchConfig, parameters: SearchParameters, now_ns: int) -> SearchPlan:
    """The plan of a request that started at `now_ns` on the monotonic clock.

    What only one of several clusters cannot do is noted in its ClusterQuery.
    Errors: IllegalQuery, InvalidQuery.
    """
    statement = _statement(parameters)
    targets = _targets(config, parameters, statement)
    sorting = _sorting(parameters, statement, targets)
    if sorting and len(targets) > 1:
        raise InvalidQuery("Sorting a query over several content clusters is not supported yet")
    hits, offset = _window(parameters, statement)
    plan = SearchPlan(
        tree=_tree(parameters, statement, targets, config),
        hits=hits,
        offset=offset,
        timeout_ms=_timeout_ms(parameters, statement),
        summary_fields=_summary_fields(parameters, statement),
    )
    plan.queries = tuple(
        _cluster_query(plan, target, parameters, sorting, now_ns, len(targets) > 1) for target in targets
    )
    return plan


def _cluster_query(
    plan: SearchPlan,
    target: Target,
    parameters: SearchParameters,
    sorting: tuple[SortKey, ...],
    now_ns: int,
    merge: bool,
) -> ClusterQuery:
    """Asks those document types that have what the query needs."""
    problems = [_problem(schema, parameters) for schema in target.schemas]
    errors = tuple(problem for problem in problems if problem is not None)
    if errors:
        schemas = (schema for schema, problem in zip(target.schemas, problems, strict=True) if problem is None)
        target = Target(target.cluster, tuple(schemas))
    request = _request(plan, target, parameters, sorting, now_ns, merge) if target.schemas else None
    return ClusterQuery(target.cluster.id, request, errors)


def _request(
    plan: SearchPlan,
    target: Target,
    parameters: SearchParameters,
    sorting: tuple[SortKey, ...],
    now_ns: int,
    merge: bool,
) -> SearchRequest:
    """What one cluster is asked. Where results are merged, each gives all that could be among the best."""
    return SearchRequest(
        tree=plan.tree,
        document_types=() if target.is_whole_cluster else tuple(schema.name for schema in target.schemas),
        rank_profile=parameters.rank_profile,
        hits=plan.hits + plan.offset if merge else plan.hits,
        offset=0 if merge else plan.offset,
        order_by=sorting,
        inputs=parameters.inputs,
        rank_properties=parameters.rank_properties,
        summary=parameters.summary,
        summary_fields=plan.summary_fields,
        bolding=parameters.bolding,
        list_features=parameters.list_features,
        deadline_ns=now_ns + int(plan.timeout_ms * 1e6),
    )


def _timeout_ms(parameters: SearchParameters, statement: YqlQuery | None) -> float:
    if statement is None or statement.timeout_ms is None:
        return parameters.timeout_ms
    return statement.timeout_ms


def _summary_fields(parameters: SearchParameters, statement: YqlQuery | None) -> tuple[str, ...]:
    if statement is None or not statement.fields:
        return parameters.summary_fields
    return (*parameters.summary_fields, *statement.fields)


def _statement(parameters: SearchParameters) -> YqlQuery | None:
    if not parameters.yql:
        return None
    try:
        return parse_yql(parameters.yql, parameters.given)
    except LanguageError as error:
        raise _not_created(error.message) from None


def _not_created(message: str) -> InvalidQuery:
    return InvalidQuery(f"Could not create query from YQL: {message}")


def _tree(
    parameters: SearchParameters, statement: YqlQuery | None, targets: tuple[Target, ...], config: SearchConfig
) -> Item:
    """The whole query tree, canonical, with all its fields checked."""
    indexes = config.indexes if targets is config.everything else _indexes(targets)
    query, kind, default_index = parameters.query, parameters.query_type, parameters.default_index
    if statement is None:
        tree = parse_simple(query, kind, default_index, indexes) if query else None
        if tree is None:
            raise IllegalQuery("No query")
        return tree
    for name, position in statement.indexes.items():
        if name not in indexes:
            raise _not_created(str(LanguageError(_no_index(name, targets), position)))
    try:
        return complete(statement.tree, UserText(query, kind, default_index, indexes, parameters.given))
    except LanguageError as error:
        raise _not_created(error.message) from None


def _no_index(name: str, targets: tuple[Target, ...]) -> str:
    """Why nothing is searched under the name: there is no such index, or it is not executed yet."""
    for schema in (schema for target in targets for schema in target.schemas):
        field_name, dot, rest = name.partition(".")
        found = schema.fields.get(field_name)
        if dot and found is not None and rest in found.sub_fields:
            return f"Field '{name}' is part of a field of type '{found.type}', which is not searched yet."
        if any(name in field.aliases for field in schema.fields.values()):
            return f"'{name}' is the alias of a field. Searching by aliases is not supported yet."
    return f"Field '{name}' does not exist."


def _indexes(targets: tuple[Target, ...]) -> frozenset[str]:
    return targets[0].indexes if len(targets) == 1 else _PSEUDO_FIELDS.union(*(target.indexes for target in targets))


def _targets(config: SearchConfig, parameters: SearchParameters, statement: YqlQuery | None) -> tuple[Target, ...]:
    """The clusters and schemas that `from` (or the parameter `sources`, without YQL) and `restrict` leave."""
    sources = parameters.sources if statement is None else statement.sources
    if statement is not None and sources:
        sources = (*parameters.sources, *sources)
    targets = _resolved(config, sources) if sources else config.everything
    if parameters.restrict:
        targets = _restricted(targets, parameters.restrict)
    if not targets:
        raise InvalidQuery("There is nothing to search: no content cluster has a document type")
    return targets


def _resolved(config: SearchConfig, sources: tuple[str, ...]) -> tuple[Target, ...]:
    by_source = config.targets_by_source
    found: dict[str, dict[str, Schema]] = {}
    for source in sources:
        if source not in by_source:
            valid = ", ".join(sorted(by_source))
            raise InvalidQuery(f"Could not resolve source ref '{source}'. Valid source refs are {valid}.")
        if len(sources) == 1:
            return by_source[source]
        for target in by_source[source]:
            found.setdefault(target.cluster.id, {}).update({schema.name: schema for schema in target.schemas})
    clusters = {target.cluster.id: target.cluster for target in config.everything}
    return tuple(Target(clusters[id_], tuple(schemas.values())) for id_, schemas in found.items())


def _restricted(targets: tuple[Target, ...], restrict: tuple[str, ...]) -> tuple[Target, ...]:
    known = {schema.name for target in targets for schema in target.schemas}
    for name in restrict:
        if name not in known:
            raise InvalidQuery(f"Could not restrict to '{name}'. Valid document types are {', '.join(sorted(known))}.")
    left = (Target(t.cluster, tuple(s for s in t.schemas if s.name in restrict)) for t in targets)
    return tuple(target for target in left if target.schemas)


def _window(parameters: SearchParameters, statement: YqlQuery | None) -> tuple[int, int]:
    if statement is None or statement.hits is None or statement.offset is None:
        return parameters.hits, parameters.offset
    hits, offset = statement.hits, statement.offset
    if offset > parameters.max_offset:
        raise InvalidQuery(f"Requested offset {offset}, but the max offset allowed is {parameters.max_offset}.")
    if hits > parameters.max_hits:
        raise InvalidQuery(f"Requested {hits} hits returned, but max hits allowed is {parameters.max_hits}.")
    return hits, offset


def _sorting(
    parameters: SearchParameters, statement: YqlQuery | None, targets: tuple[Target, ...]
) -> tuple[SortKey, ...]:
    if statement is not None and statement.order_by:
        keys = tuple(_sort_key(key.field, key.descending) for key in statement.order_by)
    elif parameters.sorting:
        keys = tuple(map(_sort_expression, parameters.sorting.split()))
    else:
        return ()
    for key in keys:
        _check_sortable(key.field, targets)
    return keys


def _sort_expression(text: str) -> SortKey:
    """`+name`, `-name` or `name`; `[relevance]` alone falls."""
    name = text.lstrip("+-")
    if "(" in name:
        raise InvalidQuery(f"Could not sort by '{text}': sort functions are not supported yet")
    signs = text[: len(text) - len(name)]
    return _sort_key(name, descending=signs == "-" or (not signs and name in _RELEVANCE))


def _sort_key(name: str, descending: bool) -> SortKey:
    if name.startswith("[") and name not in _RELEVANCE:
        raise InvalidQuery(f"Could not sort by '{name}': this is not supported yet")
    return SortKey(_RELEVANCE.get(name, name), descending)


def _check_sortable(name: str, targets: tuple[Target, ...]) -> None:
    if name == "[relevance]":
        return
    found = [schema.fields.get(name) for target in targets for schema in target.schemas]
    attributes = [field for field in found if field is not None and field.attribute is not None]
    for field in attributes:
        if isinstance(field.type, ArrayType | WeightedSetType | MapType):
            raise InvalidQuery(f"Could not sort by '{name}': a field of type '{field.type}' has no single value")
        if not (isinstance(field.type, NumericType) or field.type in (STRING, URI)):
            raise InvalidQuery(f"Could not sort by '{name}': fields of type '{field.type}' are not sorted by yet")
    if not attributes:
        raise InvalidQuery(f"Could not sort by '{name}': no attribute of this name is searched")


def _problem(schema: Schema, parameters: SearchParameters) -> PaperwaspError | None:
    """Why documents of this type cannot be searched."""
    profile, summary = parameters.rank_profile, parameters.summary
    if profile not in schema.rank_profiles:
        return InvalidQuery(f"schema '{schema.name}' does not contain requested rank profile '{profile}'")
    if summary not in schema.summaries:
        return InvalidQuery(f"invalid presentation.summary={summary}")
    return None
