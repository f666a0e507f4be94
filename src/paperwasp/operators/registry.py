"""Names → the operators of YQL, of the two kinds there are.

A *condition* stands for itself in `where` (`rank(…)`); a *leaf* stands to the right of `contains` and is given the
field (`phrase(…)`). The parser has read the name and the parenthesis when it calls an operator, which reads its
arguments up to, and without, the closing one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import Item
from paperwasp.query.scope import Scope


class Condition(Protocol):
    """Reads the arguments of an operator that stands for itself."""

    def __call__(self, parser: ArgumentReader, scope: Scope, /) -> Item: ...


class Leaf(Protocol):
    """Reads the arguments of an operator that stands to the right of `contains`.

    `scope` has the annotations of the operator, and what is in force around it; `outer` is what is in force for the
    words that are its arguments.
    """

    def __call__(self, parser: ArgumentReader, field: str, scope: Scope, outer: Scope, /) -> Item: ...


CONDITIONS: dict[str, Condition] = {}
LEAVES: dict[str, Leaf] = {}


def condition(name: str) -> Callable[[Condition], Condition]:
    """Registers a condition under its YQL name."""

    def register(operator: Condition) -> Condition:
        CONDITIONS[name] = operator
        return operator

    return register


def leaf(name: str) -> Callable[[Leaf], Leaf]:
    """Registers an operator that stands after `contains` under its YQL name."""

    def register(operator: Leaf) -> Leaf:
        LEAVES[name] = operator
        return operator

    return register
