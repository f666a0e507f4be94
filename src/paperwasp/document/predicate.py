"""Predicates: boolean expressions that a document states, and that a query's features fulfil or not.

    gender in [male, 'not said'] and age in [20..30]      not (a in [b] or c not in [d])      price in [..100]

`str()` gives the one text of a predicate that is kept and shown, whatever was sent.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html
Differs: a text in quotes may end in a backslash, and an empty one keeps its quotes.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
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


@dataclass(frozen=True, slots=True)
class Truth:
    """Always fulfilled, or never."""

    value: bool

    def __str__(self) -> str:
        return "true" if self.value else "false"


@dataclass(frozen=True, slots=True)
class FeatureSet:
    """The query has one of these values of a feature. `values`: sorted, each once."""

    key: str
    values: tuple[str, ...]

    def __str__(self) -> str:
        return self.format("in")

    def format(self, operator: str) -> str:
        return f"{_quote(self.key)} {operator} [{', '.join(map(_quote, self.values))}]"


@dataclass(frozen=True, slots=True)
class FeatureRange:
    """The query has a number from `low` to `high`, both included, of a feature; None: without end."""

    key: str
    low: int | None
    high: int | None

    def __str__(self) -> str:
        ends = ["" if end is None else str(end) for end in (self.low, self.high)]
        return f"{_quote(self.key)} in [{'..'.join(ends)}]"


@dataclass(frozen=True, slots=True)
class Negation:
    """A predicate that is fulfilled where its operand is not."""

    operand: Predicate

    def __str__(self) -> str:
        return self.operand.format("not in") if isinstance(self.operand, FeatureSet) else f"not ({self.operand})"


@dataclass(frozen=True, slots=True)
class Conjunction:
    """All of them are fulfilled."""

    operands: tuple[Predicate, ...]

    def __str__(self) -> str:
        return " and ".join(_within(operand, Disjunction) for operand in self.operands)


@dataclass(frozen=True, slots=True)
class Disjunction:
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
    if tokens.at("true", "TRUE", "false", "FALSE") and not _in_follows(tokens):
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


def _in_follows(tokens: TokenStream) -> bool:
    """Whether the current token is the name of a feature: any word may be one."""
    if tokens.peek().text in ("not", "NOT"):
        return tokens.peek(2).text in ("in", "IN")
    return tokens.peek().text in ("in", "IN")


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
