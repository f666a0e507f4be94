"""Rank profiles, compiled: every name resolved, every type checked, every problem found before it is served.

What a profile looks like is said here as a protocol, so that this package needs no schema; `paperwasp.features` brings
schema, catalog of features and compiler together. A profile becomes programs that run, or, if it asks for anything that
is not executed yet, the reasons why it does not: it is never run in part.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#rank-profile
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol

from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.compiler import ExpressionCompiler, FeatureCatalog
from paperwasp.ranking.declarations import (
    ConstantSource,
    Declarations,
    InputSource,
    Model,
    ModelSource,
    literal_problem,
)
from paperwasp.ranking.expression import parse_expression
from paperwasp.ranking.global_phase import NORMALIZERS, GlobalPhase
from paperwasp.ranking.inference import TypeInference
from paperwasp.ranking.linear import weighted_sum
from paperwasp.ranking.names import Names, TypeCatalog, Uses
from paperwasp.ranking.program import Feature, Program
from paperwasp.ranking.scope import FunctionSource, Source

DEFAULT_FIRST_PHASE: Final = "nativeRank"
_LATER_THAN_SECOND: Final = NORMALIZERS | {"secondPhase", "relevanceScore"}
_LATER_THAN_FIRST: Final = _LATER_THAN_SECOND | {"firstPhase"}


class GlobalPhaseSource(Protocol):
    """Ranking in the container."""

    @property
    def expression(self) -> str: ...
    @property
    def rerank_count(self) -> int: ...
    @property
    def rank_score_drop_limit(self) -> float | None: ...
    @property
    def position(self) -> Position | None: ...


class ProfileSource(Protocol):
    """A rank profile with everything that it inherits, as `paperwasp.schema.model.RankProfile` holds it."""

    @property
    def name(self) -> str: ...
    @property
    def first_phase(self) -> str | None: ...
    @property
    def second_phase(self) -> str | None: ...
    @property
    def global_phase(self) -> GlobalPhaseSource | None: ...
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
    def onnx_models(self) -> Mapping[str, ModelSource]: ...
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
    def strict(self) -> bool | None: ...
    @property
    def mutations(self) -> object: ...
    @property
    def use_significance_model(self) -> object: ...
    @property
    def position(self) -> Position | None: ...
    @property
    def expression_positions(self) -> Mapping[str, Position]: ...


class Catalog(FeatureCatalog, TypeCatalog, Protocol):
    """The rank features, as both type inference and compiling ask for them."""


@dataclass(frozen=True, eq=False)
class CompiledProfile:
    """A rank profile, ready to run."""

    name: str
    first_phase: Program
    second_phase: Program | None
    global_phase: GlobalPhase | None
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


@dataclass(frozen=True, slots=True)
class Unexecuted:
    """A rank profile that is right, and asks for what is not executed yet."""

    name: str
    reasons: tuple[str, ...]
    undeclared_inputs: tuple[str, ...] = ()
    """Names in query(name) that are not declared, in a profile with tensors: they count as numbers."""

    def __str__(self) -> str:
        return f"not executed yet: {', '.join(self.reasons)}"


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
        unique = {str(problem): problem for problem in reversed(problems)}
        super().__init__("\n".join(reversed(unique)))
        self.problems = tuple(reversed(unique.values()))
        self.position = problems[0].position


def compile_profile(
    profile: ProfileSource,
    catalog: Catalog,
    default_rank_features: Callable[[], Sequence[str]] = tuple,
    source: str = "",
    declarations: Declarations | None = None,
) -> CompiledProfile | Unexecuted:
    """Compiles all expressions of `profile`; raises ProfileError with every problem found.

    `source` is the path of the schema, for errors. `default_rank_features` must be features of the catalog.
    """
    return _ProfileCompiler(profile, catalog, source, declarations or Declarations()).compile(default_rank_features)


class _Root(NamedTuple):
    """One expression of a profile that results come from."""

    kind: str
    """`first-phase`, `match-features`, …"""
    source: Source
    unseen: frozenset[str]
    """Features that it cannot ask for."""


class _ProfileCompiler:
    """Works one profile, and collects what is wrong, so that one deploy shows everything."""

    def __init__(self, profile: ProfileSource, catalog: Catalog, source: str, declarations: Declarations) -> None:
        start = profile.position
        file = start.source if start else source
        at = f" (at line {start.line})" if start else ""
        self.profile = profile
        self.around = f"{file}{', ' if file else ''}rank-profile {profile.name!r}{at}, "
        self.catalog = catalog
        self.declarations = declarations
        self.problems: list[LanguageError] = []

    def compile(self, default_rank_features: Callable[[], Sequence[str]]) -> CompiledProfile | Unexecuted:
        inputs = self.input_defaults()
        self.check_declarations()
        roots = list(self.roots())
        uses = self.infer(roots)
        if self.problems:
            raise ProfileError(self.problems)
        pending = (*self.pending_settings(), *uses.pending)
        if pending:
            return Unexecuted(self.profile.name, pending, tuple(uses.undeclared))
        return self.programs(roots, inputs, default_rank_features)

    def pending_settings(self) -> Iterator[str]:
        """What else the profile says that would give other hits or scores, and is not executed yet."""
        profile = self.profile
        settings = {
            "mutate": profile.mutations,
            "significance: use-model": profile.use_significance_model,
        }
        yield from (name for name, value in settings.items() if value)
        for constant in profile.constants.values():
            if constant.type.is_number and not constant.text:
                yield f"constant {constant.name} in a file"

    # What is checked

    def roots(self) -> Iterator[_Root]:
        """The expressions that results come from, in the order in which problems are told."""
        profile = self.profile
        first = profile.first_phase if profile.first_phase is not None else DEFAULT_FIRST_PHASE
        yield self.root("first-phase", first, _LATER_THAN_FIRST)
        if profile.second_phase is not None:
            yield self.root("second-phase", profile.second_phase, _LATER_THAN_SECOND)
        if profile.global_phase is not None:
            start = profile.global_phase.position
            yield _Root(
                "global-phase",
                Source(profile.global_phase.expression, "global-phase", start, self.around),
                frozenset(),
            )
        for kind, names in (
            ("match-features", profile.match_features),
            ("summary-features", profile.summary_features),
            ("rank-features", profile.rank_features),
        ):
            for name in names:
                start = profile.expression_positions.get(kind)
                yield _Root(kind, Source(name, f"{kind} {name!r}", start, self.around, is_exact=False), NORMALIZERS)

    def root(self, kind: str, text: str, unseen: frozenset[str]) -> _Root:
        start = self.profile.expression_positions.get(kind)
        return _Root(kind, Source(text, kind, start, self.around), unseen)

    def infer(self, roots: Sequence[_Root]) -> Uses:
        """What all of them use. Problems of functions that nothing calls are found as well."""
        names = Names(
            self.profile.functions,
            {name: constant.type for name, constant in self.profile.constants.items()},
            {_query_name(name) or name: declared.type for name, declared in self.profile.inputs.items()},
            self.model,
        )
        inference = TypeInference(self.catalog, names, self.around)
        total = Uses()
        for root in roots:
            type_, uses = inference.infer(root.source)
            for name in uses.features.keys() & root.unseen:
                inference.add(LanguageError(f"{root.kind}: {name} is not known in this phase", root.source.position(0)))
            if root.kind.endswith("-phase") and type_ is not None and not type_.is_number:
                told = f"The {root.kind} expression must produce a double (a tensor with no dimensions)"
                inference.add(LanguageError(f"{told}, but produces {type_}", root.source.position(0)))
            total.add(uses)
        for name in self.profile.functions:
            inference.check_function(name)
        self.problems += inference.problems
        if self.profile.strict and total.undeclared:
            told = f"is strict but is missing a declaration of inputs {', '.join(total.undeclared)}"
            self.problems.append(LanguageError(f"rank-profile {self.profile.name!r} {told}", self.profile.position))
        return total

    def model(self, name: str) -> Model:
        declared = self.profile.onnx_models.get(name)
        return self.declarations.model_file(name) if declared is None else self.declarations.model(declared)[0]

    def check_declarations(self) -> None:
        for constant in self.profile.constants.values():
            if problem := self.declarations.constant(constant):
                self.problems.append(problem)
        for model in self.profile.onnx_models.values():
            self.problems += self.declarations.model(model)[1]

    def input_defaults(self) -> dict[str, float]:
        """query(name) → default value: the inputs that are numbers, and rank properties `query(name)`."""
        defaults: dict[str, float] = {}
        declared = {_query_name(name) or name: given for name, given in self.profile.inputs.items()}
        for name, given in declared.items():
            if given.default and given.type is not None:
                problem = literal_problem(f"input query({name})", given.default, given.type, given.position)
                if problem is not None:
                    self.problems.append(problem)
                    continue
            if given.type is not None and given.type.is_number:
                defaults[name] = float(given.default or 0.0)
        for key, (*_, text) in self.profile.rank_properties.items():
            if (name := _query_name(key)) and (name not in declared or name in defaults):
                try:
                    defaults[name] = float(text.strip("\"'"))
                except ValueError:
                    message = f"rank-properties: {key} is no number: {text}"
                    self.problems.append(LanguageError(message, self.profile.position))
        return defaults

    # What runs

    def programs(
        self, roots: Sequence[_Root], inputs: Mapping[str, float], default_rank_features: Callable[[], Sequence[str]]
    ) -> CompiledProfile:
        profile = self.profile
        compiler = self.compiler()
        programs: dict[str, dict[str, Program]] = {}
        for root in roots:
            program = self.program(compiler, root.source)
            if program is not None:
                programs.setdefault(root.kind, {})[_shown(root)] = program
        listed = LazyPrograms(programs.get("rank-features", {}))
        if not profile.ignore_default_rank_features:
            self.check_properties(compiler, default_rank_features)
            listed = LazyPrograms(listed, lambda: self.feature_programs(default_rank_features()))
        if self.problems:
            raise ProfileError(self.problems)
        [first_phase] = programs["first-phase"].values()
        return CompiledProfile(
            name=profile.name,
            first_phase=first_phase,
            second_phase=next(iter(programs.get("second-phase", {}).values()), None),
            global_phase=self.global_phase(programs.get("global-phase", {})),
            match_features=programs.get("match-features", {}),
            summary_features=programs.get("summary-features", {}),
            rank_features=listed,
            rerank_count=profile.rerank_count,
            keep_rank_count=profile.keep_rank_count,
            rank_score_drop_limit=profile.rank_score_drop_limit,
            second_phase_rank_score_drop_limit=profile.second_phase_rank_score_drop_limit,
            inputs=inputs,
            properties={key: values[-1] for key, values in profile.rank_properties.items()},
            bm25_sum=_bm25_sum(first_phase),
        )

    def global_phase(self, programs: Mapping[str, Program]) -> GlobalPhase | None:
        said = self.profile.global_phase
        if said is None:
            return None
        [program] = programs.values()
        return GlobalPhase(program, said.rerank_count, said.rank_score_drop_limit)

    def compiler(self) -> ExpressionCompiler:
        profile = self.profile
        numbers = {c.name: float(c.text) for c in profile.constants.values() if c.type.is_number and c.text}
        return ExpressionCompiler(self.catalog, profile.functions, numbers, self.around)

    def program(self, compiler: ExpressionCompiler, source: Source) -> Program | None:
        """The program of an expression; None if it has a problem."""
        try:
            return compiler.builder.program(compiler.compile(source))
        except LanguageError as error:
            self.problems.append(error)
            return None

    def feature_programs(self, names: Sequence[str]) -> dict[str, Program]:
        compiler = self.compiler()
        return {name: compiler.builder.program(compiler.compile(Source(name, name))) for name in names}

    def check_properties(self, compiler: ExpressionCompiler, default_features: Callable[[], Sequence[str]]) -> None:
        """The default features that rank properties name must accept them; the others are compiled when asked for."""
        named = {_family(key) for key in self.profile.rank_properties}
        if not named:
            return
        try:
            features = [name for name in default_features() if _family(name) in named]
        except LanguageError as error:
            self.problems.append(LanguageError(error.bare_message, self.profile.position))
            return
        for name in features:
            self.program(compiler, Source(name, name, None, self.around))


class LazyPrograms(Mapping[str, Program]):
    """Programs by name: some at hand, and more that are compiled when one is asked for first."""

    def __init__(self, own: Mapping[str, Program], more: Callable[[], Mapping[str, Program]] = dict) -> None:
        self._own = own
        self._more = more
        self._all: Mapping[str, Program] | None = None

    @property
    def _programs(self) -> Mapping[str, Program]:
        if self._all is None:
            self._all = {**self._more(), **self._own}
        return self._all

    def __getitem__(self, name: str) -> Program:
        return self._programs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def __len__(self) -> int:
        return len(self._programs)


def _shown(root: _Root) -> str:
    """The name of a feature as results show it: without spaces, as Vespa prints it."""
    return str(parse_expression(root.source.text)) if root.kind.endswith("-features") else root.kind


def _family(name: str) -> str:
    return re.split(r"[.(]", name, maxsplit=1)[0]


def _query_name(key: str) -> str:
    """The name in `query(name)`; empty for anything else."""
    return key[6:-1] if key.startswith("query(") and key.endswith(")") else ""
