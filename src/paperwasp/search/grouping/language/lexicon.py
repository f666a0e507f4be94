"""The tokens of the grouping language. White space is a token: it may stand only where the grammar lets it.

Vespa: GroupingParser.jj
"""

from __future__ import annotations

import re
from typing import Final, NamedTuple, NoReturn

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.base.records import dataclass
from paperwasp.core.clock import check_time
from paperwasp.errors import LanguageError, Position

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


@dataclass(frozen=True, slots=True)
class _Place:
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
