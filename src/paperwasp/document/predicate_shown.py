"""Predicates as document/v1 shows them: simplified as they are indexed, each range with the parts that an index of its
arity and bounds keeps.

    not (a in [b] and true) or c not in [d]                 a not in [b] or c not in [d]
    age in [23..40], of arity 10                            age in [23..40 (age=20+[3..],age=40+[..0],age=30-39)]

Vespa stores them so; here they are stored as they were sent, and read so.

Vespa: OptimizePredicateExpression.java, BooleanSimplifier.java, AndOrSimplifier.java, NotNodeReorderer.java,
ComplexNodeTransformer.java, PredicateOptions.java; FeatureRange.java and RangePartition.java for the texts
Differs: AndOrSimplifier makes `not (a and (b or c))` to `not a or not b or not c`, which is another predicate.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final, NamedTuple

from paperwasp.document.predicate import (
    Conjunction,
    Disjunction,
    FeatureRange,
    Negation,
    Predicate,
    Truth,
    parse_predicate,
    quote_label,
    text_of,
)
from paperwasp.errors import LanguageError

_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


class PredicateIndex(NamedTuple):
    """How ranges are cut for the index of a field."""

    arity: int
    low: int | None = None
    high: int | None = None


def shown_predicate(text: str, index: PredicateIndex) -> str:
    """The text of a predicate as document/v1 shows it; what is none stays as it is."""
    try:
        predicate = parse_predicate(text)
    except LanguageError:  # stored when the field had another type
        return text
    return text_of(simplified(predicate), lambda found: _parts_of(found, index))


def simplified(predicate: Predicate) -> Predicate:
    """The same predicate without constants in it, with negations at its leaves alone, no `and` in an `and`, no `or` in
    an `or`, and negations first in an `and`, last in an `or`."""
    found, _ = _reordered(_flat(_without_constants(predicate), negated=False))
    return found


def _without_constants(predicate: Predicate) -> Predicate:
    match predicate:
        case Negation():
            operand = _without_constants(predicate.operand)
            return Truth(not operand.value) if isinstance(operand, Truth) else Negation(operand)
        case Conjunction() | Disjunction():
            neutral = Truth(isinstance(predicate, Conjunction))
            operands = [_without_constants(operand) for operand in predicate.operands]
            if Truth(not neutral.value) in operands:
                return Truth(not neutral.value)
            left = tuple(operand for operand in operands if operand != neutral)
            return neutral if not left else left[0] if len(left) == 1 else type(predicate)(left)
    return predicate


def _flat(predicate: Predicate, *, negated: bool) -> Predicate:
    match predicate:
        case Negation():
            return _flat(predicate.operand, negated=not negated)
        case Conjunction() | Disjunction():
            join = Conjunction if isinstance(predicate, Conjunction) != negated else Disjunction
            operands: list[Predicate] = []
            for operand in predicate.operands:
                found = _flat(operand, negated=negated)
                operands += found.operands if isinstance(found, join) else (found,)
            return join(tuple(operands))
    return Negation(predicate) if negated else predicate


def _reordered(predicate: Predicate) -> tuple[Predicate, bool]:
    """The predicate with its operands in order, and whether it ends in a negation."""
    if isinstance(predicate, Negation):
        return predicate, True
    if not isinstance(predicate, Conjunction | Disjunction):
        return predicate, False
    found = [_reordered(operand) for operand in predicate.operands]
    negative = tuple(operand for operand, is_negative in found if is_negative)
    positive = tuple(operand for operand, is_negative in found if not is_negative)
    if isinstance(predicate, Conjunction):
        return Conjunction(negative + positive), not positive
    return Disjunction(positive + negative), bool(negative)


def _parts_of(found: FeatureRange, index: PredicateIndex) -> str:
    """The parts of a range as its text has them: those at its ends, then the whole ones."""
    edges: list[str] = []
    whole: list[str] = []
    low, high = _pruned(found, index)
    halves = [(low, high, False)]
    if low < 0:  # magnitudes; from -1 up it begins at 0, which is the same
        halves = [(0 if high >= -1 else _wrapped(-high), _wrapped(-low), True)]
        halves += [(0, high, False)] if high >= 0 else []
    for first, last, is_negative in halves:
        _Cutting(found.key, index.arity, is_negative, edges, whole).cut(first, last)
    return ",".join(edges + whole)


class _Cutting(NamedTuple):
    """The parts of a range that has one sign."""

    key: str
    arity: int
    is_negative: bool
    edges: list[str]
    whole: list[str]

    def cut(self, low: int, high: int) -> None:
        arity = self.arity
        below = abs(_remainder(low, arity))
        above = _remainder(_remainder(_wrapped(high - arity + 1), arity) + arity, arity)
        first, last = _wrapped(low - below), _wrapped(high - above)
        number = abs(_quotient(first, arity))
        if _wrapped(first - 1) == last:
            self._add_edge(first, below, above - 1)
            return
        if below:
            self._add_edge(first, below, -1)
            number += 1
        if above:
            self._add_edge(_wrapped(last + 1), -1, above - 1)
        for part, size, begin, end in self._levels(number, abs(_quotient(_wrapped(last - arity + 1), arity)) + 1):
            for at in range(part + begin, part + end):
                self._add_whole(_wrapped(at * size), _wrapped((at + 1) * size - 1))

    def _levels(self, low: int, high: int) -> Iterator[tuple[int, int, int, int]]:
        """(first number, size, from, to) of whole parts, the smallest first."""
        arity, size = self.arity, self.arity
        while True:
            begin, end = low - low % arity, high - high % arity
            if begin == end:
                yield begin, size, low % arity, high % arity
                return
            if low % arity:
                yield begin, size, low % arity, arity
                low = begin + arity
            yield end, size, 0, high % arity
            low, high, size = low // arity, high // arity, size * arity

    def _add_edge(self, value: int, low: int, high: int) -> None:
        sign = "-" if self.is_negative and value != _LEAST else ""
        label = quote_label(self.key, f"={sign}{value}")
        self.edges.append(f"{label}+[{low if low > 0 else ''}..{high if high >= 0 else ''}]")

    def _add_whole(self, low: int, high: int) -> None:
        hyphen = "" if high == _LEAST else "-"  # that number has one of its own
        ends = f"{hyphen}{high}-{low}" if self.is_negative else f"{low}{hyphen}{high}"
        self.whole.append(quote_label(self.key, f"={ends}"))


def _pruned(found: FeatureRange, index: PredicateIndex) -> tuple[int, int]:
    """The ends of a range within the bounds of the index; where it is beyond them, those of a part that no number
    is in."""
    arity = index.arity
    least, most = index.low is None, index.high is None
    lower, upper = (_LEAST if index.low is None else index.low), (_MOST if index.high is None else index.high)
    adjusted_low = _LEAST if least or lower == _LEAST else 0 if lower > 0 else -_adjusted(arity, -lower)
    adjusted_high = _MOST if most or upper == _MOST else -1 if upper < 0 else _adjusted(arity, upper)
    low = adjusted_low if found.low is None else found.low
    high = adjusted_high if found.high is None else found.high
    if low > upper:
        start = _MOST - _MOST % arity - arity
        return (start, start + arity - 1) if upper < start else (low, low)
    if high < lower:
        end = _LEAST + arity - _remainder(_LEAST, arity)
        return (end - arity + 1, end) if lower > end else (high, high)
    return (adjusted_low if low < lower else low), (adjusted_high if high > upper else high)


def _adjusted(arity: int, bound: int) -> int:
    """The last number below a power of the arity that a bound is not above."""
    adjusted, value = arity, bound // arity
    while value > 0:
        if adjusted > _MOST // arity:
            return bound
        adjusted, value = adjusted * arity, value // arity
    return adjusted - 1


def _wrapped(number: int) -> int:
    return (number - _LEAST) % 2**64 + _LEAST


def _remainder(number: int, divisor: int) -> int:
    """With the sign of the number."""
    return number % divisor if number >= 0 else -(-number % divisor)


def _quotient(number: int, divisor: int) -> int:
    """Cut at 0."""
    return number // divisor if number >= 0 else -(-number // divisor)
