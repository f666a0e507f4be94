"""The tokens of YQL, and the values that its literals stand for.

Keywords are found by `keyword`, in any case; names of fields, functions and annotations keep theirs.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

import re
from typing import Final

from paperwasp.base.patterns import compile_later
from paperwasp.text.parsing.tokens import Lexicon, Token, TokenStream

YQL: Final = Lexicon(
    {
        "_space": r"\s+",
        "_comment": r"//[^\r\n]*|/\*.*?\*/",
        "identifier": r"[A-Za-z_][A-Za-z0-9_-]*",
        "string": r'"[^"\\]*(?:\\.[^"\\]*)*"|' r"'[^'\\]*(?:\\.[^'\\]*)*'",
        "float": r"-?(?:[0-9]+\.[0-9]*(?:[eE][+-]?[0-9]+)?|\.[0-9]+(?:[eE][+-]?[0-9]+)?|[0-9]+[eE][+-]?[0-9]+)",
        "long": r"-?[0-9]+[lL]",
        "int": r"-?[0-9]+",
        "symbol": r"<=|>=|!=|[-=<>!(){}\[\],.:;@*]",
        "grouping": r"\|.*",
    }
)
"""All that follows a `|` is in the grouping language, and one token here."""

Number = int | float
NUMBERS: Final = ("int", "long", "float")
MAX_DIGITS: Final = 308
"""A longer number is refused: no field can hold it, and Python takes quadratic time to read it. Integers of this
length are doubles, too."""

_INTEGER: Final = compile_later(r"[+-]?\d+")
_FRACTION: Final = compile_later(r"[+-]?(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?")
_ESCAPE = compile_later(r"\\(u[0-9a-fA-F]{4}|.)", re.DOTALL)
_ESCAPED: Final = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r", '"': '"', "'": "'", "\\": "\\", "/": "/"}


def at_keyword(tokens: TokenStream, *words: str) -> bool:
    """Whether the current token is one of these words, in any case. A string never is: it has its quotes."""
    return tokens.current.text.lower() in words


def accept_keyword(tokens: TokenStream, *words: str) -> Token | None:
    return tokens.next() if tokens.current.text.lower() in words else None


def expect_keyword(tokens: TokenStream, word: str) -> Token:
    if tokens.current.text.lower() == word:
        return tokens.next()
    tokens.fail(f"expected '{word}', found {tokens.found()}")


def dotted_name(tokens: TokenStream) -> str:
    """`name` or `name.name…`: a field, a source."""
    name = (tokens.next() if tokens.current.kind == "identifier" else tokens.expect_kind("identifier")).text
    if tokens.current.text != ".":
        return name
    parts = [name]
    while tokens.accept("."):
        parts.append(tokens.expect_kind("identifier").text)
    return ".".join(parts)


def string_value(tokens: TokenStream, token: Token) -> str:
    """The text between the quotes, with its escapes undone."""
    try:
        return unescaped(token.text[1:-1])
    except KeyError as error:
        tokens.fail(f"unknown escape '\\{error.args[0]}' in a string", token)


def unescaped(text: str) -> str:
    """The text with its escapes undone. Errors: KeyError with what follows the backslash, where it is none of them."""
    if "\\" not in text:
        return text
    joined = _ESCAPE.sub(_unescaped, text)
    return joined.encode("utf-16", "surrogatepass").decode("utf-16", "replace") if "\\u" in text else joined


def _unescaped(match: re.Match[str]) -> str:
    escape = match.group(1)
    return chr(int(escape[1:], 16)) if len(escape) == 5 else _ESCAPED[escape]


def number_value(tokens: TokenStream, token: Token) -> int | float:
    """The number a token stands for; `L` marks a 64-bit one and changes nothing here."""
    if len(token.text) > MAX_DIGITS:
        tokens.fail(f"a number of {len(token.text)} characters is too long", token)
    if token.kind == "float":
        return float(token.text)
    return int(token.text.rstrip("lL"))


def parse_number(text: str) -> Number | None:
    """The number a text holds, in the forms that Vespa reads (asNumber of IntItem.java): a fraction has a point, so
    that `1e5`, `1_000` and `infinity` are none."""
    text = text.strip()
    if len(text) > MAX_DIGITS:
        return None
    if _INTEGER.fullmatch(text):
        return int(text)
    return float(text.rstrip("fFdD")) if _FRACTION.fullmatch(text) else None
