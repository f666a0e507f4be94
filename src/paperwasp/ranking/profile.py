"""Rank profiles, compiled: every name resolved, every type checked, every problem found before it is served.

`paperwasp.search.features` brings the catalog of features and the compiler together. A profile becomes programs that
run, or, if it asks for anything that is not executed yet, the reasons why it does not: it is never run in part.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#rank-profile
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence, Set
from functools import partial
from typing import Final, NamedTuple, Protocol

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.document.tensor.batch import Labels
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import LanguageError
from paperwasp.ranking.compiler import Constants, ExpressionCompiler, FeatureCatalog
from paperwasp.ranking.declarations import Declarations, Model, literal
from paperwasp.ranking.explaining_compiler import ExplainingCompiler, LazyExplanations
from paperwasp.ranking.explanation import Explanation
from paperwasp.ranking.expression import parse_expression
from paperwasp.ranking.forest import Forest
from paperwasp.ranking.global_phase import NORMALIZERS, GlobalPhase
from paperwasp.ranking.names import Names, TypeCatalog, Uses, input_name
from paperwasp.ranking.program import Bm25Field, Feature, Program, ProgramBuilder, weighted_sum
from paperwasp.ranking.scope import Source
from paperwasp.ranking.tensor_graph import RankValue, TensorGraph
from paperwasp.ranking.text_hash import text_number
from paperwasp.ranking.type_inference import TypeInference
from paperwasp.schema.model import Function, RankProfile

DEFAULT_FIRST_PHASE: Final = "nativeRank"
_LATER_THAN_SECOND: Final = NORMALIZERS | {"secondPhase", "relevanceScore"}
_LATER_THAN_FIRST: Final = _LATER_THAN_SECOND | {"firstPhase"}
_SORT_FEATURES: Final = "sort-features"
_SORT_NAME: Final = compile_later(r"[A-Za-z_][A-Za-z0-9_]*")


PHASES: Final[Mapping[str, Set[str]]] = {
    "first-phase": _LATER_THAN_FIRST,
    "second-phase": _LATER_THAN_SECOND,
    "global-phase": frozenset(),
}
"""The phases, and the features that an expression of each cannot ask for."""


class Catalog(FeatureCatalog, TypeCatalog, Protocol):
    """The rank features, as both type inference and compiling ask for them."""


class CompiledProfile(Struct, frozen=True, eq=False):
    """A rank profile, ready to run."""

    name: str
    first_phase: Program
    second_phase: Program | None
    phases: Mapping[str, Program]
    """The programs of the features firstPhase and secondPhase."""
    global_phase: GlobalPhase | None
    match_features: Mapping[str, RankValue]
    """name as the result shows it → what computes it."""
    summary_features: Mapping[str, RankValue]
    rank_features: Mapping[str, RankValue]
    """The features that ranking.listFeatures shows: the default ones, unless the profile ignores them, and its own."""
    sort_features: Mapping[str, Program]
    """The features that queries may sort by."""
    rerank_count: int
    keep_rank_count: int
    rank_score_drop_limit: float | None
    """Hits with a first-phase score of this or lower are dropped."""
    second_phase_rank_score_drop_limit: float | None
    inputs: Mapping[str, float]
    """query(name) → default value, for the inputs of numbers and texts that the profile declares."""
    tensor_inputs: Mapping[str, Tensor]
    """query(name) → default value, for its inputs of tensor type that have one."""
    labels: Labels
    """The labels of its constants, as the tensors of a query number them."""
    properties: Mapping[str, str]
    undeclared_inputs: tuple[str, ...]
    """Names in query(name) that are not declared, in a profile with tensors: they count as numbers."""
    bm25_sum: tuple[tuple[str, float], ...] | None
    """(field, weight) when the first phase is exactly the sum of weight · bm25(field), no weight negative."""
    bm25_fields: Mapping[str, Bm25Field]
    """By name, the fields whose bm25 the first phase takes."""
    explanations: Mapping[str, Explanation]
    """By `first-phase`, `second-phase`, `global-phase`. Raises LanguageError for what is too deep to be explained."""
    size_bytes: int
    """About how much memory its programs and tensors take, but for the features that are listed."""

    def bm25_weights(self, inputs: Mapping[str, float]) -> tuple[tuple[str, float], ...] | None:
        """As `bm25_sum`, where weights may also depend on query(name). `inputs`: what the query overrides."""
        if self.bm25_sum is not None:
            return self.bm25_sum
        return _bm25_sum(self.first_phase, lambda name: inputs.get(name, self.inputs.get(name, 0.0)))


class Unexecuted(Struct, frozen=True):
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
    if any(feature.bm25_field is None and feature.query_name is None for feature in program.features):
        return None

    def known(feature: Feature) -> float | None:
        return query_value(feature.query_name) if query_value and feature.query_name is not None else None

    weights = weighted_sum(program, known)
    if weights is None or not all(weight >= 0 and math.isfinite(weight) for weight in weights.values()):
        return None
    return tuple(weights.items())


class ProfileError(LanguageError):
    """All problems of the rank profiles that were compiled, one a line."""

    def __init__(self, problems: Sequence[LanguageError]) -> None:
        unique = {str(problem): problem for problem in reversed(problems)}
        super().__init__("\n".join(reversed(unique)))
        self.problems = tuple(reversed(unique.values()))
        self.position = problems[0].position


def compile_profile(
    profile: RankProfile,
    catalog: Catalog,
    default_rank_features: Callable[[], Sequence[str]] = tuple,
    source: str = "",
    declarations: Declarations | None = None,
    given: Collection[str] = (),
) -> CompiledProfile | Unexecuted:
    """Compiles all expressions of `profile`; raises ProfileError with every problem found.

    `source` is the path of the schema, for errors. `default_rank_features` must be features of the catalog. `given`:
    the kinds of expressions, such as `first-phase`, that a query brings: these have the bounds of `limits.expressions`,
    and the rest of the profile was checked before.
    """
    compiler = ProfileCompiler(profile, catalog, source, declarations or Declarations(), frozenset(given))
    return compiler.compile(default_rank_features)


class _Root(NamedTuple):
    """One expression of a profile that results come from."""

    kind: str
    """`first-phase`, `match-features`, …"""
    source: Source
    unseen: Set[str]
    """Features that it cannot ask for."""

    @property
    def is_number(self) -> bool:
        """True where it has to be a number, and no tensor."""
        return self.kind.endswith("-phase") or self.kind == _SORT_FEATURES


class ProfileCompiler:
    """Compiles one profile, and collects what is wrong, so that one deploy shows everything."""

    def __init__(
        self,
        profile: RankProfile,
        catalog: Catalog,
        source: str,
        declarations: Declarations,
        given: frozenset[str] = frozenset(),
    ) -> None:
        start = profile.position
        file = start.source if start else source
        at = f" (at line {start.line})" if start else ""
        self.profile = profile
        self.around = f"{file}{', ' if file else ''}rank-profile {profile.name!r}{at}, "
        self.catalog = catalog
        self.declarations = declarations
        self.given = given
        self.problems: list[LanguageError] = []

    def compile(self, default_rank_features: Callable[[], Sequence[str]]) -> CompiledProfile | Unexecuted:
        self.check_declarations()
        inputs = self.input_defaults()
        roots = list(self.roots())
        uses = self.infer(roots)
        if self.problems:
            raise ProfileError(self.problems)
        pending = tuple(uses.pending)
        undeclared = tuple(uses.undeclared) if uses.has_tensors else ()
        if pending:
            return Unexecuted(self.profile.name, pending, undeclared)
        return self.programs(roots, inputs, undeclared, default_rank_features)

    # What is checked

    def roots(self) -> Iterator[_Root]:
        """The expressions that results come from, in the order in which problems are reported."""
        profile = self.profile
        first = profile.first_phase if profile.first_phase is not None else DEFAULT_FIRST_PHASE
        yield self.root("first-phase", first)
        if profile.second_phase is not None:
            yield self.root("second-phase", profile.second_phase)
        if profile.global_phase is not None:
            start = profile.global_phase.position
            yield _Root(
                "global-phase",
                Source(profile.global_phase.expression, "global-phase", start, self.around),
                PHASES["global-phase"],
            )
        for kind, names in (
            ("match-features", profile.match_features),
            ("summary-features", profile.summary_features),
            ("rank-features", profile.rank_features),
        ):
            for name in names:
                start = profile.expression_positions.get(f"{kind} {name}") or profile.expression_positions.get(kind)
                yield _Root(kind, Source(name, f"{kind} {name!r}", start, self.around, is_exact=False), NORMALIZERS)
        for name in profile.sort_features:
            start = profile.expression_positions.get(_SORT_FEATURES)
            source = Source(name, f"{_SORT_FEATURES} {name!r}", start, self.around, is_exact=False)
            yield _Root(_SORT_FEATURES, source, _LATER_THAN_FIRST)

    def root(self, phase: str, text: str) -> _Root:
        start = self.profile.expression_positions.get(phase)
        return _Root(phase, Source(text, phase, start, self.around), PHASES[phase])

    def names(self) -> Names:
        """The names that the profile declares."""
        return Names(
            self.profile.functions,
            {name: constant.type for name, constant in self.profile.constants.items()},
            {input_name(name) or name: declared.type for name, declared in self.profile.inputs.items()},
            self.model,
            self.forest,
        )

    def infer(self, roots: Sequence[_Root]) -> Uses:
        """Infers the types of all roots; returns what they use. Functions that nothing calls are checked as well."""
        inference = TypeInference(self.catalog, self.names(), self.around)
        if self.given:
            inference.most_problems = limits.expressions.PROBLEMS
        total = Uses()
        for root in roots:
            most = limits.expressions.OPERATIONS if root.kind in self.given else limits.RANK_INFERENCE_NODES
            type_, uses = inference.infer(root.source, most)
            for name in uses.features.keys() & root.unseen:
                inference.add(LanguageError(f"{root.kind}: {name} is not known in this phase", root.source.position(0)))
            if root.is_number and type_ is not None and not type_.is_number:
                message = f"The {root.kind} expression must produce a double (a tensor with no dimensions)"
                inference.add(LanguageError(f"{message}, but produces {type_}", root.source.position(0)))
            if root.kind == _SORT_FEATURES and not _SORT_NAME.fullmatch(root.source.text):
                message = f"{_SORT_FEATURES} are names of functions and of features without arguments"
                inference.add(LanguageError(f"{message}, not {root.source.text!r}", root.source.position(0)))
            total.add(uses)
        for name in self.profile.functions if not self.given else ():
            inference.check_function(name)
        self.problems += inference.problems
        if self.profile.strict and total.undeclared:
            message = f"is strict but is missing a declaration of inputs {', '.join(total.undeclared)}"
            self.problems.append(LanguageError(f"rank-profile {self.profile.name!r} {message}", self.profile.position))
        return total

    def model(self, name: str) -> Model:
        declared = self.profile.onnx_models.get(name)
        return self.declarations.model_file(name) if declared is None else self.declarations.model(declared)[0]

    def forest(self, kind: str, name: str) -> Forest | None:
        return self.declarations.forest(kind, name)

    def check_declarations(self) -> None:
        for constant in self.profile.constants.values():
            problem = self.declarations.constant(constant)[1] if constant.text else None
            if problem is not None:
                self.problems.append(problem)
        for model in self.profile.onnx_models.values():
            self.problems += self.declarations.model(model)[1]

    def input_defaults(self) -> dict[str, float | Tensor]:
        """query(name) → default value: of the inputs, and of rank properties `query(name)`. A text is its hash."""
        defaults: dict[str, float | Tensor] = {}
        declared = {input_name(name) or name: given for name, given in self.profile.inputs.items()}
        for name, given in declared.items():
            if given.type is None:
                defaults[name] = text_number(given.default) if given.default else 0.0
            elif given.type.is_number or given.default:
                value, problem = literal(f"input query({name})", given.default or "0", given.type, given.position)
                if problem is not None:
                    self.problems.append(problem)
                else:
                    assert value is not None
                    defaults[name] = value
        named = sorted(self.profile.rank_properties.items(), key=lambda item: item[0].startswith("query("))
        for key, (text, *_) in named:  # query(name) goes before $name
            name = key[1:] if key.startswith("$") else input_name(key)
            if name and (name not in declared or isinstance(defaults.get(name), float)):
                defaults[name] = text_number(text.strip().strip('"'))
        return defaults

    # What runs

    def programs(
        self,
        roots: Sequence[_Root],
        inputs: Mapping[str, float | Tensor],
        undeclared: tuple[str, ...],
        default_rank_features: Callable[[], Sequence[str]],
    ) -> CompiledProfile:
        profile = self.profile
        compiler = self.compiler()
        phases: dict[str, Program] = {}
        sorting: dict[str, Program] = {}
        features: dict[str, dict[str, RankValue]] = {}
        for root in roots:
            given = root.kind in self.given
            compiler.most_visits = limits.expressions.OPERATIONS if given else limits.RANK_PROGRAM_OPERATIONS
            value = self.runnable(compiler, root.source)
            if isinstance(value, Program) and root.is_number:
                (sorting if root.kind == _SORT_FEATURES else phases)[_shown_name(root)] = value
            elif value is not None:
                features.setdefault(root.kind, {})[_shown_name(root)] = value
        own, listed = features.get("rank-features", {}), LazyPrograms(lambda: self.as_listed(own))
        if not profile.ignore_default_rank_features:
            if not self.given:
                self.check_properties(compiler, default_rank_features)
            listed = LazyPrograms(lambda: self.as_listed({**self.feature_programs(default_rank_features()), **own}))
        if self.problems:
            raise ProfileError(self.problems)
        first_phase, second_phase = phases["first-phase"], phases.get("second-phase")
        explanations = self.explanations(roots)
        return CompiledProfile(
            name=profile.name,
            first_phase=first_phase,
            second_phase=second_phase,
            phases={"firstPhase": first_phase, **({"secondPhase": second_phase} if second_phase else {})},
            global_phase=self.global_phase(phases.get("global-phase"), explanations),
            match_features=self.as_listed(features.get("match-features", {})),
            summary_features=self.as_listed(features.get("summary-features", {})),
            rank_features=listed,
            sort_features=sorting,
            rerank_count=profile.rerank_count,
            keep_rank_count=profile.keep_rank_count,
            rank_score_drop_limit=profile.rank_score_drop_limit,
            second_phase_rank_score_drop_limit=profile.second_phase_rank_score_drop_limit,
            inputs={name: value for name, value in inputs.items() if not isinstance(value, Tensor)},
            tensor_inputs={name: value for name, value in inputs.items() if isinstance(value, Tensor)},
            labels=compiler.graph.labels,
            undeclared_inputs=undeclared,
            properties={key: values[0] for key, values in profile.rank_properties.items()},
            bm25_sum=_bm25_sum(first_phase),
            bm25_fields={field.name: field for each in first_phase.features if (field := each.bm25_field) is not None},
            explanations=explanations,
            size_bytes=compiler.graph.size_bytes + _programs_bytes(phases, sorting, *features.values()),
        )

    def explanations(self, roots: Sequence[_Root]) -> LazyExplanations:
        def begin() -> Callable[[], ExplainingCompiler]:
            again = self.compiler()
            for root in roots:  # all, in their order: so the labels of constants have the same numbers
                again.runnable(root.source)
            return lambda: ExplainingCompiler(*self._compiler_arguments(), again.graph, self)

        return LazyExplanations({root.kind: root.source for root in roots if root.kind.endswith("-phase")}, begin)

    def global_phase(self, program: Program | None, explanations: LazyExplanations) -> GlobalPhase | None:
        said = self.profile.global_phase
        if said is None or program is None:
            return None
        limit = said.rank_score_drop_limit
        return GlobalPhase(program, said.rerank_count, limit, lambda: explanations["global-phase"])

    def compiler(self, graph: TensorGraph | None = None) -> ExpressionCompiler:
        if graph is None and self.given:
            graph = TensorGraph(ProgramBuilder(), Labels(), folded_cells=limits.expressions.FOLDED_CELLS)
        return ExpressionCompiler(*self._compiler_arguments(), graph, self)

    def _compiler_arguments(self) -> tuple[Catalog, Mapping[str, Function], Constants, str]:
        """The arguments of the compilers: catalog, functions, constants, and the text around the expressions."""
        constants: Constants = {name: partial(self.constant, name) for name in self.profile.constants}
        return self.catalog, self.profile.functions, constants, self.around

    def constant(self, name: str) -> float | Tensor:
        """The value of a constant. Errors: LanguageError where it is in a file that is not available."""
        value, problem = self.declarations.constant(self.profile.constants[name])
        if problem is not None:
            raise problem
        if value is None:
            raise LanguageError(f"constant {name!r} is in a file that is not available")
        return value

    def runnable(self, compiler: ExpressionCompiler, source: Source) -> RankValue | None:
        """Compiles an expression; None if it has a problem, which is added to the others."""
        try:
            return compiler.runnable(source)
        except LanguageError as error:
            self.problems.append(error)
            return None

    def as_listed(self, features: Mapping[str, RankValue]) -> dict[str, RankValue]:
        """The features in the order of results: that of their names, a function being `rankingExpression(name)`.

        Vespa: blueprintresolver.h (`FeatureMap`); names are shortened when the values are there (extract_features.cpp).
        """

        def seed(name: str) -> str:
            return f"rankingExpression({name})" if name.partition("(")[0] in self.profile.functions else name

        return {name: features[name] for name in sorted(features, key=seed)}

    def feature_programs(self, names: Sequence[str]) -> dict[str, RankValue]:
        compiler = self.compiler(TensorGraph(ProgramBuilder(), Labels(), "listed"))
        return {name: compiler.runnable(Source(name, name)) for name in names}

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
            try:
                compiler.runnable(Source(name, name))
            except LanguageError as error:
                if not any(known.bare_message.endswith(error.bare_message) for known in self.problems):
                    self.problems.append(LanguageError(error.bare_message, self.profile.position))


class LazyPrograms(Mapping[str, RankValue]):
    """Programs by name that are compiled, all together, when one of them is first used."""

    def __init__(self, compiled: Callable[[], Mapping[str, RankValue]]) -> None:
        self._compiled = compiled
        self._all: Mapping[str, RankValue] | None = None

    @property
    def _programs(self) -> Mapping[str, RankValue]:
        if self._all is None:
            self._all = self._compiled()
        return self._all

    def __getitem__(self, name: str) -> RankValue:
        return self._programs[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._programs)

    def __len__(self) -> int:
        return len(self._programs)


def _programs_bytes(*named: Mapping[str, RankValue]) -> int:
    values = [value for values in named for value in values.values()]
    return sum(value.size_bytes for value in values if isinstance(value, Program))


def _shown_name(root: _Root) -> str:
    """The kind of a root, or its feature's name as results show it: without spaces, as Vespa prints it."""
    return str(parse_expression(root.source.text)) if root.kind.endswith("-features") else root.kind


def _family(name: str) -> str:
    return re.split(r"[.(]", name, maxsplit=1)[0]
