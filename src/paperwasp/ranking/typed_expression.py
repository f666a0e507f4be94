"""The analysis of expressions and rank profiles without running them: types, features that are read, problems.

Rank profiles whose bm25 cannot score are valid, and their scores are 0 or all alike: there are warnings of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.declarations import Declarations
from paperwasp.ranking.names import Type
from paperwasp.ranking.profile import PHASES, Catalog, CompiledProfile, ProfileCompiler
from paperwasp.ranking.scope import Source
from paperwasp.ranking.type_inference import TypeInference
from paperwasp.schema.model import RankProfile, Schema

EXPRESSION: Final = "expression"
"""The source that positions in the text of the expression name."""


class TypedExpression(NamedTuple):
    """The analysis of an expression over one rank profile of one schema."""

    schema: str
    profile: str
    type: Type
    """None: not known, since something is wrong."""
    reads: tuple[str, ...] = ()
    """The rank features that it asks for, functions in their places, and the inputs."""
    phases: tuple[str, ...] = ()
    """The phases in which it may stand."""
    pending: tuple[str, ...] = ()
    """The parts of it that are not executed yet."""
    undeclared: tuple[str, ...] = ()
    """Inputs that are not declared: they are numbers."""
    problems: tuple[LanguageError, ...] = ()


def type_expression(
    text: str, schema: str, profile: RankProfile, catalog: Catalog, declarations: Declarations
) -> TypedExpression:
    """Analyze an expression over a rank profile. Problems are in the result."""
    compiler = ProfileCompiler(profile, catalog, "", declarations, frozenset((EXPRESSION,)))
    inference = TypeInference(catalog, compiler.names())
    inference.most_problems = limits.expressions.PROBLEMS
    source = Source(text, EXPRESSION, Position(EXPRESSION, 1, 1))
    type_, uses = inference.infer(source, limits.expressions.OPERATIONS)
    problems = inference.problems
    if not problems and not uses.pending:
        expression = compiler.compiler()
        expression.most_visits = limits.expressions.OPERATIONS
        compiler.runnable(expression, source)
        problems = compiler.problems
    is_number = type_ is not None and type_.is_number and not problems
    return TypedExpression(
        schema,
        profile.name,
        None if problems else type_,
        tuple(uses.references),
        tuple(phase for phase, unseen in PHASES.items() if is_number and not uses.features.keys() & unseen),
        tuple(uses.pending),
        tuple(uses.undeclared),
        tuple(LanguageError(each.bare_message.removeprefix(f"{EXPRESSION}: "), each.position) for each in problems),
    )


# Warnings of bm25

_BEGINNING: Final = "bm25("


def bm25_fields(names: Iterable[str]) -> list[str]:
    """Return the fields of the bm25 features among some features, each once."""
    found = (name.removeprefix(_BEGINNING).removesuffix(")") for name in names if name.startswith(_BEGINNING))
    return list(dict.fromkeys(field.partition(",")[0].removeprefix("field:") for field in found))


def fields_of_profile(profile: CompiledProfile) -> list[str]:
    """Return the fields whose bm25 the first two phases of a profile take."""
    programs = [profile.first_phase] + ([profile.second_phase] if profile.second_phase is not None else [])
    return bm25_fields(feature.name for program in programs for feature in program.features)


def coarse(schema: Schema, fields: Iterable[str]) -> Iterator[str]:
    """Warn of each of the fields of which too little is kept for bm25."""
    for name in fields:
        index = schema.fields[name].index if name in schema.fields else None
        if index is not None and not index.enable_bm25 and not schema.is_streamed:
            yield (
                f"bm25({name}) takes each match for one in a text of average length, as Vespa does: field {name} has "
                "no 'index: enable-bm25'"
            )


def unsearched(profile: CompiledProfile, searched: Collection[str]) -> Iterator[str]:
    """Warn of each of the fields in which the query has no term."""
    for name in fields_of_profile(profile):
        if name not in searched:
            yield f"bm25({name}) is 0 in all hits: no term of the query searches field {name}"
