"""Predicates: boolean expressions that a document states, and that a query's features fulfil or not.

    gender in [male, 'not said'] and age in [20..30]      not (a in [b] or c not in [d])      price in [..100]

`str()` gives the one text of a predicate that is kept and shown, whatever was sent.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html
Differs: a text in quotes may end in a backslash, and an empty one keeps its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import LanguageError
from paperwasp.text.parsing.tokens import END, Lexicon, Token, TokenStream

_KINDS: Final = {
    "_space": r"[ \t]+",
    "string": r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"",
    "integer": r"[-+]?(?:0|[1-9][0-9]*)(?![A-Za-z0-9_])",
    "word": r"[A-Za-z0-9_]+",
    "sign": r"\.\.|=-|=|\+\[|[\[\](),]",
}
_LEXICON: Final = Lexicon(_KINDS)
_IN: Final = r"[A-Za-z0-9_]+[ \t]+(?:(?:not|NOT)[ \t]+)?(?:in|IN)[ \t]*"
_PLAIN_VALUE: Final = r"[ \t]*(?:[A-Za-z0-9_]+|'[A-Za-z0-9_ .:/-]*')[ \t]*"
_PLAIN_END: Final = r"[ \t]*(?:[-+]?(?:0|[1-9][0-9]{0,17}))?[ \t]*"
_QUICK_LEXICON: Final = Lexicon(
    {
        "set": rf"{_IN}\[{_PLAIN_VALUE}(?:,{_PLAIN_VALUE})*\]",
        "range": rf"{_IN}\[{_PLAIN_END}\.\.{_PLAIN_END}\]",
        **_KINDS,
    }
)
"""Most conditions are plain: each is one token here. Where one is none (`a not in in [b]`), the parser fails."""
_VALUES: Final = ("string", "integer", "word")
_LONG: Final = range(-(2**63), 2**63)
_LONG_DIGITS: Final = 20
_ESCAPE: Final = compile_later(rb"\\(x[0-9A-Fa-f]{2}|.)", re.DOTALL)
_UNESCAPED: Final = {b"f": b"\f", b"n": b"\n", b"r": b"\r", b"t": b"\t"}
_ESCAPED: Final = {"\\": "\\\\", "\f": "\\f", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Truth(Struct, frozen=True):
    """Always fulfilled, or never."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


class FeatureSet(Struct, frozen=True):
    """The query has one of these values of a feature. `values`: sorted, each once."""

    key: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return self.format("in")

    def format(self, operator: str) -> str:
        return f"{_quote(self.key)} {operator} [{', '.join(map(_quote, self.values))}]"


class FeatureRange(Struct, frozen=True):
    """The query has a number from `low` to `high`, both included, of a feature; None: without end."""

    key: str
    low: int | None
    high: int | None

    def __str__(self) -> str:
        ends = ["" if end is None else str(end) for end in (self.low, self.high)]
        return f"{_quote(self.key)} in [{'..'.join(ends)}]"


class Negation(Struct, frozen=True):
    """A predicate that is fulfilled where its operand is not."""

    operand: Predicate

    def __str__(self) -> str:
        return self.operand.format("not in") if isinstance(self.operand, FeatureSet) else f"not ({self.operand})"


class Conjunction(Struct, frozen=True):
    """All of them are fulfilled."""

    operands: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(_within(operand, Disjunction) for operand in self.operands)


class Disjunction(Struct, frozen=True):
    """One of them is fulfilled."""

    operands: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " or ".join(_within(operand, Conjunction) for operand in self.operands)


Predicate = Truth | FeatureSet | FeatureRange | Negation | Conjunction | Disjunction


def text_of(predicate: Predicate, parts_of: Callable[[FeatureRange], str]) -> str:
    """The text of a predicate with what `parts_of` says of each range."""
    match predicate:
        case FeatureRange():
            parts = parts_of(predicate)
            return f"{str(predicate)[:-1]} ({parts})]" if parts else str(predicate)
        case Negation():
            if not isinstance(predicate.operand, FeatureSet):
                return f"not ({text_of(predicate.operand, parts_of)})"
        case Conjunction() | Disjunction():
            other = Disjunction if isinstance(predicate, Conjunction) else Conjunction
            joint = " and " if isinstance(predicate, Conjunction) else " or "
            texts = ((operand, text_of(operand, parts_of)) for operand in predicate.operands)
            return joint.join(f"({text})" if isinstance(operand, other) else text for operand, text in texts)
    return str(predicate)


