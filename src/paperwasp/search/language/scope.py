"""Annotations: `{weight: 200, ranked: false}` before a term or an operator.

An annotation of a condition holds for everything below it, until something below says otherwise; only `id` names one
single term. One of an operator after `contains`, such as `phrase(…)`, is about the operator and not its words. Unknown
annotations have no effect, as in Vespa.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#annotations
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import field, replace
from types import MappingProxyType
from typing import Any, Final, NoReturn
from unicodedata import normalize

from paperwasp.base.records import dataclass
from paperwasp.search.language.annotations import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.search.language.lexicon import NUMBERS, accept_keyword, dotted_name, number_value, string_value
from paperwasp.text.parsing.tokens import Token, TokenStream

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


@dataclass(frozen=True, slots=True)
class Scope:
    """The annotations in force at one place, the nearest first, and where they were written."""

    values: Mapping[str, Value] = field(default_factory=lambda: _NO_VALUES)
    tokens: TokenStream | None = None
    token: Token | None = None

    def inherit(self, own: Mapping[str, Value], tokens: TokenStream, token: Token) -> Scope:
        """The scope of what follows an annotation here."""
        kept = {name: value for name, value in self.values.items() if name not in _OWN_ONLY}
        return Scope({**kept, **own}, tokens, token)

    def below(self) -> Scope:
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

    def of_group(self, words: Scope) -> Annotations:
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


NO_SCOPE: Final = Scope()
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
        name = _name(tokens)
        tokens.expect(":")
        values[name] = read_value(tokens, parameter)
        if not tokens.accept(","):
            break
    tokens.expect("}")
    return values


def _name(tokens: TokenStream) -> str:
    token = tokens.accept_kind("string")
    if token is not None:
        return string_value(tokens, token)
    return dotted_name(tokens)


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
