"""The searchable parts of an application: its content clusters, their schemas, and the names of sources.

Vespa: https://docs.vespa.ai/en/querying/federation.html
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Final, NamedTuple

from msgspec import Struct, field

from paperwasp import limits
from paperwasp.application.query_profiles import NO_QUERY_PROFILES, QueryProfiles
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.word_indexes import indexes_of
from paperwasp.errors import InvalidQuery, LanguageError
from paperwasp.indexing.components import Embedder
from paperwasp.query_languages.rules import NO_RULES, RuleBases
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.ranking import ProfileError, Unexecuted
from paperwasp.ranking.global_phase import GlobalPhase
from paperwasp.ranking.query_expressions import RankExpressions
from paperwasp.schema.model import Field, RankProfile, Schema
from paperwasp.schema.teaser_settings import HI_TAGS, Tags
from paperwasp.search.features.compile import ServedProfile, served_profile
from paperwasp.search.features.kept_profiles import KeptProfiles, compiled_bytes
from paperwasp.text.linguistics.significance import NO_MODELS, SignificanceModels
from paperwasp.text.parsing.tokens import did_you_mean, did_you_mean_sentence

_PSEUDO_FIELDS: Final[frozenset[str]] = frozenset({"sddocname"})
_CHANGING: Final = compile_later(r"\b(?:now|freshness|age|random|randomNormal|randomNormalStable)\b")
"""Rank features whose value is another each time."""


class QueryLimits(NamedTuple):
    """The limits of a content cluster for each query, which requests cannot exceed."""

    hits: int = sys.maxsize
    timeout_ms: float = math.inf

    @classmethod
    def of(cls, tuning: Mapping[str, str]) -> QueryLimits:
        """The limits in the tuning of a content cluster (`services_model.Content.tuning`).

        Vespa: ClusterSearcher.java, and `maxHitsPerNode` of InvokerFactory.java: a cluster is one node here
        """
        timeout = next((tuning[path] for path in _TIMEOUTS if path in tuning), None)
        hits = next((tuning[path] for path in _MOST_HITS if path in tuning), None)
        return cls(sys.maxsize if hits is None else int(hits), math.inf if timeout is None else 1000 * float(timeout))


NO_QUERY_LIMITS: Final = QueryLimits()
_TIMEOUTS: Final = ("search/query-timeout", "engine/proton/query-timeout")
_MOST_HITS: Final = tuple(f"{of}tuning/dispatch/max-hits-per-partition" for of in ("", "engine/proton/"))


class ClusterConfig(Struct, frozen=True):
    """A content cluster and the schemas of its document types."""

    id: str
    schemas: Mapping[str, Schema]
    limits: QueryLimits = NO_QUERY_LIMITS
    streamed: frozenset[str] = frozenset()
    """The document types of mode streaming."""


class Target(Struct, frozen=True, dict=True):
    """A cluster, and the schemas in it that are searched."""

    cluster: ClusterConfig
    schemas: tuple[Schema, ...]

    @cached_property
    def indexes(self) -> Indexes:
        return indexes_of(self.schemas, _PSEUDO_FIELDS)

    def fields_named(self, name: str) -> Iterator[Field]:
        """The fields of that name or alias, in those schemas that have one."""
        found = (schema.field_named(name) for schema in self.schemas)
        return (field for field in found if field is not None)


class SearchConfig(Struct, frozen=True, eq=False, dict=True):
    """The application that is searched. Replaced as a whole by a deploy."""

    clusters: tuple[ClusterConfig, ...] = ()
    query_profiles: QueryProfiles = NO_QUERY_PROFILES
    rules: RuleBases = NO_RULES
    significance: SignificanceModels = NO_MODELS
    embedders: Mapping[str, Embedder] = field(default_factory=dict)
    """Those of the container, by id."""
    allows_expressions: bool = True
    """Whether queries may bring ranking expressions."""
    query_memory_bytes: int = limits.QUERY_MEMORY_BYTES
    """Bytes that ranking for one query may take."""
    tags: Tags = HI_TAGS
    """How the words of queries are marked in bolded texts and teasers."""
    search_chains: tuple[str, ...] = ()
    """Ids of the chains that the container declares, and that search."""
    _repeatable: dict[tuple[str, str, str], bool] = field(default_factory=dict)
    _profiles: dict[tuple[str, str, str], ServedProfile] = field(default_factory=dict)
    _of_queries: KeptProfiles[ServedProfile | str] = field(default_factory=KeptProfiles)
    """Rank profiles with expressions of queries, or what is wrong with these."""

    def is_repeatable(self, schema: Schema, rank_profile: str, expressions: RankExpressions | None = None) -> bool:
        """Whether the profile ranks documents the same each time, as long as they are the same, and changes none."""
        if expressions is not None:
            served = self._profile_with(schema, rank_profile, expressions)
            return isinstance(served, ServedProfile) and _is_repeatable(served.declared)
        key = schema.source, schema.name, rank_profile
        found = self._repeatable.get(key)
        if found is None:
            profile = schema.rank_profiles.get(rank_profile)
            if profile is None:
                return True
            found = self._repeatable[key] = _is_repeatable(profile)
        return found

    def profile_problem(self, schema: Schema, rank_profile: str, expressions: RankExpressions | None = None) -> str:
        """Why documents of this type cannot be ranked by the profile; empty: they can. `expressions`: those of the
        query."""
        if expressions is None:
            served = self._served_profile(schema, rank_profile)
        else:
            found = self._profile_with(schema, rank_profile, expressions)
            if isinstance(found, str):
                return f"rank profile '{rank_profile}' of schema '{schema.name}' with expressions of the query: {found}"
            served = found
        if served is None:
            hint = did_you_mean(rank_profile, schema.rank_profiles)
            return f"schema '{schema.name}' does not contain requested rank profile '{rank_profile}'{hint}"
        if isinstance(served.compiled, Unexecuted):
            return f"rank profile '{rank_profile}' of schema '{schema.name}': {served.compiled}"
        return ""

    def global_phase(
        self, schema: Schema, rank_profile: str, expressions: RankExpressions | None = None
    ) -> GlobalPhase | None:
        """The global phase of the profile; None: it has none."""
        if expressions is not None:
            found = self._profile_with(schema, rank_profile, expressions)
            if not isinstance(found, ServedProfile) or isinstance(found.compiled, Unexecuted):
                return None
            return found.compiled.global_phase
        declared = schema.rank_profiles.get(rank_profile)
        if declared is None or declared.global_phase is None:
            return None
        served = self._served_profile(schema, rank_profile)
        return None if served is None or isinstance(served.compiled, Unexecuted) else served.compiled.global_phase

    def _served_profile(self, schema: Schema, rank_profile: str) -> ServedProfile | None:
        """The profile as the content node of this process has compiled it; compiled here where none has."""
        key = schema.source, schema.name, rank_profile
        found = self._profiles.get(key)
        if found is None and (found := served_profile(schema, rank_profile)) is not None:
            self._profiles[key] = found
        return found

    def _profile_with(
        self, schema: Schema, rank_profile: str, expressions: RankExpressions
    ) -> ServedProfile | str | None:
        """The profile with expressions of a query, or what is wrong with these; None: there is no such profile."""
        found = self._of_queries.get(schema, rank_profile, expressions)
        if found is not None:
            return found
        made: ServedProfile | str | None
        try:
            made = served_profile(schema, rank_profile, expressions)
        except LanguageError as error:
            made = _problems(error)
        if made is None:
            return None
        compiled = made.compiled if isinstance(made, ServedProfile) else None
        size_bytes = compiled_bytes(expressions, compiled)
        return self._of_queries.add(schema, rank_profile, expressions, made, size_bytes)

    @cached_property
    def everything(self) -> tuple[Target, ...]:
        return tuple(Target(cluster, tuple(cluster.schemas.values())) for cluster in self.clusters if cluster.schemas)

    @cached_property
    def indexes(self) -> Indexes:
        """The indexes that a query may search: indexed fields, attributes, fieldsets, pseudo-fields."""
        return indexes_of((schema for target in self.everything for schema in target.schemas), _PSEUDO_FIELDS)

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

    def indexes_of(self, targets: tuple[Target, ...]) -> Indexes:
        """The indexes that a query of these targets may search."""
        if targets is self.everything:
            return self.indexes
        if len(targets) == 1:
            return targets[0].indexes
        return indexes_of((schema for target in targets for schema in target.schemas), _PSEUDO_FIELDS)

    def targets(self, sources: tuple[str, ...], restrict: tuple[str, ...]) -> tuple[Target, ...]:
        """The clusters and schemas that `sources` and `restrict` leave; where they are empty, all.

        Errors: InvalidQuery.
        """
        targets = self._resolve(sources) if sources else self.everything
        if restrict:
            targets = _restrict(targets, restrict)
        if not targets:
            raise InvalidQuery("There is nothing to search: no content cluster has a document type")
        return targets

    def _resolve(self, sources: tuple[str, ...]) -> tuple[Target, ...]:
        by_source = self.targets_by_source
        found: dict[str, dict[str, Schema]] = {}
        for source in sources:
            if source not in by_source:
                valid = ", ".join(sorted(by_source))
                hint = did_you_mean_sentence(source, by_source)
                raise InvalidQuery(f"Could not resolve source ref '{source}'. Valid source refs are {valid}.{hint}")
            if len(sources) == 1:
                return by_source[source]
            for target in by_source[source]:
                found.setdefault(target.cluster.id, {}).update({schema.name: schema for schema in target.schemas})
        clusters = {target.cluster.id: target.cluster for target in self.everything}
        return tuple(Target(clusters[id_], tuple(schemas.values())) for id_, schemas in found.items())


def _problems(error: LanguageError) -> str:
    """The first problems of an error, each of a bounded length."""
    lines = error.message.split("\n") if isinstance(error, ProfileError) else [error.message]
    return "\n".join(line[: limits.expressions.PROBLEM_CHARACTERS] for line in lines[: limits.expressions.PROBLEMS])


def _is_repeatable(profile: RankProfile) -> bool:
    return not (profile.mutations or any(map(_CHANGING.search, _texts_of(profile))))


def _texts_of(profile: RankProfile) -> Iterator[str]:
    """All expressions and features of a rank profile that hits depend on."""
    yield from (text for text in (profile.first_phase, profile.second_phase) if text)
    yield from (function.expression for function in profile.functions.values())
    yield from (*profile.match_features, *profile.summary_features)
    if profile.global_phase is not None:
        yield profile.global_phase.expression


def _restrict(targets: tuple[Target, ...], restrict: tuple[str, ...]) -> tuple[Target, ...]:
    known = {schema.name for target in targets for schema in target.schemas}
    for name in restrict:
        if name not in known:
            raise InvalidQuery(f"Could not restrict to '{name}'. Valid document types are {', '.join(sorted(known))}.")
    left = (Target(t.cluster, tuple(s for s in t.schemas if s.name in restrict)) for t in targets)
    return tuple(target for target in left if target.schemas)
