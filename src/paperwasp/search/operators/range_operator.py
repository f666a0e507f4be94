"""Comparisons and range(): values of an attribute between two bounds; a single number is a word too.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range
"""

from __future__ import annotations

from math import inf
from typing import Any, Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.numbers import double_text
from paperwasp.schema.model import Field
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, bounds, call, condition
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.patterns import text_range
from paperwasp.search.operators.term import IndexMatch, range_match, word_match
from paperwasp.search.operators.text import NOWHERE, sequence
from paperwasp.search.operators.word import fields_of, seen_match, term_operator
from paperwasp.search.yql_syntax import NUMBERS, AnnotationScope, number_value
from paperwasp.storage.attributes.bounds import NumberTerm

_WORDS: Final = compile_later(r"[0-9A-Za-z]+")


_BOUNDS: Final = {
    None: (True, True),
    "closed": (True, True),
    "open": (False, False),
    "leftOpen": (False, True),
    "rightOpen": (True, False),
}
"""The annotation `bounds` → whether the low and high ends belong to the range."""


class RangeItem(TermItem, frozen=True):
    """Values between two bounds; None is open. `hit_limit` is Vespa's (positive: lowest first, negative: highest)."""

    copied = ("low", "high")
    is_plain = True

    low: float | int | None
    high: float | int | None
    low_inclusive: bool = True
    high_inclusive: bool = True
    hit_limit: int = 0

    def to_yql(self) -> str:
        extra: dict[str, Any] = {"hitLimit": self.hit_limit} if self.hit_limit else {}
        if self.low == self.high and self.low is not None and self.low_inclusive and self.high_inclusive:
            return f"{self.index} = {annotated(repr(self.low), self.annotations, extra)}"
        extra |= bounds(self.low_inclusive, self.high_inclusive)
        low = "-Infinity" if self.low is None else repr(self.low)
        high = "Infinity" if self.high is None else repr(self.high)
        return annotated(call("range", (self.index, low, high)), self.annotations, extra)

    def written(self) -> str:
        if self.low is not None and self.high is not None:
            return f"[{self.low};{self.high}]"
        if self.low is None:
            return f"<{'=' * self.high_inclusive}{self.high}"
        return f">{'=' * self.low_inclusive}{self.low}"

    def plan(self, space: SearchSpace) -> Operator:
        term = NumberTerm(self.low, self.high, self.low_inclusive, self.high_inclusive, self.hit_limit)
        text = ""
        if term.low is not None and term == NumberTerm(term.low, term.low):  # as Vespa writes a number into the query
            text = str(term.low) if isinstance(term.low, int) else double_text(term.low)
        found = (_match(space, field, term, text) for field in fields_of(self.index, space))
        matches = [seen_match(match, space) for match in found if match is not None]
        length = len(_WORDS.findall(text)) if any(match.is_positional for match in matches) else 1
        return term_operator(space, matches, self.annotations, length)


def _match(space: SearchSpace, field: Field, term: NumberTerm, text: str) -> FieldMatch | None:
    """The match of the range in a field. In texts only a single number matches: those that write it.

    Vespa: CreateBlueprintVisitorHelper::handleNumberTermAsText for indexes, whose words are found as they are;
    attributes of strings read any term as text.
    """
    if space.has_index(field):
        words = [space.index.term_id(word.lower()) for word in _WORDS.findall(text)]
        parts = [IndexMatch(space, field.name, word if word >= 0 else NOWHERE) for word in words]
        return sequence([*parts], field, space)
    column = space.column(field)
    if column is None:
        return None
    return word_match(space, field, column, text) if column.is_string else range_match(space, field, column, term)


@condition("range", Argument.NAME, Argument.LITERAL)
def read_range(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`range(field, low, high)`; `bounds` says which of the two do not belong to it."""
    start = parser.tokens.current
    field = parser.field_or_quoted()
    parser.tokens.expect(",")
    low = _read_bound(parser)
    parser.tokens.expect(",")
    high = _read_bound(parser)
    said = scope.get("bounds", str)
    if said not in _BOUNDS:
        parser.tokens.fail(f"annotation 'bounds' must be open, leftOpen or rightOpen, not '{said}'", start)
    inclusive = _BOUNDS[said]
    if isinstance(low, str) or isinstance(high, str):
        if not (isinstance(low, str) or low == -inf) or not (isinstance(high, str) or high == inf):
            parser.tokens.fail("the bounds of a range are two numbers or two strings", start)
        ends = (low if isinstance(low, str) else None, high if isinstance(high, str) else None)
        return text_range(field, ends, inclusive, scope)
    return RangeItem(
        field,
        None if low == -inf else low,
        None if high == inf else high,
        *inclusive,
        scope.hit_limit(),
        annotations=scope.of_term(),
    )


def _read_bound(parser: ArgumentReader) -> int | float | str:
    tokens = parser.tokens
    if tokens.at_kind("string"):
        return parser.text("a bound")
    sign = -1 if tokens.accept("-") else 1
    if tokens.at("Infinity"):
        tokens.next()
        return sign * inf
    token = tokens.accept_kind(*NUMBERS)
    if token is None:
        tokens.fail(f"range takes a number, a string or Infinity, found {tokens.found()}")
    return sign * number_value(tokens, token)
