"""The syntax of YQL that operators read and print: tokens, literals, slots, annotations, lists of values, and degrees.

Statements are read in `query_languages.yql`, and what an operator is called in `search.operators.notation`. The other
query languages and request parameters share the annotations, lists and degrees.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from math import pi
from types import MappingProxyType
from typing import Any, Final, NoReturn
from unicodedata import normalize

from msgspec import Struct, field

from paperwasp.base.patterns import compile_later
from paperwasp.base.records import replace
from paperwasp.core.clock import check_time
from paperwasp.text.parsing.tokens import Lexicon, Token, TokenStream

# The tokens of YQL, and the values that its literals stand for.
#
# Keywords are found by `keyword`, in any case; names of fields, functions and annotations keep theirs.
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html


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


# Slots: literals of a statement that know their number, so that others can take their place in its tree.
#
# `query_languages.yql.lifting` has statements read with slots, and fills them.


class SlotText(str):
    """A text that knows which literal, or which parameter, it is the value of."""

    slot: int


class SlotInteger(int):
    """As SlotText, an integer."""

    slot: int


class SlotFraction(float):
    """As SlotText, a number with a fraction."""

    slot: int


Slot = SlotText | SlotInteger | SlotFraction
NO_SLOTS: Final[Mapping[int | str, Slot]] = MappingProxyType({})


def slot_of(value: str | int | float, number: int) -> Slot:
    """The value as one that knows its number."""
    made: Slot
    if isinstance(value, str):
        made = SlotText(value)
    else:
        made = SlotInteger(value) if isinstance(value, int) else SlotFraction(value)
    made.slot = number
    return made


# The annotations that any term of a query may have.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#annotations


class Annotations(Struct, frozen=True):
    """The annotations that any term may have. Names and defaults are Vespa's."""

    weight: int = 100
    ranked: bool = True
    filter: bool = False
    stem: bool = True
    normalize_case: bool = True
    accent_drop: bool = True
    implicit_transforms: bool = True
    use_position_data: bool = True
    significance: float | None = None
    connectivity: tuple[int, float] | None = None
    """Unique id of the next term, and the strength 0..1."""
    id: int | None = None
    label: str | None = None
    language: str = ""
    """The language of the text, as an RFC 5646 tag; empty: that of the query."""
    and_segmenting: bool = False
    """Whether the tokens of one word are an and instead of a phrase."""
    document_frequency: tuple[int, int] | None = None
    """Documents with the term, and documents: what significance is computed from instead of this node's own."""
    profile: str = ""
    """The linguistics profile in place of that of the field."""

    def given(self) -> dict[str, Any]:
        """Return the annotations that differ from their defaults, by name."""
        values = ((name, getattr(self, name)) for name in Annotations.__struct_fields__)
        return {name: value for name, value in values if value != getattr(DEFAULT_ANNOTATIONS, name)}


DEFAULT_ANNOTATIONS = Annotations()


# Annotations: `{weight: 200, ranked: false}` before a term or an operator.
#
# An annotation of a condition holds for everything below it, until something below says otherwise; only `id` names
# one single term. One of an operator after `contains`, such as `phrase(…)`, is about the operator and not its words.
# Unknown annotations have no effect, as in Vespa.
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#annotations


Value = Any
"""str, int, float, bool, a list of values, or a dict of them."""

_OWN_ONLY: Final = frozenset({"id", "origin"})
_TERM: Final[Mapping[str, tuple[str, type]]] = {
    "weight": ("weight", int),
    "ranked": ("ranked", bool),
    "filter": ("filter", bool),
    "stem": ("stem", bool),
    "normalizeCase": ("normalize_case", bool),
    "accentDrop": ("accent_drop", bool),
    "implicitTransforms": ("implicit_transforms", bool),
    "usePositionData": ("use_position_data", bool),
    "significance": ("significance", float),
    "id": ("id", int),
    "label": ("label", str),
    "language": ("language", str),
    "andSegmenting": ("and_segmenting", bool),
    "grammar.profile": ("profile", str),
}
"""The annotations of every term: YQL's name → (ours, type)."""

