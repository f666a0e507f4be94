"""A cursor over the tokens of a statement, and what the whole grammar is made of: names, strings, numbers.

Where the grammar has a string or a number, `@name` may stand for the value of a request parameter.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NamedTuple, NoReturn

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.errors import LanguageError, Position

# The tokens of the grouping language. White space is a token: it may stand only where the grammar lets it.
#
# Vespa: GroupingParser.jj


END: Final = "end"
_KINDS: Final = {
    "space": r"[ \n\r\t]",
    "comment": r"(?://|#)[^\n\r]*|/\*(?:[^*]|\*(?!/))*\*/",
    "float": r"[0-9]+(?:\.[0-9]*(?:[eE][+-]?[0-9]+)?[fFdD]?|[eE][+-]?[0-9]+[fFdD]?|[fFdD])|0[0-9]*[89][0-9]*",
    "integer": r"0[xX][0-9a-fA-F]+[lL]?|[0-9]+[lL]?",
    "identifier": r"[A-Za-z][A-Za-z0-9_@]*",
    "parameter": r"@[A-Za-z_][A-Za-z0-9_-]*",
    "string": r'"(?:\\.|[^"\\])*"|' r"'(?:\\.|[^'\\])*'",
    "symbol": r"-inf|[-;,$.=+/%*(){}<>\[\]]",
}
_TOKEN: Final = compile_later("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in _KINDS.items()), re.DOTALL)
_ESCAPE: Final = compile_later(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"f": "\f", "n": "\n", "r": "\r", "t": "\t"}
_SHOWN: Final = {"\n": "\\n", "\r": "\\r", "\t": "\\t", "\f": "\\f", "\b": "\\b", '"': '\\"', "'": "\\'", "\\": "\\\\"}
_BETWEEN_CLOCKS: Final = 1024
_WORDS: Final = """
    acos acosh accuracy add alias all and argmax argmin array as at asin asinh atan atanh attribute avg bucket cat
    cbrt cos cosh count debugwait div docidnsspecific each exp filter first fixedwidth floor geo_distance group hint
    hypot in istrue keep km log log1p log10 math max md5 miles min mod mul neg not normalizesubject now or order output
    pow precision predefined quantiles range regex relevance reverse sin sinh size sort interpolatedlookup sqrt stddev
    strcat strlen sub sum summary tan tanh time date dayofmonth dayofweek dayofyear hourofday minuteofhour monthofyear
    secondofminute year todouble tolong toraw tostring true false uca where x xor xorbit y zcurve inf
"""
_KEYWORDS: Final = frozenset(_WORDS.split())
"""The words that are tokens of their own, as errors name them."""


class Token(NamedTuple):
    """One token. `start` is its offset in the text, in characters."""

    kind: str
    text: str
    start: int


def tokenize(text: str) -> list[Token]:
    """The tokens, without comments, and one of the kind END. Errors: LanguageError, OutOfTime."""
    if len(text) > limits.grouping.STATEMENT_CHARACTERS:
        limit = limits.grouping.STATEMENT_CHARACTERS
        raise LanguageError(f"The grouping has {len(text)} characters; at most {limit}")
    tokens: list[Token] = []
    at = 0
    for match in _TOKEN.finditer(text):
        if match.start() != at:
            break
        at = match.end()
        kind = match.lastgroup or ""
        if kind != "comment":
            tokens.append(Token(kind, match.group(), match.start()))
        if not len(tokens) & _BETWEEN_CLOCKS - 1:
            check_time()
    if at < len(text):
        place = _Place.of(text, at)
        shown = _escaped(text[at])
        problem = f'Lexical error at {place.position}.  Encountered: "{shown}" ({ord(text[at])}), after : ""'
        raise LanguageError(problem + place.marker)
    tokens.append(Token(END, "", len(text)))
    return tokens


class _Place(Struct, frozen=True):
    position: Position
    line: str

    @classmethod
    def of(cls, text: str, offset: int) -> _Place:
        start = text.rfind("\n", 0, offset) + 1
        line = text[start:].partition("\n")[0]
        return cls(Position("", text.count("\n", 0, offset) + 1, offset - start + 1), line if line else "EOF")

    @property
    def marker(self) -> str:
        """The line of an error, and a mark below the place."""
        return f"\nAt position:\n{self.line}\n{' ' * (self.position.column - 1)}^"


def fail_at(text: str, token: Token, expected: tuple[str, ...]) -> NoReturn:
    """Errors: LanguageError for a token that may not stand there, in Vespa's words."""
    place = _Place.of(text, token.start)
    found = f'Encountered "{_named(token)}" at {place.position}.'
    wanted = "".join(f"\n    {each} ..." for each in expected)
    several = " one of" if len(expected) > 1 else ""
    raise LanguageError(f"{found}\n\nWas expecting{several}:{wanted}\n    {place.marker}")


def _named(token: Token) -> str:
    if token.kind == END:
        return "<EOF>"
    is_word = token.kind == "symbol" or (token.kind == "identifier" and token.text in _KEYWORDS)
    kind = f'"{token.text}"' if is_word else f"<{token.kind.upper()}>"
    return f' {kind} "{_escaped(token.text)}"'


def _escaped(text: str) -> str:
    """A token as errors show it."""
    return "".join(_SHOWN.get(each, each if " " <= each <= "~" else f"\\u{ord(each):04x}") for each in text)


