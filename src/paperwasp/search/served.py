"""What an application's schemas compile to, once for all queries: rank profiles, types of mode streaming, summaries.

A content cluster compiles all of it when it is configured, so that the first query is as fast as the tenth.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Final

from paperwasp.errors import InvalidQuery, PaperwaspError
from paperwasp.features.compile import ServedProfile, served_profile
from paperwasp.operators.tuning import Tuning
from paperwasp.ranking import CompiledProfile, Unexecuted
from paperwasp.schema.model import RankProfile, Schema
from paperwasp.search.matching_settings import declared_gaps, declared_tuning, filter_tuning
from paperwasp.search.page import PageSteps
from paperwasp.search.query import RankingOverride
from paperwasp.search.rank_cost import RankCost
from paperwasp.search.streaming_search import STREAMING_MODE, StreamedType, ranked_in_one_phase
from paperwasp.search.summary import SummaryForms

_OVERRIDES: Final = (
    "keep_rank_count",
    "rank_score_drop_limit",
    "rerank_count",
    "second_phase_rank_score_drop_limit",
)


@dataclass(frozen=True, slots=True, eq=False)
class RankPlan:
    """A rank profile of one schema with all that queries derive from it."""

    served: ServedProfile
    declared: RankProfile
    """As the schema declares it."""
    profile: CompiledProfile
    one_phase: CompiledProfile
    """As streaming search runs it."""
    element_gaps: Mapping[str, float]
    """By field: how far apart its elements are."""
    tuning: Tuning
    """What is done with words that are in many documents."""
    streamed_tuning: Tuning
    """The same in streaming search, where frequencies are not known."""
    cost: RankCost

    @classmethod
    def of(cls, served: ServedProfile) -> RankPlan:
        """Derive everything from a compiled profile. Errors: AssertionError where it is not executed yet."""
        declared, profile = served.schema.rank_profiles[served.name], served.compiled
        assert isinstance(profile, CompiledProfile)
        return cls(
            served,
            declared,
            profile,
            ranked_in_one_phase(profile),
            declared_gaps(declared),
            declared_tuning(declared),
            filter_tuning(declared),
            RankCost.of(profile),
        )

    def profile_for(self, override: RankingOverride | None, *, streamed: bool) -> CompiledProfile:
        """Return the profile with what a query says instead."""
        profile = self.profile
        if override is not None:
            changes = {name: value for name in _OVERRIDES if (value := getattr(override, name)) is not None}
            profile = replace(profile, **changes)
        if not streamed:
            return profile
        return self.one_phase if profile is self.profile else ranked_in_one_phase(profile)


class ServedSchemas:
    """The schemas of one content cluster, compiled. May be asked from any thread."""

    def __init__(self) -> None:
        self._plans: dict[int, tuple[Schema, dict[str, RankPlan | Unexecuted]]] = {}
        self._streamed: dict[int, tuple[Schema, StreamedType]] = {}
        self.summaries, self.pages = SummaryForms(), PageSteps()

    def rank_plan(self, schema: Schema, name: str) -> RankPlan:
        """Return the plan of a rank profile, compiling it where it is asked for first.

        Errors: InvalidQuery if the schema has no such profile, or it is not executed yet.
        """
        known = self._plans.get(id(schema))
        plan = None if known is None else known[1].get(name)
        if plan is None:
            plan = self._compile(schema, name)
        if isinstance(plan, Unexecuted):
            raise InvalidQuery(f"rank profile '{name}' of schema '{schema.name}': {plan}")
        return plan

    def _compile(self, schema: Schema, name: str) -> RankPlan | Unexecuted:
        served = served_profile(schema, name)
        if served is None:
            raise InvalidQuery(f"schema '{schema.name}' does not contain requested rank profile '{name}'")
        plan = served.compiled if isinstance(served.compiled, Unexecuted) else RankPlan.of(served)
        _, plans = self._plans.setdefault(id(schema), (schema, {}))
        return plans.setdefault(name, plan)

    def streamed(self, schema: Schema) -> StreamedType:
        """Return the type of mode streaming as its documents are searched."""
        found = self._streamed.get(id(schema))
        if found is None:
            found = self._streamed[id(schema)] = (schema, StreamedType.of(schema))
        return found[1]

    def compile_all(self, schemas: Mapping[str, Schema], modes: Mapping[str, str]) -> None:
        """Compile every rank profile of these schemas, and forget what replaced schemas compiled to.

        `modes`: by document type, where it is not mode index. A type of mode streaming is compiled as its batches are
        searched. What cannot be compiled, such as a model whose file is gone, fails for the query that asks for it.
        """
        declared = {id(schema) for schema in schemas.values()}
        self._streamed = {key: value for key, value in list(self._streamed.items()) if key in declared}
        searched = [
            self.streamed(schema).schema if modes.get(name) == STREAMING_MODE else schema
            for name, schema in schemas.items()
        ]
        kept = {id(schema) for schema in searched}
        self._plans = {key: value for key, value in list(self._plans.items()) if key in kept}
        self.summaries, self.pages = SummaryForms(), PageSteps()
        for schema in searched:
            for name in schema.rank_profiles:
                if name not in self._plans.get(id(schema), (schema, {}))[1]:
                    with suppress(PaperwaspError):
                        self._compile(schema, name)
