"""From tokens to the predicates of `filter(…)` and `keep(…)`: `not` binds more strongly than `and`, and that than `or`.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#filtering-groups
"""

from __future__ import annotations

from collections.abc import Callable

from paperwasp.errors import LanguageError
from paperwasp.search.grouping.expression import Expression
from paperwasp.search.grouping.language.expressions import ExpressionParser
from paperwasp.search.grouping.language.functions import is_aggregator
from paperwasp.search.grouping.language.reader import Reader
from paperwasp.search.grouping.request import Filter
from paperwasp.search.language.parameter_lists import string_values

_UNFIT = {"predefined": "a predefined function", "fixedwidth": "a fixed width function"}


class PredicateParser:
    """Reads predicates of one operation. Errors: LanguageError."""

    def __init__(self, reader: Reader, expressions: ExpressionParser) -> None:
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
        _check_in(inner)
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


def _check_in(inner: Expression) -> None:
    name = inner.function
    unfit = "an aggregator" if is_aggregator(name, len(inner.arguments)) else _UNFIT.get(name)
    if unfit is not None:
        raise LanguageError(f"In predicate cannot be used with {unfit}")
