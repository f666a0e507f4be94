"""Cutting the text of other languages out of a schema: expressions, indexing scripts, tensors.

It is done by looking at tokens only, so a brace or a `#` inside a quoted string never ends a text. What the text means
is for the packages of those languages; comments in it are replaced by spaces, so that positions in it stay true.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.text.parsing import Token, TokenStream
from paperwasp.text.parsing.tokens import END

OPENING: Final[Mapping[str, str]] = {"{": "}", "(": ")", "[": "]"}
"""Opening bracket → the one that closes it."""

_COMMENT_OR_STRING: Final = compile_later(r"\"[^\"\n]*\"|'[^'\n]*'|#[^\n]*")


def line_end(tokens: TokenStream, token: Token) -> int:
    """The offset of the end of the line that `token` is on."""
    end = tokens.text.find("\n", token.start)
    return len(tokens.text) if end < 0 else end


def line_text(tokens: TokenStream, colon: Token, *, script: bool = False, may_be_empty: bool = False) -> str:
    """The free text after `colon`: its line, and for scripts the lines that go on from there."""
    taken = tokens.take_block(line_end(tokens, colon))
    if not taken:
        if may_be_empty:
            return ""
        tokens.fail("expected text after ':' on the same line", colon)
    opened = _still_open([], taken)
    while script and _continues(tokens, taken[-1], opened):
        more = tokens.take_block(line_end(tokens, tokens.current)) or [tokens.next()]
        opened = _still_open(opened, more)
        taken += more
    for opening in opened:
        if opening.text == "{":
            tokens.fail("this '{' is not closed on its line; a block has room for more lines", opening)
    return _text_of(tokens, taken)


def balanced_text(tokens: TokenStream, opening: Token) -> str:
    """The text up to the brace that closes `opening`, which is passed."""
    taken = tokens.take_block(len(tokens.text))
    if not tokens.accept("}"):
        tokens.fail("a '{' is not closed", opening)
    return _text_of(tokens, taken)


def read_bracketed(tokens: TokenStream) -> str:
    """Reads the text from the current bracket to its partner, both in it, all kinds of brackets in balance."""
    taken = [tokens.next()]
    closers = [OPENING[taken[0].text]]
    while closers:
        if tokens.at_kind(END):
            tokens.fail(f"a {taken[0].text!r} is not closed", taken[0])
        token = tokens.next()
        taken.append(token)
        if token.text in OPENING:
            closers.append(OPENING[token.text])
        elif token.text in OPENING.values() and token.text != closers.pop():
            tokens.fail(f"{token.text!r} does not close the bracket before it", token)
    return _text_of(tokens, taken)


def _continues(tokens: TokenStream, last: Token, opened: list[Token]) -> bool:
    """Whether a script goes on after its token `last`: a bracket is open, or an operator is at the seam."""
    if tokens.at_kind(END) or (not opened and tokens.at("}")):
        return False
    return bool(opened) or tokens.at("|") or last.text in ("|", ".")


def _still_open(opened: list[Token], tokens: Iterable[Token]) -> list[Token]:
    """The opening brackets without a partner after `tokens`; closing ones without a partner do not count."""
    for token in tokens:
        if token.text in OPENING:
            opened.append(token)
        elif opened and token.text == OPENING[opened[-1].text]:
            opened.pop()
    return opened


def _text_of(tokens: TokenStream, taken: list[Token]) -> str:
    if not taken:
        return ""
    raw = tokens.text[taken[0].start : taken[-1].end]
    return _COMMENT_OR_STRING.sub(_blank_comment, raw)


def _blank_comment(match: re.Match[str]) -> str:
    return " " * len(match.group()) if match.group().startswith("#") else match.group()