OF_GROUP: Final = frozenset(
    {"weight", "ranked", "filter", "significance", "id", "label", "connectivity", "documentFrequency"}
)
"""The annotations of several words as a whole: a phrase, an equiv. The others hold for each word in it."""

_NO_VALUES: Final[Mapping[str, Value]] = MappingProxyType({})


class AnnotationScope(Struct, frozen=True):
    """The annotations in force at one place, the nearest first, and where they were written."""

    values: Mapping[str, Value] = field(default_factory=lambda: _NO_VALUES)
    tokens: TokenStream | None = None
    token: Token | None = None

    def inherit(self, own: Mapping[str, Value], tokens: TokenStream, token: Token) -> AnnotationScope:
        """The scope of what follows an annotation here."""
        kept = {name: value for name, value in self.values.items() if name not in _OWN_ONLY}
        return AnnotationScope({**kept, **own}, tokens, token)

    def below(self) -> AnnotationScope:
        """The scope of the parts of an item, which do not carry the id of the whole."""
        if _OWN_ONLY.isdisjoint(self.values):
            return self
        kept = {name: value for name, value in self.values.items() if name not in _OWN_ONLY}
        return replace(self, values=kept)

    def get(self, name: str, kind: type) -> Value:
        """The annotation of that name, or None; an error if it is not of that kind."""
        value = self.values.get(name)
        if value is None or type(value) is kind or (kind is float and type(value) is int):
            return value
        self.fail(f"annotation '{name}' must be {_KIND_NAMES[kind]}, not {value!r}")

    def fail(self, message: str) -> NoReturn:
        """Raises LanguageError at the annotation."""
        assert self.tokens is not None
        self.tokens.fail(message, self.token)

    def of_term(self) -> Annotations:
        """The annotations in force, as those of a term. Errors: LanguageError at the annotation."""
        if not self.values:
            return DEFAULT_ANNOTATIONS
        given = {ours: self.get(name, kind) for name, (ours, kind) in _TERM.items() if name in self.values}
        connectivity = self._numbers("connectivity", {"id": int, "weight": float})
        if connectivity is not None:
            given["connectivity"] = (connectivity[0], float(connectivity[1]))
        frequency = self._numbers("documentFrequency", {"frequency": int, "count": int})
        if frequency is not None:
            given["document_frequency"] = frequency
        self._check_what_has_no_effect()
        return Annotations(**given)

    def of_group(self, words: AnnotationScope) -> Annotations:
        """The annotations of several words as a whole, where `words` is in force for each of them."""
        if self is words:
            return self.of_term()
        own = {name: value for name, value in self.values.items() if name in OF_GROUP}
        return replace(self, values={**words.values, **own}).of_term()

    def _numbers(self, name: str, kinds: Mapping[str, type]) -> tuple[Any, ...] | None:
        given = self.get(name, dict)
        if given is None:
            return None
        values = tuple(given.get(key) for key in kinds)
        for value, kind in zip(values, kinds.values(), strict=True):
            if type(value) is not int and (kind is int or type(value) is not float):
                self.fail(f"annotation '{name}' must be {{{', '.join(f'{key}: number' for key in kinds)}}}")
        return values

    def _check_what_has_no_effect(self) -> None:
        """`origin` and `annotations` only describe; they are read so that what is wrong with them is found."""
        origin = self.get("origin", dict)
        if origin is not None:
            kinds = [type(origin.get(key)) for key in ("original", "offset", "length")]
            if kinds != [str, int, int]:
                self.fail("annotation 'origin' must be {original: string, offset: number, length: number}")
        custom = self.get("annotations", dict) or {}
        if not all(isinstance(value, str) for value in custom.values()):
            self.fail("annotation 'annotations' must be a map of strings")

    def text(self, text: str) -> str:
        """A text as `nfkc` wants it; without that, its field normalizes it when it makes tokens."""
        if not (self.values and self.get("nfkc", bool)):
            return text
        return normalize("NFKC", str(text))  # of a slot (see lifting) the text: another may not be normal as it is

    def hit_limit(self) -> int:
        """`hitLimit`, below zero when the highest values are wanted first; 0: none."""
        if not self.values:
            return 0
        limit = int(self.get("hitLimit", int) or 0)
        ascending, descending = self.get("ascending", bool), self.get("descending", bool)
        if ascending is not None and descending is not None:
            self.fail("only one of the annotations 'ascending' and 'descending' may be set")
        return -limit if descending is True or ascending is False else limit

    def target_hits(self) -> int:
        """How many hits an operator shall find on a node; 0: Vespa's default."""
        return self.count("totalTargetHits") or self.count("targetHits") or self.count("targetNumHits") or 0

    def count(self, name: str) -> int | None:
        """An annotation that says how many; None: it is not set."""
        hits = self.get(name, int)
        if hits is not None and hits < 0:
            self.fail(f"annotation '{name}' must not be negative")
        return None if hits is None else int(hits)


