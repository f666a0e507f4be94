"""A cursor over the tokens of a statement, and what the whole grammar is made of: names, strings, numbers.

Where the grammar has a string or a number, `@name` may stand for the value of a request parameter.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final, NoReturn

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.errors import LanguageError
from paperwasp.search.grouping.language.lexicon import END, Token, fail_at, tokenize, unquoted

Number = int | float
Parameters = Callable[[str], str | None]
"""The value of a request parameter; None: there is none of that name."""

_LONGS: Final = range(-(2**63), 2**63)
_LEAST_LONG: Final = str(2**63)
_INTEGER: Final = compile_later(r"[+-]?[0-9]{1,30}")
_DECIMAL: Final = compile_later(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_CLOCK: Final = 256


class Reader:
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
