"""One expression over a rank profile, without running it: its type, what it reads, and what is wrong with it."""

from __future__ import annotations

from typing import Final, NamedTuple

from paperwasp import limits
from paperwasp.errors import LanguageError, Position
from paperwasp.ranking.declarations import Declarations
from paperwasp.ranking.names import Type
from paperwasp.ranking.profile import PHASES, Catalog, ProfileCompiler
from paperwasp.ranking.scope import Source
from paperwasp.ranking.type_inference import TypeInference
from paperwasp.schema.model import RankProfile

EXPRESSION: Final = "expression"
"""The source that positions in the text of the expression name."""


class TypedExpression(NamedTuple):
    """What an expression is over one rank profile of one schema."""

    schema: str
    profile: str
    type: Type
    """None: not known, since something is wrong."""
    reads: tuple[str, ...] = ()
    """The rank features that it asks for, functions in their places, and the inputs."""
    phases: tuple[str, ...] = ()
    """Where it may stand."""
    pending: tuple[str, ...] = ()
    """What of it is not executed yet."""
    undeclared: tuple[str, ...] = ()
    """Inputs that are not declared: they are numbers."""
    problems: tuple[LanguageError, ...] = ()


def type_expression(
    text: str, schema: str, profile: RankProfile, catalog: Catalog, declarations: Declarations
) -> TypedExpression:
    """The type of an expression over a rank profile. What is wrong with it is in the result."""
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