NO_SCOPE: Final = AnnotationScope()
_KIND_NAMES: Final[Mapping[type, str]] = {
    bool: "true or false",
    int: "an integer",
    float: "a number",
    str: "a string",
    dict: "a map",
}


def accept_annotations(tokens: TokenStream, parameter: Callable[[], str]) -> dict[str, Value] | None:
    """`{…}`, or the older `[{…}]`, if one starts here. `parameter` reads the value of `@name`."""
    text = tokens.current.text
    if text == "[" and tokens.peek().text == "{":
        tokens.next()
        values = read_map(tokens, parameter)
        tokens.expect("]")
        return values
    return read_map(tokens, parameter) if text == "{" else None


def read_map(tokens: TokenStream, parameter: Callable[[], str]) -> dict[str, Value]:
    """`{name: value, …}`."""
    tokens.expect("{")
    values: dict[str, Value] = {}
    while not tokens.at("}"):
        token = tokens.accept_kind("string")
        name = dotted_name(tokens) if token is None else string_value(tokens, token)
        tokens.expect(":")
        values[name] = read_value(tokens, parameter)
        if not tokens.accept(","):
            break
    tokens.expect("}")
    return values


def read_value(tokens: TokenStream, parameter: Callable[[], str]) -> Value:
    """A string, a number, true, false, `@name`, a map or a list."""
    if (token := tokens.accept_kind("string")) is not None:
        return string_value(tokens, token)
    if (token := tokens.accept_kind(*NUMBERS)) is not None:
        return number_value(tokens, token)
    if (token := accept_keyword(tokens, "true", "false")) is not None:
        return token.text.lower() == "true"
    if tokens.at("@"):
        return parameter()
    with tokens.nested():
        if tokens.at("{"):
            return read_map(tokens, parameter)
        if tokens.accept("["):
            return _list(tokens, parameter)
    tokens.fail(f"expected a string, a number, true, false, a list or a map, found {tokens.found()}")


def _list(tokens: TokenStream, parameter: Callable[[], str]) -> list[Value]:
    values: list[Value] = []
    while not tokens.at("]"):
        values.append(read_value(tokens, parameter))
        if not tokens.accept(","):
            break
    tokens.expect("]")
    return values


# The values of request parameters that stand for a whole list: `in (@values)`, `wand(field, @tokens)`.
#
# Quotes around a value are not part of it, and needed only where it has a comma or a colon in it.
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#parameter-substitution


_VALUE: Final = compile_later(r"""\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^,]*))(?:,|\Z)""")
_ELEMENT: Final = compile_later(r"""\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^,\]\s][^,\]]*|))(?:,|(?=\]))""")
_ENTRY: Final = compile_later(
    r"""\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^:'"{}\s][^:'"{}]*|)):\s*(-?[0-9]{1,10})\s*(?:,|(?=\}))"""
)
_PAIR: Final = compile_later(
    r"""\s*\[\s*(?:'([^']*)'\s*|"([^"]*)"\s*|([^,'"\[\]\s][^,'"\[\]]*|)),\s*(-?[0-9]{1,10})\s*\]\s*(?:,|(?=\]))"""
)
_WHOLE_NUMBER: Final = compile_later(r"[+-]?[0-9]{1,19}")

Tokens = tuple[tuple[str | int, int], ...]