def printed(predicate: Predicate, is_negated: bool = False) -> str:
    """The text of a predicate as Vespa's content nodes print it: PredicatePrinter in C++."""
    match predicate:
        case FeatureSet():
            values = ",".join(map(_in_quotes, predicate.values))
            return f"{_in_quotes(predicate.key)}{' not' * is_negated} in [{values}]"
        case FeatureRange():
            ends = "..".join("" if end is None else str(end) for end in (predicate.low, predicate.high))
            return f"{_in_quotes(predicate.key)}{' not' * is_negated} in [{ends}]"
        case Negation():
            return printed(predicate.operand, not is_negated)
        case Conjunction() | Disjunction():
            joint = " and " if isinstance(predicate, Conjunction) else " or "
            return f"{'not ' * is_negated}({joint.join(map(printed, predicate.operands))})"
    return str(predicate)


def parse_predicate(text: str) -> Predicate:
    """The predicate that `text` writes. Errors: LanguageError with line and column."""
    if len(text) > limits.PREDICATE_CHARACTERS:
        raise LanguageError(f"a predicate has at most {limits.PREDICATE_CHARACTERS} characters, not {len(text)}")
    try:
        return _parse(_QUICK_LEXICON.tokenize(text))
    except LanguageError:
        return _parse(_LEXICON.tokenize(text))  # says what is wrong, and where


def _parse(tokens: TokenStream) -> Predicate:
    predicate = _disjunction(tokens, 0)
    tokens.expect_end()
    return predicate


def _disjunction(tokens: TokenStream, depth: int) -> Predicate:
    return _read_operands(tokens, depth, _conjunction, ("or", "OR"), Disjunction)


def _conjunction(tokens: TokenStream, depth: int) -> Predicate:
    return _read_operands(tokens, depth, _operand, ("and", "AND"), Conjunction)


def _read_operands(
    tokens: TokenStream,
    depth: int,
    read: Callable[[TokenStream, int], Predicate],
    words: tuple[str, str],
    join: type[Conjunction | Disjunction],
) -> Predicate:
    operands = [read(tokens, depth)]
    while tokens.accept(*words):
        operands.append(read(tokens, depth))
    return operands[0] if len(operands) == 1 else join(tuple(operands))


def _operand(tokens: TokenStream, depth: int) -> Predicate:
    if (condition := tokens.accept_kind("set", "range")) is not None:
        return _plain(tokens, condition)
    if tokens.at("(") or (tokens.at("not", "NOT") and tokens.peek().text == "("):
        negated = tokens.accept("not", "NOT")
        tokens.expect("(")
        if depth == limits.PREDICATE_DEPTH:
            tokens.fail(f"nested deeper than {limits.PREDICATE_DEPTH} levels")
        inner = _disjunction(tokens, depth + 1)
        tokens.expect(")")
        return Negation(inner) if negated else inner
    if tokens.at("true", "TRUE", "false", "FALSE"):
        is_negated = tokens.peek().text in ("not", "NOT")
        if tokens.peek(2 if is_negated else 1).text not in ("in", "IN"):  # before which any word is a feature's name
            return Truth(tokens.next().text.lower() == "true")
    return _feature(tokens)


def _plain(tokens: TokenStream, condition: Token) -> Predicate:
    """A set or a range that is one token."""
    head, _, inside = condition.text.partition("[")
    key, *words = head.split()
    found: FeatureSet | FeatureRange
    if condition.kind == "set":
        values = {value.strip(" \t").strip("'") for value in inside[:-1].split(",")}
        found = FeatureSet(key, tuple(sorted(values)))
    else:
        low, high = (int(end) if end else None for end in inside[:-1].replace("\t", " ").replace(" ", "").split(".."))
        if low is not None and high is not None and low > high:
            tokens.fail("a range that falls", condition)
        found = FeatureRange(key, low, high)
    return Negation(found) if len(words) > 1 else found


def _feature(tokens: TokenStream) -> Predicate:
    key = _value(tokens)
    negated = tokens.accept("not", "NOT")
    tokens.expect("in", "IN")
    start = tokens.expect("[")
    is_range = tokens.at("..") or (tokens.at_kind("integer") and tokens.peek().text == "..")
    found = _range(tokens, key, start) if is_range else _set(tokens, key)
    return Negation(found) if negated else found


