"""A rank profile with all that queries derive from it, computed once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from paperwasp.base.records import dataclass
from paperwasp.ranking import CompiledProfile
from paperwasp.schema.model import RankProfile
from paperwasp.search.features.compile import ServedProfile
from paperwasp.search.known_features import reused_features
from paperwasp.search.matching_settings import declared_gaps, declared_tuning, filter_tuning
from paperwasp.search.operators.operator import Tuning
from paperwasp.search.query import RankingOverride
from paperwasp.search.rank_cost import RankCost
from paperwasp.search.streaming_search import ranked_in_one_phase

_OVERRIDES: Final = (
    "keep_rank_count",
    "rank_score_drop_limit",
    "rerank_count",
    "second_phase_rank_score_drop_limit",
)


@dataclass(frozen=True, slots=True, eq=False)
class ReadyProfile:
    """A rank profile of one schema with all that queries derive from it."""

    served: ServedProfile
    declared: RankProfile
    """As the schema declares it, or a query."""
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
    """Of queries of few words (`is_plain`)."""
    large_cost: RankCost
    """Of queries of many words, which are measured apart: their cost does not raise the estimate for small ones."""
    reused: frozenset[str]
    """Features of the first phase that later steps need again."""

    @classmethod
    def of(cls, served: ServedProfile) -> ReadyProfile:
        """Derive everything from a compiled profile. Errors: AssertionError where it is not executed yet."""
        declared, profile = served.declared, served.compiled
        assert isinstance(profile, CompiledProfile)
        cost_of = RankCost.of_query if served.is_of_query else RankCost.of
        return cls(
            served,
            declared,
            profile,
            ranked_in_one_phase(profile),
            declared_gaps(declared),
            declared_tuning(declared),
            filter_tuning(declared),
            cost_of(profile),
            cost_of(profile),
            reused_features(profile),
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
