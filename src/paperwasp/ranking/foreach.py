"""foreach: one number of the values that a feature has for each term, field or attribute.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#foreach(dimension,variable,feature,condition,operation)
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from typing import Final

from msgspec import Struct

from paperwasp.ranking.program import ProgramBuilder
from paperwasp.ranking.scope import Scope, argument_text
from paperwasp.ranking.tree import Reference

DEFAULT_TERMS: Final = 16
"""How many terms foreach goes over, if the rank property foreach.maxTerms does not say."""
_BEGINS: Final[Mapping[str, float]] = {
    "sum": 0.0,
    "product": 1.0,
    "average": 0.0,
    "max": -sys.float_info.max,
    "min": sys.float_info.max,
    "count": 0.0,
}
OPERATIONS: Final = tuple(_BEGINS)
_STEPS: Final[Mapping[str, str]] = {"sum": "add", "product": "multiply", "average": "add", "max": "max", "min": "min"}


_FEATURE: Final = 2
"""Which argument is the feature."""


def arguments_of(node: Reference, scope: Scope) -> tuple[str, ...] | None:
    """The arguments of a foreach as texts; None where one is not known. The feature, an expression, keeps quotes."""
    texts = []
    for number, argument in enumerate(node.arguments):
        is_feature = number == _FEATURE and isinstance(argument, Reference) and scope.binding(argument) is None
        texts.append(str(argument) if is_feature else argument_text(argument, scope))
    known = tuple(text for text in texts if text is not None)
    return known if len(known) == len(texts) else None


def condition_of(text: str) -> tuple[str, float] | None:
    """The operation and the number of `>number` or `<number`; None for "true". Errors: ValueError."""
    if text == "true":
        return None
    names = {">": "greater", "<": "less"}
    if text[:1] not in names:
        raise ValueError(f'the condition of foreach is true, ">number" or "<number", not {text!r}')
    return names[text[0]], float(text[1:])


class Folding(Struct):
    """A fold of values of a builder by one operation, in their order."""

    operation: str
    is_used: Callable[[int], int]
    """Returns of a value the one that tells whether it is taken."""
    builder: ProgramBuilder
    value: int
    count: int

    @classmethod
    def of(cls, condition: str, operation: str, builder: ProgramBuilder) -> Folding:
        compared = condition_of(condition)

        def is_used(value: int) -> int:
            if compared is None:
                return builder.constant(1.0)
            return builder.apply(compared[0], value, builder.constant(compared[1]))

        return cls(operation, is_used, builder, builder.constant(_BEGINS[operation]), builder.constant(0.0))

    def add(self, value: int) -> None:
        builder = self.builder
        used = self.is_used(value)
        if self.operation in _STEPS:
            together = builder.apply(_STEPS[self.operation], value, self.value)
            self.value = builder.apply("select", used, together, self.value)
        if self.operation in ("average", "count"):
            more = builder.apply("add", self.count, builder.constant(1.0))
            self.count = builder.apply("select", used, more, self.count)

    def result(self) -> int:
        if self.operation == "count":
            return self.count
        if self.operation == "average":
            mean = self.builder.apply("divide", self.value, self.count)
            return self.builder.apply("select", self.count, mean, self.builder.constant(0.0))
        return self.value