def _set(tokens: TokenStream, key: str) -> FeatureSet:
    values = {_value(tokens)}
    while tokens.accept(","):
        values.add(_value(tokens))
    tokens.expect("]")
    return FeatureSet(key, tuple(sorted(values, key=lambda value: value.encode("utf-16-be", "surrogatepass"))))


def _range(tokens: TokenStream, key: str, start: Token) -> FeatureRange:
    low = _end(tokens)
    tokens.expect("..")
    high = _end(tokens)
    if low is not None and high is not None and low > high:
        tokens.fail(f"expected 'to' greater than or equal to {low}, got {high}", start)
    if tokens.accept("("):
        _partition(tokens)
        while tokens.accept(","):
            _partition(tokens)
        tokens.expect(")")
    tokens.expect("]")
    return FeatureRange(key, low, high)


def _partition(tokens: TokenStream) -> None:
    """Read a part of a range as an index keeps it, and forget it: the range has the same meaning without it. Where the
    name of the feature needs quotes, they are around the numbers, too."""
    is_quoted = tokens.at_kind("string") and "=" in tokens.current.text
    _value(tokens)
    if is_quoted and not tokens.at("=", "=-"):
        if not tokens.accept("+["):
            return
    else:
        tokens.expect("=", "=-")
        tokens.expect_kind("integer")
        if tokens.accept_kind("integer"):
            return
        tokens.expect("+[")
    _end(tokens)
    tokens.expect("..")
    _end(tokens)
    tokens.expect("]")


def _end(tokens: TokenStream) -> int | None:
    token = tokens.accept_kind("integer")
    if token is None:
        return None
    if len(token.text) > _LONG_DIGITS or int(token.text) not in _LONG:
        tokens.fail(f"{token.text} is no 64-bit integer", token)
    return int(token.text)


def _value(tokens: TokenStream) -> str:
    if not tokens.at_kind(*_VALUES):
        expected = "a value" if tokens.current.kind != END else "more"
        tokens.fail(f"expected {expected}, found {tokens.found()}")
    token = tokens.next()
    return _unquote(token.text) if token.kind == "string" else token.text


def _unquote(text: str) -> str:
    """The text in quotes; escapes of two digits are bytes of UTF-8."""

    def unescape(escape: re.Match[bytes]) -> bytes:
        code = escape[1]
        return bytes.fromhex(code[1:].decode()) if len(code) > 1 else _UNESCAPED.get(code, code)

    return _ESCAPE.sub(unescape, text[1:-1].encode("utf-8", "surrogatepass")).decode("utf-8", "replace")


def _quote(text: str) -> str:
    """As it is where it is of letters and digits alone, else in quotes, and in ASCII."""
    return text if text.isascii() and text.isalnum() else _in_quotes(text)


def quote_label(key: str, rest: str) -> str:
    """The label of a part of a range: its numbers within the quotes, where the name has some."""
    quoted = _quote(key)
    return f"{quoted[:-1]}{rest}'" if quoted.endswith("'") else quoted + rest


def _in_quotes(text: str) -> str:
    return f"'{''.join(map(_escape, text))}'"


def _escape(character: str) -> str:
    if character in _ESCAPED:
        return _ESCAPED[character]
    if " " <= character <= "~" and character != "'":
        return character
    return "".join(f"\\x{byte:02X}" for byte in character.encode("utf-8", "replace"))


def _within(operand: Predicate, other: type[Predicate]) -> str:
    return f"({operand})" if isinstance(operand, other) else str(operand)


# Predicates as document/v1 shows them: simplified as they are indexed, each range with the parts that an index of its
# arity and bounds keeps.
#
#     not (a in [b] and true) or c not in [d]                 a not in [b] or c not in [d]
#     age in [23..40], of arity 10                            age in [23..40 (age=20+[3..],age=40+[..0],age=30-39)]
#
# Vespa stores them so; here they are stored as they were sent, and read so.
#
# Vespa: OptimizePredicateExpression.java, BooleanSimplifier.java, AndOrSimplifier.java, NotNodeReorderer.java,
# ComplexNodeTransformer.java, PredicateOptions.java; FeatureRange.java and RangePartition.java for the texts
# Differs: AndOrSimplifier makes `not (a and (b or c))` to `not a or not b or not c`, which is another predicate.


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
