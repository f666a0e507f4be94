"""From the text of grouping statements to operations, and to the predicates in them.

Vespa: GroupingParser.jj, GroupingOperation
"""

from __future__ import annotations

from collections.abc import Callable

from paperwasp import limits
from paperwasp.errors import LanguageError
from paperwasp.search.grouping.language.expressions import Aliases, ExpressionParser
from paperwasp.search.grouping.language.operation import UNLIMITED, Operation, is_aggregator
from paperwasp.search.grouping.language.reader import Parameters, TokenReader
from paperwasp.search.grouping.request import Filter
from paperwasp.search.yql_syntax import string_values

# From tokens to the predicates of `filter(…)` and `keep(…)`: `not` binds more strongly than `and`, and that than `or`.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#filtering-groups


_UNFIT = {"predefined": "a predefined function", "fixedwidth": "a fixed width function"}


class PredicateParser:
    """Reads predicates of one operation. Errors: LanguageError."""

    def __init__(self, reader: TokenReader, expressions: ExpressionParser) -> None:
        self._reader = reader
        self._expressions = expressions

    def predicate(self) -> Filter:
        with self._reader.within():
            return self._joined("or", lambda: self._joined("and", self._negated))

    def _joined(self, word: str, read: Callable[[], Filter]) -> Filter:
        parts = [read()]
        while self._reader.at_word(word):
            self._reader.identifier()
            parts.append(read())
        return parts[0] if len(parts) == 1 else Filter(word, parts=tuple(parts))

    def _negated(self) -> Filter:
        if not self._reader.at_word("not"):
            return self._primary()
        self._reader.identifier()
        with self._reader.within():
            return Filter("not", parts=(self._negated(),))

    def _primary(self) -> Filter:
        reader = self._reader
        if reader.accept("("):
            found = self.predicate()
            reader.expect(")")
            return found
        kind = reader.current.text
        if not reader.at_word("regex", "range", "istrue", "in"):
            reader.fail('"("', '"regex"', '"range"', '"istrue"', '"in"', '"not"')
        reader.next()
        reader.expect("(")
        reader.count()
        found = getattr(self, f"_{kind}")()
        reader.expect(")")
        assert isinstance(found, Filter)
        return found

    def _regex(self) -> Filter:
        pattern = self._reader.string()
        self._reader.expect(",")
        return Filter("regex", self._expressions.expression(), (pattern,))

    def _range(self) -> Filter:
        reader = self._reader
        low = reader.number(is_signed=True)
        reader.expect(",")
        high = reader.number(is_signed=True)
        reader.expect(",")
        inner = self._expressions.expression()
        has_low, has_high = True, False
        if reader.accept(","):
            has_low = reader.truth()
            reader.expect(",")
            has_high = reader.truth()
        return Filter("range", inner, (low, high, has_low, has_high))

    def _istrue(self) -> Filter:
        return Filter("istrue", self._expressions.expression())

    def _in(self) -> Filter:
        inner = self._expressions.expression()
        self._reader.expect(",")
        values = [*self._values()]
        while self._reader.accept(","):
            values += self._values()
        if not values:
            raise LanguageError("In predicate requires at least one argument, but none were provided")
        unfit = "an aggregator" if is_aggregator(inner.function, len(inner.arguments)) else _UNFIT.get(inner.function)
        if unfit is not None:
            raise LanguageError(f"In predicate cannot be used with {unfit}")
        return Filter("in", inner, tuple(values))

    def _values(self) -> tuple[str, ...]:
        if self._reader.current.kind != "parameter":
            return (self._reader.string(),)
        name, text = self._reader.parameter()
        try:
            values = string_values(text)
        except ValueError as error:
            raise LanguageError(f"Input '{name}' is not a valid list: {error}") from None
        self._reader.count(len(values))
        return values


