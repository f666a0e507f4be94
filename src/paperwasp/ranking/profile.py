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
from paperwasp.tensor.types import NUMBER, TensorType

DEFAULT_FIRST_PHASE: Final = "nativeRank"
_LATER_THAN_SECOND: Final = frozenset(("secondPhase", "relevanceScore"))
_LATER_THAN_FIRST: Final = _LATER_THAN_SECOND | {"firstPhase"}


class ConstantSource(Protocol):
    """A declared constant: a literal, unless it is in a file."""

    @property
    def text(self) -> str: ...


class InputSource(Protocol):
    """A declared query(name). `default` is a literal, or empty."""

    @property
    def type(self) -> TensorType | None: ...
    @property
    def default(self) -> str: ...


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
    def constants(self) -> Mapping[str, ConstantSource]: ...
    @property
    def inputs(self) -> Mapping[str, InputSource]: ...
    @property
    def match_features(self) -> Sequence[str]: ...
    @property
    def summary_features(self) -> Sequence[str]: ...
    @property
    def rank_features(self) -> Sequence[str]: ...
    @property
    def rank_properties(self) -> Mapping[str, Sequence[str]]: ...
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
    return _ProfileCompiler(profile, catalog, source).compile(default_rank_features)


class _ProfileCompiler:
    """Works one profile, and collects what is wrong, so that one deploy shows everything."""

    def __init__(self, profile: ProfileSource, catalog: FeatureCatalog, source: str) -> None:
        start = profile.position
        file = start.source if start else source
        at = f" (at line {start.line})" if start else ""
        self.profile = profile
        self.prefix = f"{file}{', ' if file else ''}rank-profile {profile.name!r}{at}, "
        constants = {name: float(constant.text) for name, constant in profile.constants.items()}
        self.expressions = ExpressionCompiler(catalog, profile.functions, constants, self.prefix)
        self.problems: list[LanguageError] = []

    def compile(self, default_rank_features: Sequence[str]) -> CompiledProfile:
        profile = self.profile
        inputs = self.input_defaults()
        first_text = profile.first_phase if profile.first_phase is not None else DEFAULT_FIRST_PHASE
        first_phase = self.program(first_text, "first-phase", _LATER_THAN_FIRST)
        second_text = profile.second_phase
        second_phase = (
            self.program(second_text, "second-phase", _LATER_THAN_SECOND) if second_text is not None else None
        )
        match_features = self.programs(profile.match_features, "match-features")
        summary_features = self.programs(profile.summary_features, "summary-features")
        listed = () if profile.ignore_default_rank_features else default_rank_features
        rank_features = self.programs([*listed, *profile.rank_features], "rank-features")
        self.check_functions()
        if self.problems or first_phase is None:
            raise ProfileError(self.problems)
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
            properties={key: values[-1] for key, values in profile.rank_properties.items()},
            bm25_sum=_bm25_sum(first_phase),
        )

    def program(self, text: str, where: str, unknown: frozenset[str] = frozenset()) -> Program | None:
        """The program of an expression; None if it has a problem. `unknown`: features that it cannot ask for."""
        try:
            program = self.expressions.builder.program(self.expressions.compile(text, where))
            for feature in program.features:
                if feature.name.partition(".")[0] in unknown:
                    raise LanguageError(f"{self.prefix}{where}: {feature.name} is not known in this phase")
        except LanguageError as error:
            self.problems.append(error)
            return None
        return program

    def programs(self, names: Sequence[str], where: str) -> dict[str, Program]:
        """By the name as the result shows it: without spaces, as Vespa prints it."""
        programs: dict[str, Program] = {}
        for name in names:
            if (program := self.program(name, f"{where} {name!r}")) is not None:
                programs[str(parse_expression(name))] = program
        return programs

    def input_defaults(self) -> dict[str, float]:
        """query(name) → default value: the inputs of the profile, and rank properties `query(name)`."""
        defaults: dict[str, float] = {}
        for name, declared in self.profile.inputs.items():
            bare = _query_name(name) or name
            if declared.type != NUMBER:
                self.fail(f"inputs: query({bare}) is a {declared.type or 'string'}: not supported yet")
            else:
                defaults[bare] = float(declared.default or 0.0)
        for key, (*_, text) in self.profile.rank_properties.items():
            if name := _query_name(key):
                try:
                    defaults[name] = float(text.strip("\"'"))
                except ValueError:
                    self.fail(f"rank-properties: {key} is no number: {text}")
        return defaults

    def check_functions(self) -> None:
        """Functions that nothing calls must be right as well; of those with parameters, what can be seen alone."""
        for name, function in self.profile.functions.items():
            if not function.parameters:
                self.program(name, "functions")
                continue
            try:
                parse_expression(function.expression, f"{self.prefix}function {name!r}")
            except LanguageError as error:
                self.problems.append(error)

    def fail(self, message: str) -> None:
        self.problems.append(LanguageError(f"{self.prefix}{message}"))


def _query_name(key: str) -> str:
    """The name in `query(name)`; empty for anything else."""
    return key[6:-1] if key.startswith("query(") and key.endswith(")") else ""
