"""Rank profiles, compiled: every expression a program, every name resolved, every problem found before it is served.

What a profile looks like is said here as a protocol, so that this package needs no schema; `paperwasp.features` brings
schema, catalog of features and compiler together.
Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#rank-profile
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.compiler import ExpressionCompiler, FeatureCatalog, FunctionSource
from paperwasp.ranking.expression import parse_expression
from paperwasp.ranking.linear import weighted_sum
from paperwasp.ranking.program import Feature, Program

DEFAULT_FIRST_PHASE: Final = "nativeRank"
_LATER_THAN_SECOND: Final = frozenset(("secondPhase", "relevanceScore"))
_LATER_THAN_FIRST: Final = _LATER_THAN_SECOND | {"firstPhase"}


class ProfileSource(Protocol):
    """A rank profile with everything that it inherits, as `paperwasp.schema.model.RankProfile` holds it."""

    @property
    def name(self) -> str: ...
    @property
    def first_phase(self) -> str | None: ...
    @property
    def second_phase(self) -> str | None: ...
    @property
    def rerank_count(self) -> int: ...
    @property
    def keep_rank_count(self) -> int: ...
    @property
    def rank_score_drop_limit(self) -> float | None: ...
    @property
    def second_phase_rank_score_drop_limit(self) -> float | None: ...
    @property
    def functions(self) -> Mapping[str, FunctionSource]: ...
    @property
    def constants(self) -> Mapping[str, float]: ...
    @property
    def inputs(self) -> Mapping[str, tuple[str, float | None]]: ...
    @property
    def match_features(self) -> Sequence[str]: ...
    @property
    def summary_features(self) -> Sequence[str]: ...
    @property
    def rank_features(self) -> Sequence[str]: ...
    @property
    def rank_properties(self) -> Mapping[str, str]: ...
    @property
    def ignore_default_rank_features(self) -> bool: ...
    @property
    def position(self) -> Position | None: ...


@dataclass(frozen=True, eq=False)
class CompiledProfile:
    """A rank profile, ready to run."""

    name: str
    first_phase: Program
    second_phase: Program | None
    match_features: Mapping[str, Program]
    """name as the result shows it → what computes it."""
    summary_features: Mapping[str, Program]
    rank_features: Mapping[str, Program]
    """What ranking.listFeatures shows: the default ones, unless the profile ignores them, and its rank-features."""
    rerank_count: int
    keep_rank_count: int
    rank_score_drop_limit: float | None
    """Hits with a first-phase score of this or lower are dropped."""
    second_phase_rank_score_drop_limit: float | None
    inputs: Mapping[str, float]
    """query(name) → default value, for the inputs that the profile declares."""
    properties: Mapping[str, str]
    bm25_sum: tuple[tuple[str, float], ...] | None
    """(field, weight) when the first phase is exactly the sum of weight · bm25(field), no weight negative."""

    def bm25_weights(self, inputs: Mapping[str, float]) -> tuple[tuple[str, float], ...] | None:
        """As `bm25_sum`, where weights may also hang on query(name). `inputs`: what the query overrides."""
        if self.bm25_sum is not None:
            return self.bm25_sum
        return _bm25_sum(self.first_phase, lambda name: inputs.get(name, self.inputs.get(name, 0.0)))


def _bm25_sum(
    program: Program, query_value: Callable[[str], float] | None = None
) -> tuple[tuple[str, float], ...] | None:
    def known(feature: Feature) -> float | None:
        return query_value(feature.query_name) if query_value and feature.query_name is not None else None

    weights = weighted_sum(program, known)
    if weights is None or not all(weight >= 0 and math.isfinite(weight) for weight in weights.values()):
        return None
    return tuple(weights.items())


class _Problems:
    """Collects what is wrong, so that one deploy shows everything."""

    def __init__(self) -> None:
        self.errors: list[LanguageError] = []

    def attempt(self, work: Callable[[], Program]) -> Program | None:
        try:
            return work()
        except LanguageError as error:
            self.errors.append(error)
        return None

    def raise_any(self) -> None:
        if self.errors:
            raise ProfileError(self.errors)


class ProfileError(LanguageError):
    """Everything that is wrong with the rank profiles at hand, one problem a line."""

    def __init__(self, problems: Sequence[LanguageError]) -> None:
        super().__init__("\n".join(dict.fromkeys(str(problem) for problem in problems)))
        self.problems = tuple(problems)
        self.position = problems[0].position


def compile_profile(
    profile: ProfileSource,
    catalog: FeatureCatalog,
    default_rank_features: Sequence[str] = (),
    source: str = "",
) -> CompiledProfile:
    """Compiles all expressions of `profile`; raises ProfileError with every problem found.

    `source` is the path of the schema, for errors. `default_rank_features` must be features of the catalog.
    """
    start = profile.position
    file = f"{start.source if start else source}".strip()
    at = f" (at line {start.line})" if start else ""
    prefix = f"{file}{', ' if file else ''}rank-profile {profile.name!r}{at}, "
    compiler = ExpressionCompiler(catalog, profile.functions, profile.constants, prefix)
    problems = _Problems()

    def program(text: str, where: str, unknown: frozenset[str] = frozenset()) -> Program | None:
        def work() -> Program:
            compiled = compiler.builder.program(compiler.compile(text, where))
            _check_phases(compiled, unknown, f"{prefix}{where}")
            return compiled

        return problems.attempt(work)

    def named_programs(names: Sequence[str], where: str) -> dict[str, Program]:
        programs = {name: program(name, f"{where} {name!r}") for name in dict.fromkeys(names)}
        return {_shown(name): compiled for name, compiled in programs.items() if compiled is not None}

    inputs = _input_defaults(profile, problems, prefix)
    first_text = profile.first_phase if profile.first_phase is not None else DEFAULT_FIRST_PHASE
    first_phase = program(first_text, "first-phase", _LATER_THAN_FIRST)
    second_text = profile.second_phase
    second_phase = program(second_text, "second-phase", _LATER_THAN_SECOND) if second_text is not None else None
    match_features = named_programs(profile.match_features, "match-features")
    summary_features = named_programs(profile.summary_features, "summary-features")
    defaults = () if profile.ignore_default_rank_features else default_rank_features
    rank_features = named_programs([*defaults, *profile.rank_features], "rank-features")
    _check_functions(profile, compiler, problems)
    problems.raise_any()
    assert first_phase is not None
    return CompiledProfile(
        name=profile.name,
        first_phase=first_phase,
        second_phase=second_phase,
        match_features=match_features,
        summary_features=summary_features,
        rank_features=rank_features,
        rerank_count=profile.rerank_count,
        keep_rank_count=profile.keep_rank_count,
        rank_score_drop_limit=profile.rank_score_drop_limit,
        second_phase_rank_score_drop_limit=profile.second_phase_rank_score_drop_limit,
        inputs=inputs,
        properties=profile.rank_properties,
        bm25_sum=_bm25_sum(first_phase),
    )


def _check_phases(program: Program, unknown: frozenset[str], where: str) -> None:
    """A phase cannot ask for its own score or that of a later one."""
    for feature in program.features:
        if feature.name.partition(".")[0] in unknown:
            raise LanguageError(f"{where}: {feature.name} is not known in this phase")


def _shown(name: str) -> str:
    """How the result names a feature: without spaces, as Vespa prints it."""
    return str(parse_expression(name))


def _input_defaults(profile: ProfileSource, problems: _Problems, prefix: str) -> dict[str, float]:
    """query(name) → default value: the inputs of the profile, and rank properties `query(name)`."""
    defaults: dict[str, float] = {}
    for name, (kind, default) in profile.inputs.items():
        bare = name[6:-1] if name.startswith("query(") and name.endswith(")") else name
        if kind != "double":
            problems.errors.append(LanguageError(f"{prefix}inputs: query({bare}) is a {kind}: not supported yet"))
        defaults[bare] = default if default is not None else 0.0
    for key, text in profile.rank_properties.items():
        if key.startswith("query(") and key.endswith(")"):
            try:
                defaults[key[6:-1]] = float(text.strip("\"'"))
            except ValueError:
                problems.errors.append(LanguageError(f"{prefix}rank-properties: {key} is no number: {text}"))
    return defaults


def _check_functions(profile: ProfileSource, compiler: ExpressionCompiler, problems: _Problems) -> None:
    """Functions that nothing calls must be right as well; those with parameters are checked where they are called."""
    for name, function in profile.functions.items():
        if not function.parameters:
            problems.attempt(lambda name=name: compiler.builder.program(compiler.compile(name, "functions")))  # type: ignore[misc]
