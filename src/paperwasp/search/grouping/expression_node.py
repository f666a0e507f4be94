"""Bound expressions: functions of rows of hits, whose types are known, over the columns of one document type.

A family of functions registers, for each name, how it is bound (`register`); `bind` looks up the name of an
expression's function. Importing `paperwasp.search.grouping.expressions` registers all families.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core.clock import check_time
from paperwasp.errors import InvalidQuery
from paperwasp.limits import grouping as limits
from paperwasp.search.grouping.memory import TextMemory
from paperwasp.search.grouping.request import Bucket, Constant, Expression
from paperwasp.search.grouping.values import Kind, Values, lengths_of, offsets_of
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.elements import numbers_within

Lids = NDArray[np.uint32]
_FEW_ARGUMENTS: Final = 4
"""So few are computed of all rows at once."""


class Rows(Struct, frozen=True, eq=False):
    """Hits, each perhaps several times: once for each element of an array by which it is grouped."""

    lids: Lids
    relevances: NDArray[np.float64]
    elements: Mapping[str, NDArray[np.uint32]] = field(default_factory=dict)
    """Name of an array of structs, a map, or another attribute of several values → which of its elements a row is
    about, where its level or one above groups by it: it is then read of this element alone."""

    def at(self, places: NDArray[Any] | slice) -> Rows:
        """The rows at these places, or those where a mask is true."""
        elements = {name: numbers[places] for name, numbers in self.elements.items()}
        return Rows(self.lids[places], self.relevances[places], elements)


class ExpressionNode(ABC):
    """A bound expression."""

    kind: Kind
    is_multi: bool = False
    """Whether a row may have any number of values."""
    size_bytes: int = 8
    """The bytes of a LONG in a binary form (`cat`, `md5`, `xorbit`): those of the attribute's type."""
    arrays: frozenset[str] = frozenset()
    """The arrays of structs, maps and other attributes of several values whose elements it reads all of."""

    @property
    def array(self) -> str | None:
        """The only one of `arrays`: a level that groups by the node, and those below it, read one element of it."""
        return next(iter(self.arrays)) if len(self.arrays) == 1 else None

    @abstractmethod
    def values(self, rows: Rows) -> Values:
        """The values of all rows at once. Errors: OutOfTime."""

    def element_numbers(self, rows: Rows, offsets: NDArray[np.uint32]) -> NDArray[Any]:
        """The number of each value's element of `array`; `offsets` say how many values each of these rows has."""
        return numbers_within(lengths_of(offsets))


class Scope(Struct, frozen=True, eq=False):
    """The names that expressions over the documents of one type can use."""

    columns: Mapping[str, ColumnView] = field(default_factory=dict)
    """By name: attributes, imported ones and parts of arrays of structs and of maps (`persons.name`, `scores.key`)."""
    time_offset_seconds: int = 0
    now_seconds: int = 0
    bound_arrays: frozenset[str] = frozenset()
    """The names of which each row is about one element: `Rows.elements` has its number."""
    given: Mapping[Expression, ExpressionNode] = field(default_factory=dict)
    """Expressions that are bound already: aggregates, where groups are ordered by them."""
    document_ids: Callable[[Lids], Sequence[str]] | None = None
    """The ids of documents, where they are known: in streaming search."""
    is_streamed: bool = False
    """Whether documents are read for this query: of a key that a map does not have they have no value."""
    texts: TextMemory = field(default_factory=TextMemory)
    """Counts the memory of the texts that functions make."""

    def within(self, array: str | None) -> Scope:
        """The scope of what is computed once for each element of `array`; None: the same scope."""
        return self if array is None else replace(self, bound_arrays=self.bound_arrays | {array})


Binder = Callable[[Expression, Scope], ExpressionNode]
BINDERS: Final[dict[str, Binder]] = {}
"""By name of a function."""


