"""Names → the readers of operators in YQL, of the three kinds there are.

A *condition* stands for itself in `where` (`rank(…)`); a *leaf* stands to the right of `contains` and is given the
field (`phrase(…)`); a *comparison* stands between a field and what it is compared with (`matches`, `in`). The parser
has read the name, and the parenthesis of the first two, when it calls a reader, which reads the arguments up to, and
without, the closing one.

What kinds of arguments a condition or leaf has is said for the JSON query language, which writes them as YQL.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum
from typing import Final, NamedTuple, Protocol

from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.item import Item


class Condition(Protocol):
    """Reads the arguments of an operator that stands for itself."""

    def __call__(self, parser: ArgumentReader, scope: Scope, /) -> Item: ...


class Leaf(Protocol):
    """Reads the arguments of an operator that stands to the right of `contains`.

    `scope` has the annotations of the operator, and what is in force around it; `outer` is what is in force for the
    words that are its arguments.
    """

    def __call__(self, parser: ArgumentReader, field: str, scope: Scope, outer: Scope, /) -> Item: ...


class Comparison(Protocol):
    """Reads what a field is compared with."""

    def __call__(self, parser: ArgumentReader, field: str, scope: Scope, /) -> Item: ...


class Argument(Enum):
    """A kind of argument."""

    CONDITION = "condition"
    PART = "part"
    """A word, or an operator on the same field."""
    NAME = "name"
    """The name of a field or a tensor."""
    LITERAL = "literal"


class Arguments(NamedTuple):
    """The arguments of an operator."""

    kinds: tuple[Argument, ...]
    """In their order; further ones are of the last kind. None of them: there are no arguments."""
    is_fixed: bool = False
    """Whether there are as many as there are kinds."""


CONDITIONS: Final[dict[str, Condition]] = {}
LEAVES: Final[dict[str, Leaf]] = {}
COMPARISONS: Final[dict[str, Comparison]] = {}
ARGUMENTS: Final[dict[str, Arguments]] = {}
"""The arguments of conditions and leaves."""


def condition(name: str, *arguments: Argument, is_fixed: bool = False) -> Callable[[Condition], Condition]:
    """Registers the reader of a condition under its YQL name."""

    def register(reader: Condition) -> Condition:
        CONDITIONS[name], ARGUMENTS[name] = reader, Arguments(arguments, is_fixed)
        return reader

    return register


def leaf(name: str, *arguments: Argument) -> Callable[[Leaf], Leaf]:
    """Registers the reader of an operator that stands after `contains` under its YQL name."""

    def register(reader: Leaf) -> Leaf:
        LEAVES[name], ARGUMENTS[name] = reader, Arguments(arguments or (Argument.PART,))
        return reader

    return register


def comparison(name: str) -> Callable[[Comparison], Comparison]:
    """Registers the reader of an operator that stands behind a field under its YQL name."""

    def register(reader: Comparison) -> Comparison:
        COMPARISONS[name] = reader
        return reader

    return register