def parse_grouping(text: str, parameters: Parameters | None = None) -> list[Operation]:
    """The statements of a text, `;` between them. `parameters`: gives the values of `@name`.

    Errors: LanguageError, in Vespa's words, with the position; OutOfTime.
    """
    if not text.strip():
        return []
    reader = TokenReader(text, parameters)
    try:
        reader.skip_space()
        found = [_root(reader)]
        while reader.accept(";"):
            found.append(_root(reader))
            if len(found) > limits.grouping.STATEMENTS:
                raise LanguageError(f"More than {limits.grouping.STATEMENTS} grouping statements")
        reader.expect_end()
    except RecursionError:
        raise LanguageError(f"Nested deeper than {limits.grouping.EXPRESSION_DEPTH} levels") from None
    return found


def _root(reader: TokenReader) -> Operation:
    """One statement; `where(…)` behind it is of an operation around it."""
    found = _OperationParser(reader, None, 1).read()
    if not reader.at_word("where"):
        return found
    reader.next()
    reader.expect("(")
    outer = Operation(is_each=False, where=_where(reader), children=[found])
    reader.expect(")")
    return outer


def _where(reader: TokenReader) -> str:
    sign = "$" if reader.at_symbol("$") else ""
    if sign:
        reader.next()
    return sign + reader.identifier()


class _OperationParser:
    """Reads one operation, and those in it."""

    def __init__(self, reader: TokenReader, outer: Aliases | None, depth: int) -> None:
        if depth > limits.grouping.OPERATION_DEPTH:
            raise LanguageError(f"Operations are nested deeper than {limits.grouping.OPERATION_DEPTH} levels")
        self._reader = reader
        self._depth = depth
        self._aliases = Aliases(outer)
        self._expressions = ExpressionParser(reader, self._aliases)

    def read(self) -> Operation:
        reader = self._reader
        if not reader.at_word("all", "each"):
            reader.fail("<SPACE>", '"all"', '"each"')
        operation = Operation(is_each=reader.next().text == "each")
        reader.expect("(")
        if reader.at_word("group"):
            reader.next()
            reader.expect("(")
            operation.group_by = self._expressions.expression()
            reader.expect(")")
        while not reader.at_symbol(")") and not reader.at_word("all", "each"):
            self._part(operation)
        while not reader.at_symbol(")"):
            operation.children.append(_OperationParser(reader, self._aliases, self._depth + 1).read())
        reader.expect(")")
        if operation.is_each:
            operation.label = self._expressions.label()
        return operation

    def _part(self, operation: Operation) -> None:
        reader = self._reader
        name = reader.current.text
        if not reader.at_word(*_PARTS):
            reader.fail('")"', *(f'"{part}"' for part in ("all", "each", *_PARTS)))
        reader.next()
        reader.expect("(")
        match name:
            case "accuracy":
                operation.accuracy = _accuracy(float(reader.number()))
            case "alias":
                self._alias()
            case "hint":
                operation.hints.append(reader.identifier())
            case "filter" | "keep":
                operation.filter = PredicateParser(reader, self._expressions).predicate()
            case "max":
                operation.max = self._max()
            case "order":
                operation.order += self._expressions.listed()
            case "output":
                operation.outputs += self._expressions.listed()
            case "precision":
                operation.precision = _as_int(reader.number())
            case _:
                operation.where = _where(reader)
        reader.expect(")")

    def _alias(self) -> None:
        reader = self._reader
        name = reader.identifier()
        reader.expect(",")
        before = reader.size
        self._aliases.put(name, self._expressions.expression(), reader.size - before)

    def _max(self) -> int | None:
        reader = self._reader
        if reader.at_word("inf"):
            reader.next()
            reader.skip_space()
            return UNLIMITED
        found = _as_int(reader.number())
        return found if found >= 0 else None


_PARTS = ("accuracy", "alias", "hint", "filter", "keep", "max", "order", "output", "precision", "where")


def _as_int(number: float) -> int:
    """The integer of 32 bits that Vespa takes a number for."""
    return max(-UNLIMITED, min(UNLIMITED, int(max(-1e15, min(1e15, number)))))


def _accuracy(value: float) -> float:
    if not 0 <= value <= 1:
        raise LanguageError(f"Illegal accuracy '{value}'. Must be between 0 and 1.")
    return value
