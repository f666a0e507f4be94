"""elementSimilarity(field): how alike the query and the elements of a field are, by outputs that rank properties set.

An output is an `aggregator(expression)`. The expression is worked for each element that the query matches, from the
similarities p, o, q and f and the weight w.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-feature-configuration.html#elementSimilarity
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.errors import LanguageError, TooLarge
from paperwasp.ranking import Program, parse_expression
from paperwasp.ranking.program import ProgramBuilder
from paperwasp.ranking.tree import Node, Number, Operation, Prefix, Reference
from paperwasp.search.features.block import Block
from paperwasp.search.features.element_rows import ElementRows, element_rows
from paperwasp.search.features.family import Compute, Floats, RankSetup, is_multiple, register
from paperwasp.text.parsing.nearest import did_you_mean

NAME: Final = "elementSimilarity"
_DEFAULT: Final = "max((0.35*p+0.15*o+0.30*q+0.20*f)*w)"
_SYMBOLS: Final[Mapping[str, Callable[[ElementRows], Floats]]] = {
    "p": lambda rows: rows.column("proximity"),
    "o": lambda rows: rows.column("order"),
    "q": lambda rows: rows.query_coverage,
    "f": lambda rows: rows.field_coverage,
    "w": lambda rows: rows.column("weight"),
}
_OPERATORS: Final = {"+": "add", "-": "subtract", "*": "multiply", "/": "divide", "^": "power"}
_AGGREGATORS: Final[Mapping[str, np.ufunc]] = {"max": np.maximum, "avg": np.add, "sum": np.add}


@dataclass(frozen=True, slots=True)
class _Symbol:
    """A name of an expression, as a `ranking.program.Feature` of its program."""

    name: str
    bm25_field: None = None
    query_name: None = None

    def compute(self, block: Any) -> Floats:
        return _SYMBOLS[self.name](block)


@dataclass(frozen=True, slots=True)
class Output:
    """How the elements of a hit give one value."""

    aggregator: str
    program: Program

    def values(self, rows: ElementRows) -> Floats:
        """Of each hit; 0 where no element matches."""
        columns = [np.ascontiguousarray(symbol.compute(rows)) for symbol in self.program.features]
        values = self.program.evaluate(columns, len(rows.elements))
        counts = np.diff(rows.offsets.astype(np.int64))
        found = np.zeros(len(counts))
        some = counts > 0
        if some.any():
            found[some] = _AGGREGATORS[self.aggregator].reduceat(values, rows.offsets[:-1][some])
        return found / np.maximum(counts, 1) if self.aggregator == "avg" else found


def output_of(text: str) -> Output:
    """`aggregator(expression)`. Raises LanguageError."""
    match = re.fullmatch(r"\s*(\w+)\s*\((.*)\)\s*", text, re.DOTALL)
    if match is None or match[1] not in _AGGREGATORS:
        near = did_you_mean(match[1], _AGGREGATORS) if match else ""
        raise LanguageError(f"{text!r} is no {', '.join(_AGGREGATORS)} of an expression{near}")
    builder = ProgramBuilder()
    try:
        return Output(match[1], builder.program(_compiled(parse_expression(match[2]), builder)))
    except TooLarge as error:
        raise LanguageError(error.message) from None


def _compiled(node: Node, builder: ProgramBuilder) -> int:
    match node:
        case Number(value=value):
            return builder.constant(value)
        case Reference(name=name, arguments=(), output="") if name in _SYMBOLS:
            return builder.feature(_Symbol(name))
        case Prefix(operator="-", operand=operand):
            return builder.apply("negate", _compiled(operand, builder))
        case Operation(operands=operands, operators=operators) if set(operators) <= _OPERATORS.keys():
            value = _compiled(operands[0], builder)
            for operator, operand in zip(operators, operands[1:], strict=True):
                value = builder.apply(_OPERATORS[operator], value, _compiled(operand, builder))
            return value
    known = f"{', '.join(_SYMBOLS)}, numbers and the operators {' '.join(_OPERATORS)}"
    raise LanguageError(f"{str(node)!r} in an output of {NAME}, which knows {known}")


def outputs_of(setup: RankSetup, field: str) -> dict[str, str]:
    """The outputs of a field, the default one first."""
    prefix = f"{NAME}({field}).output."
    names = [key.removeprefix(prefix) for key in setup.profile.rank_properties if key.startswith(prefix)]
    return {"default": _DEFAULT, **{name: setup.text(prefix + name) or "" for name in names}}


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    known = outputs_of(setup, arguments[0])
    if output and output not in known:
        problem = f"rank feature {NAME}({arguments[0]}) has no output {output!r}; it has {', '.join(known)}"
        raise LanguageError(f"{problem}, and those of rank properties {NAME}({arguments[0]}).output.name")
    for name, text in known.items():
        try:
            output_of(text)
        except LanguageError as error:
            raise LanguageError(f"output {name!r} of {NAME}({arguments[0]}): {error.bare_message}") from None
    return ""


def _listed(setup: RankSetup) -> Iterable[str]:
    for field in setup.listed_index_fields:
        if is_multiple(setup.field(field)) and not setup.is_filter(field):
            yield f"{NAME}({field})"
            yield from (f"{NAME}({field}).{name}" for name in outputs_of(setup, field) if name != "default")


@register(NAME, "index", outputs=("default",), listed=_listed, pending=_check, any_output=True)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    aggregated = output_of(outputs_of(setup, arguments[0])[output])

    def compute(block: Block) -> Floats:
        return aggregated.values(element_rows(block, arguments[0]))

    return compute
