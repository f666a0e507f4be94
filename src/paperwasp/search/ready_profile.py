"""A rank profile with all that queries derive from it, computed once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.core.rank.rank_program import OPERATION_WIDTH
from paperwasp.ranking import CompiledProfile, Program, RankValue
from paperwasp.ranking.tensor_graph import TensorFeature, cells_of
from paperwasp.schema.model import RankProfile
from paperwasp.search.features.compile import ServedProfile
from paperwasp.search.matching_settings import declared_gaps, declared_tuning, filter_tuning
from paperwasp.search.operators.operator import Tuning
from paperwasp.search.phases.scoring import reused_features
from paperwasp.search.query import RankingOverride
from paperwasp.search.streaming_search import ranked_in_one_phase

_OVERRIDES: Final = (
    "keep_rank_count",
    "rank_score_drop_limit",
    "rerank_count",
    "second_phase_rank_score_drop_limit",
)


class ReadyProfile(Struct, frozen=True, eq=False):
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
    """The tuning for words that are in many documents."""
    streamed_tuning: Tuning
    """The same in streaming search, where frequencies are not known."""
    cost: RankCost
    """The cost of queries of few words (`is_plain`)."""
    large_cost: RankCost
    """The cost of queries of many words, measured apart: it does not raise the estimate for small ones."""
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


# The costs of ranking and writing hits by a rank profile, as measured while queries run.


FEATURE_NS: Final = 2_000
"""The assumed cost of one rank feature of one hit until it is measured: more than nearly all do."""
TENSOR_NS: Final = 100_000
"""The assumed cost of a tensor of an expression that came with a query, until it is measured."""
OPERATION_NS: Final = 5
"""The assumed cost of one operation of such an expression for one hit."""
CELL_NS: Final = 2
"""The assumed cost of one cell of the tensors of a hit, until it is measured."""
HIT_NS: Final = 20_000
"""The assumed cost of writing a hit until it is measured."""
_LEAST_MEASURED: Final = 8
"""This number of hits, or more, says what one costs."""
_DEARER: Final = 0.5
_CHEAPER: Final = 0.1


class RankCost:
    """Nanoseconds of CPU time that ranking one match, reranking one hit, and writing one hit take with a rank profile.

    A dearer measurement counts by half, a cheaper one by a tenth. Threads may update it at the same time: a lost
    update is harmless.
    """

    __slots__ = ("first_ns", "fixed_ns", "global_ns", "second_ns", "shown_ns", "write_ns")

    def __init__(
        self,
        first_ns: float = FEATURE_NS,
        second_ns: float = 0.0,
        fixed_ns: float = 0.0,
        global_ns: float = 0.0,
        shown_ns: float = 0.0,
    ) -> None:
        self.first_ns = first_ns
        self.second_ns = second_ns
        self.write_ns: float = HIT_NS
        self.fixed_ns: Final = fixed_ns
        """The assumed cost of tensors that may be the same for all hits, however few these are."""
        self.global_ns: Final = global_ns
        """The assumed cost of the tensors of one hit for the global phase."""
        self.shown_ns: Final = shown_ns
        """The same of those that are shown with a hit."""

    @classmethod
    def of(cls, profile: CompiledProfile) -> RankCost:
        """Return what a profile is taken to cost before it was run."""
        first, second = profile.first_phase, profile.second_phase
        first_ns = FEATURE_NS * max(1, len(first.features)) + CELL_NS * cells_of(first)
        second_ns = 0 if second is None else FEATURE_NS * max(1, len(second.features)) + CELL_NS * cells_of(second)
        return cls(first_ns, second_ns, CELL_NS * _all_cells(profile), *_cells_ns(profile))

    @classmethod
    def of_query(cls, profile: CompiledProfile) -> RankCost:
        """The same of a profile with expressions of a query, which nobody has looked at: tensors are taken to be
        expensive, and each operation counts."""
        phases = profile.first_phase, profile.second_phase
        first_ns, second_ns = (0.0 if program is None else _unseen_ns(program) for program in phases)
        return cls(first_ns, second_ns, CELL_NS * _all_cells(profile), *_cells_ns(profile))

    @property
    def known_ns(self) -> float | None:
        """The measured cost of ranking one match; None: it is not measured, or not below the assumed one."""
        return self.first_ns if self.first_ns < FEATURE_NS else None

    def ranked(self, count: int, took_ns: int) -> None:
        """Note what the first phase of this number of matches took."""
        self.first_ns = _updated(self.first_ns, count, took_ns)

    def reranked(self, count: int, took_ns: int) -> None:
        """Note what the second phase of this number of hits took."""
        self.second_ns = _updated(self.second_ns, count, took_ns)

    def wrote(self, count: int, took_ns: int) -> None:
        """Note what writing this number of hits took."""
        self.write_ns = _updated(self.write_ns, count, took_ns)


def _unseen_ns(program: Program) -> float:
    tensors = sum(isinstance(feature, TensorFeature) for feature in program.features)
    operations = program.code.size // OPERATION_WIDTH
    known_ns = FEATURE_NS * max(1, len(program.features)) + TENSOR_NS * tensors + OPERATION_NS * operations
    return known_ns + CELL_NS * cells_of(program)


def _all_cells(profile: CompiledProfile) -> int:
    """The cells of all that is computed for a hit which is ranked in all phases, and shown."""
    phases = (program for program in (profile.first_phase, profile.second_phase) if program is not None)
    return sum(map(cells_of, (*phases, *_global_inputs(profile), *_shown(profile))))


def _cells_ns(profile: CompiledProfile) -> tuple[float, float]:
    """The cost of the tensors of one hit: those for the global phase, and those that are shown."""
    return CELL_NS * sum(map(cells_of, _global_inputs(profile))), CELL_NS * sum(map(cells_of, _shown(profile)))


def _global_inputs(profile: CompiledProfile) -> Iterable[RankValue]:
    return () if profile.global_phase is None else profile.global_phase.inputs.values()


def _shown(profile: CompiledProfile) -> Iterable[RankValue]:
    return (*profile.match_features.values(), *profile.summary_features.values())


def _updated(known_ns: float, count: int, took_ns: int) -> float:
    if count < _LEAST_MEASURED:
        return known_ns
    one_ns = took_ns / count
    share = _DEARER if one_ns > known_ns else _CHEAPER
    return (1 - share) * known_ns + share * one_ns
