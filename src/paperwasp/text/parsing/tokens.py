"""Tokens with positions, a stream of them for recursive-descent parsers, and the nearest known word to one that is
not known.

A language describes its tokens once, as a `Lexicon` (an ordered table of kind → regular expression); a parser
walks a `TokenStream` with `peek`, `accept` and `expect`. Every error carries the place it happened at.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cached_property, lru_cache
from typing import Final, NamedTuple, NoReturn

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core.clock import check_time
from paperwasp.errors import LanguageError, Position, TooLarge

_BETWEEN_CLOCKS = 1024
"""Tokens, a power of two: who reads a text for somebody that waits ends when the time is over (`core.clock`)."""
END = "end"
"""The kind of the token after the last one. Its text is empty."""


class Token(NamedTuple):
    """One token. `start` is its offset in the text, in characters."""

    kind: str
    text: str
    start: int

    @property
    def end(self) -> int:
        return self.start + len(self.text)


class Lexicon:
    """The tokens of one language: kind → pattern, tried in order. Kinds that start with `_` are skipped."""

    def __init__(self, kinds: Mapping[str, str]) -> None:
        skipped = "|".join(pattern for kind, pattern in kinds.items() if kind.startswith("_"))
        tokens = "|".join(f"(?P<{kind}>{pattern})" for kind, pattern in kinds.items() if not kind.startswith("_"))
        # One match a token, with all that is skipped before it; one without a token ends the text, or should.
        self._pattern = compile_later(f"(?:{skipped})*(?:{tokens}|)" if skipped else f"(?:{tokens}|)", re.DOTALL)

    @cached_property
    def _kinds(self) -> Mapping[int, str]:
        return {index: kind for kind, index in self._pattern.groupindex.items()}

    def tokenize(self, text: str, source: str = "") -> TokenStream:
        """The tokens of `text`; raises LanguageError at the first character that starts none, OutOfTime."""
        if len(text) > limits.LANGUAGE_TEXT_BYTES:
            raise TooLarge(f"{source or 'text'} has {len(text)} characters; at most {limits.LANGUAGE_TEXT_BYTES}")
        tokens: list[Token] = []
        kinds = self._kinds
        new = tuple.__new__  # what Token(…) calls in the end; schemas have tens of thousands of tokens
        at = 0
        for match in self._pattern.finditer(text):
            index = match.lastindex
            if index is None:
                at = match.end()
                break
            tokens.append(new(Token, (kinds[index], match.group(index), match.start(index))))
            if not len(tokens) & _BETWEEN_CLOCKS - 1:
                check_time()
        if at < len(text):
            is_open = text[at] in "\"'" and "string" in kinds.values()
            problem = "a string begins here and has no end" if is_open else f"unexpected character {text[at]!r}"
            raise LanguageError(problem, position_of(text, at, source))
        return TokenStream(text, source, tokens)


def position_of(text: str, offset: int, source: str) -> Position:
    """Line and column, from 1, of a character offset."""
    line_start = text.rfind("\n", 0, offset) + 1
    return Position(source, text.count("\n", 0, offset) + 1, offset - line_start + 1)


class TokenStream:
    """A cursor over tokens, with the questions a recursive-descent parser asks."""

    def __init__(self, text: str, source: str, tokens: list[Token]) -> None:
        self.text = text
        self.source = source
        end = Token(END, "", len(text))
        self._tokens = [*tokens, end, end]  # the second is only for peeking
        self._at = 0
        self._depth = 0
        self.current = self._tokens[0]
        """The token that is read next; the end token past the last."""

    @cached_property
    def _line_starts(self) -> list[int]:
        return [0, *(match.end() for match in re.finditer("\n", self.text))] if "\n" in self.text else [0]

    def peek(self, ahead: int = 1) -> Token:
        """The token `ahead` places after the current one; the end token past the end."""
        at = self._at + ahead
        return self._tokens[at] if at < len(self._tokens) else self._tokens[-1]

    def at(self, *texts: str) -> bool:
        """Return whether the current token is one of these texts, none of which is empty."""
        return self.current.text in texts

    def at_kind(self, *kinds: str) -> bool:
        return self.current.kind in kinds

    def next(self) -> Token:
        """The current token, moving past it. Stays at the end. Raises OutOfTime."""
        token = self.current
        if token.kind != END:
            self._at += 1
            if not self._at & _BETWEEN_CLOCKS - 1:
                check_time()
            self.current = self._tokens[self._at]
        return token

    def take_block(self, end: int) -> list[Token]:
        """Moves past the tokens before offset `end`, or before the brace that closes a block around them."""
        start = self._at
        depth = 0
        for at in range(start, len(self._tokens)):
            kind, text, offset = self._tokens[at]
            if offset >= end or kind == END:
                break
            if text == "{":
                depth += 1
            elif text == "}":
                depth -= 1
                if depth < 0:
                    break
            self._at = at + 1
        self.current = self._tokens[self._at]
        return self._tokens[start : self._at]

    def skip_statement(self, first: Token) -> None:
        """Goes on after a mistake in the statement that began with `first`, which is not after the current token.

        Moves past the current token's line and every block opened since `first`, but stops before a brace that closes
        a block around them.
        """
        mistake = self._at
        line_end = self.text.find("\n", self.current.start)
        end = line_end if line_end >= 0 else len(self.text)
        at = bisect_left(self._tokens, first.start, key=lambda token: token.start)
        depth = 0
        while (token := self._tokens[at]).kind != END:
            if at > mistake and depth == 0 and token.start >= end:
                break
            if token.text == "}" and depth == 0:
                break
            depth += (token.text == "{") - (token.text == "}")
            at += 1
        self._at = at
        self.current = self._tokens[at]

    def accept(self, *texts: str) -> Token | None:
        """Moves past the current token if it is one of these texts."""
        return self.next() if self.at(*texts) else None

    def accept_kind(self, *kinds: str) -> Token | None:
        return self.next() if self.at_kind(*kinds) else None

    def expect(self, *texts: str) -> Token:
        if self.at(*texts):
            return self.next()
        self.fail(f"expected {' or '.join(repr(text) for text in texts)}, found {self.found()}")

    def expect_kind(self, *kinds: str) -> Token:
        if self.at_kind(*kinds):
            return self.next()
        self.fail(f"expected {' or '.join(kinds)}, found {self.found()}")

    def expect_end(self) -> None:
        if not self.at_kind(END):
            self.fail(f"expected the end, found {self.found()}")

    def found(self) -> str:
        """How an error names the current token."""
        return "the end" if self.current.kind == END else repr(self.current.text)

    def position(self, token: Token | None = None) -> Position:
        start = (token or self.current).start
        if len(self._line_starts) == 1:
            return Position(self.source, 1, start + 1)
        line = bisect_right(self._line_starts, start)
        return Position(self.source, line, start - self._line_starts[line - 1] + 1)

    def fail(self, message: str, token: Token | None = None) -> NoReturn:
        """Raises LanguageError at `token`, or at the current one."""
        raise LanguageError(message, self.position(token))

    @contextmanager
    def nested(self) -> Iterator[None]:
        """Counts one level of nesting, so that no input can exhaust the stack."""
        self.enter()
        try:
            yield
        finally:
            self.leave()

    def enter(self) -> None:
        """One level deeper. With `leave`, what `nested` does, where that would cost too much."""
        self._depth += 1
        if self._depth > limits.EXPRESSION_DEPTH:
            self.fail(f"nested deeper than {limits.EXPRESSION_DEPTH} levels")

    def leave(self) -> None:
        self._depth -= 1


# The nearest known word to one that is not known: the end of an error message.


_LONGEST_WORD: Final = 100
"""The longest word that is compared: a longer one was hardly mistyped, and comparing takes time by the length."""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`; did you mean 'that'?`, or nothing where no known word is near, or too many are known to be looked through."""
    words = frozenset(known)
    if word in words or len(word) > _LONGEST_WORD or len(words) > limits.NEAREST_WORDS:
        return ""  # a word that is known is wrong for another reason
    return _did_you_mean(word, words)


def did_you_mean_sentence(word: str, known: Iterable[str]) -> str:
    """The same as a sentence of its own, behind a message in Vespa's words: ` Did you mean 'that'?`."""
    hint = did_you_mean(word, known)
    return f" D{hint[3:]}" if hint else ""


@lru_cache(maxsize=1000)
def _did_you_mean(word: str, known: frozenset[str]) -> str:
    """The same unknown word is often in many places of one file."""
    found = get_close_matches(word, sorted(known), 1)
    return f"; did you mean {found[0]!r}?" if found else ""