def register(*functions: str) -> Callable[[Binder], Binder]:
    """Registers how functions of these names are bound."""

    def add(binder: Binder) -> Binder:
        for name in functions:
            assert name not in BINDERS, name
            BINDERS[name] = binder
        return binder

    return add


def bind(expression: Expression, scope: Scope) -> ExpressionNode:
    """The bound expression. Errors: InvalidQuery for functions that are not known, attributes that are not there, and
    arguments whose number or types do not fit."""
    found = scope.given.get(expression)
    if found is not None:
        return found
    binder = BINDERS.get(expression.function)
    if binder is None:
        raise InvalidQuery(f"Unknown function in grouping: '{expression.function}'")
    return binder(expression, scope)


def bind_arguments(
    expression: Expression, scope: Scope, least: int = 1, most: int | None = None
) -> list[ExpressionNode]:
    """All arguments of a function, each an expression. Errors: InvalidQuery."""
    arguments = expression.arguments
    if len(arguments) < least or (most is not None and len(arguments) > most):
        raise InvalidQuery(f"Function '{expression.function}' does not take {len(arguments)} arguments")
    return [bind(inner_expression(expression, number), scope) for number in range(len(arguments))]


def inner_expression(expression: Expression, number: int) -> Expression:
    """The argument of this number; a literal as a constant. Errors: InvalidQuery where there is none, or a bucket."""
    arguments = expression.arguments
    if number >= len(arguments):
        raise InvalidQuery(f"Function '{expression.function}' does not take {len(arguments)} arguments")
    argument = arguments[number]
    if isinstance(argument, Bucket):
        raise InvalidQuery(f"Argument {number + 1} of function '{expression.function}' must be an expression")
    return argument if isinstance(argument, Expression) else Expression("constant", (argument,))


def inner_constant(expression: Expression, number: int) -> Constant:
    """The argument of this number, which is a constant: a literal, or an expression that is one. Errors: InvalidQuery
    where there is none."""
    argument = expression.arguments[number] if number < len(expression.arguments) else None
    if isinstance(argument, Expression) and argument.function == "constant" and len(argument.arguments) == 1:
        argument = argument.arguments[0]
    if argument is None or isinstance(argument, Expression | Bucket):
        raise InvalidQuery(f"Argument {number + 1} of function '{expression.function}' must be a constant")
    return argument


class Computed(ExpressionNode):
    """A function of the values of other nodes. The time of the query is looked at before each.

    Where the arguments of a function have more than ARGUMENT_VALUES values for all rows together, the rows are
    computed in several parts. So what a function makes of a row must not depend on other rows, and its codes must
    always be of the same table.
    """

    def __init__(
        self,
        kind: Kind,
        arguments: Sequence[ExpressionNode],
        compute: Callable[[Sequence[Values]], Values],
        *,
        is_multi: bool = False,
        size_bytes: int = 8,
    ) -> None:
        self.kind = kind
        self.is_multi = is_multi
        self.size_bytes = size_bytes
        self.arrays = frozenset().union(*(each.arrays for each in arguments))
        self._arguments = tuple(arguments)
        self._compute = compute

    def values(self, rows: Rows) -> Values:
        check_time()
        count, arguments = len(rows.lids), len(self._arguments)
        step = max(1, limits.ARGUMENT_VALUES // max(1, arguments))
        if arguments <= _FEW_ARGUMENTS or count <= step:
            return self._compute([each.values(rows) for each in self._arguments])
        pieces = (rows.at(slice(start, start + step)) for start in range(0, count, step))
        return _below_each_other([self.values(piece) for piece in pieces])


def _below_each_other(pieces: Sequence[Values]) -> Values:
    """The values of rows of which each piece has some."""
    data = np.concatenate([piece.data for piece in pieces])
    if pieces[0].offsets is None:
        return replace(pieces[0], data=data)
    lengths = [lengths_of(piece.offsets) for piece in pieces if piece.offsets is not None]
    return replace(pieces[0], data=data, offsets=offsets_of(np.concatenate(lengths)).astype(np.uint32))