def unquoted(token: Token) -> str:
    """The text between the quotes, with its escapes undone."""

    def unescape(match: re.Match[str]) -> str:
        escape = match.group(1)
        return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED.get(escape, escape)

    text = _ESCAPE.sub(unescape, token.text[1:-1])
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in token.text else text


Number = int | float
Parameters = Callable[[str], str | None]
"""The value of a request parameter; None: there is none of that name."""

_LONGS: Final = range(-(2**63), 2**63)
_LEAST_LONG: Final = str(2**63)
_INTEGER: Final = compile_later(r"[+-]?[0-9]{1,30}")
_DECIMAL: Final = compile_later(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_CLOCK: Final = 256


class TokenReader:
    """Reads tokens. Errors: LanguageError, in Vespa's words; OutOfTime."""

    def __init__(self, text: str, parameters: Parameters | None = None) -> None:
        self._text = text
        self._tokens = tokenize(text)
        self._at = 0
        self._parameters = parameters
        self._depth = 0
        self.size = 0
        """How many functions and values the expressions have so far."""
        self.current = self._tokens[0]

    def next(self) -> Token:
        """The current token, and past it."""
        token = self.current
        if token.kind != END:
            self._at += 1
            if not self._at % _CLOCK:
                check_time()
            self.current = self._tokens[self._at]
        return token

    def peek(self, ahead: int = 1) -> Token:
        return self._tokens[min(self._at + ahead, len(self._tokens) - 1)]

    def skip_space(self) -> None:
        while self.current.kind == "space":
            self.next()

    def fail(self, *expected: str) -> NoReturn:
        """Refuses the current token."""
        fail_at(self._text, self.current, expected)

    def at_symbol(self, *texts: str) -> bool:
        return self.current.kind == "symbol" and self.current.text in texts

    def at_word(self, *words: str) -> bool:
        return self.current.kind == "identifier" and self.current.text in words

    def at_call(self, word: str) -> bool:
        """Whether the word is followed by its argument: else it is a name."""
        following = self.peek()
        return self.at_word(word) and following.kind == "symbol" and following.text == "("

    def accept(self, symbol: str) -> bool:
        """Moves past a symbol, and the space behind it, if it is there."""
        if not self.at_symbol(symbol):
            return False
        self.next()
        self.skip_space()
        return True

    def expect(self, *symbols: str) -> str:
        """Moves past one of these symbols, and the space behind it."""
        if not self.at_symbol(*symbols):
            self.fail(*(f'"{symbol}"' for symbol in symbols))
        text = self.next().text
        self.skip_space()
        return text

    def expect_end(self) -> None:
        if self.current.kind != END:
            self.fail("<EOF>", '";"')

    def identifier(self) -> str:
        """Any word but `inf`."""
        if self.current.kind != "identifier" or self.current.text == "inf":
            self.fail("<IDENTIFIER>")
        text = self.next().text
        self.skip_space()
        return text

    def string(self) -> str:
        """A string, with quotes or, where it is an identifier, without."""
        if self.current.kind == "parameter":
            return self.parameter()[1]
        if self.current.kind != "string":
            return self.identifier()
        text = unquoted(self.next())
        self.skip_space()
        return text

    def parameter(self) -> tuple[str, str]:
        """The name and the value of a parameter."""
        token = self.next()
        self.skip_space()
        if self._parameters is None:
            raise LanguageError(f"Parameter '{token.text}' cannot be resolved as no query properties are available")
        name = token.text[1:]
        value = self._parameters(name)
        if value is None:
            raise LanguageError(f"Input '{name}' is not set")
        return name, value

    def at_number(self) -> bool:
        return self.current.kind in ("integer", "float")

    def number(self, is_signed: bool = False) -> Number:
        """A number; with a sign right before it where that may be."""
        if self.current.kind == "parameter":
            return _given_number(*self.parameter())
        sign = "-" if is_signed and self.at_symbol("-") else ""
        if sign:
            self.next()
        return self.literal(sign)

    def literal(self, sign: str = "") -> Number:
        """A number that is written."""
        if not self.at_number():
            self.fail("<INTEGER>", "<FLOAT>")
        text = sign + self.next().text
        self.skip_space()
        if "." in text:
            value = float(text.rstrip("fFdD"))
            return value if math.isfinite(value) else math.copysign(math.inf, value)
        if _INTEGER.fullmatch(text) and int(text) in _LONGS:
            return int(text)
        raise LanguageError(f'For input string: "{text}"')

    def truth(self) -> bool:
        if not self.at_word("true", "false"):
            self.fail('"true"', '"false"')
        return self.identifier() == "true"

    @contextmanager
    def within(self) -> Iterator[None]:
        """One level deeper in an expression."""
        self._depth += 1
        if self._depth > limits.grouping.EXPRESSION_DEPTH:
            raise LanguageError(f"Nested deeper than {limits.grouping.EXPRESSION_DEPTH} levels")
        yield
        self._depth -= 1

    def count(self, nodes: int = 1) -> None:
        """Counts functions and values that were made. Errors: LanguageError for too many."""
        self.size += nodes
        if self.size > limits.grouping.EXPRESSION_NODES:
            raise LanguageError(f"More than {limits.grouping.EXPRESSION_NODES} functions and values")


def _given_number(name: str, text: str) -> Number:
    text = text.strip()
    if _INTEGER.fullmatch(text) and int(text) in _LONGS:
        return int(text)
    if len(text) <= 400 and _DECIMAL.fullmatch(text) and math.isfinite(value := float(text.rstrip("fFdD"))):
        return value
    raise LanguageError(f"Input '{name}' must be a number, but was '{text}'")