def string_values(text: str) -> tuple[str, ...]:
    """`a, 'b, c', d`, or the same in brackets, as a list in a JSON body is; what is empty is left out.

    Errors: ValueError, OutOfTime.
    """
    text = text.strip()
    entry, close = (_ELEMENT, "]") if text.startswith("[") else (_VALUE, "")
    values: list[str] = []
    at = len(close)
    while text[at : at + 1] != close and (match := entry.match(text, at)):
        check_time()
        values.append(_unquote(*match.groups()))
        at = match.end()
    if close and text[at:] != close:
        raise ValueError(f"expected a value, or '{close}' at the end, at '{text[at : at + 50]}'")
    return tuple(value for value in values if value)


def _unquote(single: str | None, double: str | None, plain: str | None) -> str:
    return single if single is not None else double if double is not None else (plain or "").strip()


def weighted_tokens(text: str) -> Tokens:
    """`{a: 1, 'b': 2}`, or `[[11, 1], [37, 2]]`, whose keys are integers if all of them look so.

    Errors: ValueError, OutOfTime.
    """
    text = text.strip()
    if not text.startswith(("{", "[")):
        raise ValueError(f"expected a map that begins with '{{' or a list that begins with '[', not '{text[:50]}'")
    entry, close = (_ENTRY, "}") if text[0] == "{" else (_PAIR, "]")
    found: list[tuple[str, int]] = []
    at = 1
    while match := entry.match(text, at):
        check_time()
        *key, weight = match.groups()
        found.append((_unquote(*key), int(weight)))
        at = match.end()
    if text[at:].strip() != close:
        raise ValueError(f"expected a key with an integer as its weight, or '{close}', at '{text[at : at + 50]}'")
    if close == "]" and all(_WHOLE_NUMBER.fullmatch(key) for key, _ in found):
        return highest((int(key), weight) for key, weight in found)
    return highest(found)


def highest(tokens: Iterable[tuple[str | int, int]]) -> Tokens:
    """Each key once, with the highest of its weights. Errors: ValueError for a weight beyond 32 bits."""
    weights: dict[str | int, int] = {}
    for key, weight in tokens:
        if not -(2**31) <= weight < 2**31:
            raise ValueError(f"the weight {weight} of '{key}' does not fit in 32 bits")
        weights[key] = max(weight, weights.get(key, weight))
    return tuple(weights.items())


# Degrees of latitude and longitude in texts, and distances in degrees.
#
# Vespa: com.yahoo.geo.OneDegreeParser, com.yahoo.geo.DistanceParser


_METERS_PER_DEGREE: Final = pi * 6_356_752.0 / 180.0
"""By the polar radius, as in Vespa."""
DEGREES: Final = {
    "km": 1000.0 / _METERS_PER_DEGREE,
    "m": 1.0 / _METERS_PER_DEGREE,
    "miles": 1609.344 / _METERS_PER_DEGREE,
    "mi": 1609.344 / _METERS_PER_DEGREE,
    "deg": 1.0,
    "d": 1.0,
}
"""Unit of distance → how many degrees one of it is."""
_COORDINATE: Final = compile_later(
    r"(?P<sign>[+-]?)(?P<before>[NSEW]?)(?P<degrees>[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[°o]|(?P<between>[NSEW]))?"
    r"(?:(?P<minutes>[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:'(?P<seconds>[0-9]{1,40}(?:\.[0-9]{0,40})?)?)?)?(?P<behind>[NSEW]?)"
)


def read_degrees(text: str) -> tuple[float, str] | None:
    """The degrees in `63.5`, `N63.5`, `63N25.1` or `N63°25'47`, and the direction that is named in it, if any."""
    match = _COORDINATE.fullmatch(text)
    if match is None:
        return None
    directions = match["before"] + (match["between"] or "") + match["behind"]
    if len(directions) > 1 or (match["minutes"] and "." in match["degrees"]):
        return None
    degrees = float(match["degrees"]) + float(match["minutes"] or 0) / 60 + float(match["seconds"] or 0) / 3600
    below = directions in ("S", "W") if directions else match["sign"] == "-"
    return -degrees if below else degrees, directions
