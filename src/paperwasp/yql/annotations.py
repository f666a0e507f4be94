"""Annotations: `{weight: 200, ranked: false}` before a term or an operator.

An annotation holds for what follows it and for everything below that, until something below says otherwise; only
`id` names one single term. Unknown annotations have no effect, as in Vespa; known ones that paperwasp does not
execute are refused.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#annotations
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import Any, Final, NoReturn

from paperwasp.parsing.tokens import Token, TokenStream
from paperwasp.query.items import DEFAULT_ANNOTATIONS, Annotations
from paperwasp.yql.lexicon import NUMBERS, accept_keyword, number_value, string_value

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
}
"""What every term may be told: YQL's name → (ours, type)."""

_NOT_YET: Final = ("prefix", "suffix", "substring", "andSegmenting")
"""Annotations that change what a term matches, when they are true."""


@dataclass(frozen=True, slots=True)
class Scope:
    """The annotations in force at one place, the nearest first, and where they were written."""

    values: Mapping[str, Value] = field(default_factory=lambda: MappingProxyType({}))
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
        self._fail(f"annotation '{name}' must be {_KIND_NAMES[kind]}, not {value!r}")

    def refuse(self, *names: str) -> None:
        """Fails if one of these annotations, which are not executed, is set and not false."""
        for name in names:
            if self.values.get(name):
                self._fail(f"annotation '{name}' is not supported yet")

    def _fail(self, message: str) -> NoReturn:
        assert self.tokens is not None
        self.tokens.fail(message, self.token)

    def of_term(self) -> Annotations:
        """What the annotations in force say about a term. Errors: LanguageError at the annotation."""
        if not self.values:
            return DEFAULT_ANNOTATIONS
        self.refuse(*_NOT_YET, "documentFrequency")
        self._check_language()
        given = {ours: self.get(name, kind) for name, (ours, kind) in _TERM.items() if name in self.values}
        connectivity = self._connectivity()
        if connectivity is not None:
            given["connectivity"] = connectivity
        return Annotations(**given)

    def _check_language(self) -> None:
        language = self.get("language", str)
        if language is not None and not language.lower().startswith("en"):
            self._fail(f"annotation 'language' with '{language}' is not supported yet: only English is")

    def _connectivity(self) -> tuple[int, float] | None:
        given = self.get("connectivity", dict)
        if given is None:
            return None
        to, weight = given.get("id"), given.get("weight")
        if type(to) is not int or type(weight) not in (int, float):
            self._fail("annotation 'connectivity' must be {id: number, weight: number}")
        return to, float(weight)

    def hit_limit(self) -> int:
        """`hitLimit`, below zero when the highest values are wanted first; 0: none."""
        limit = self.get("hitLimit", int) or 0
        ascending, descending = self.get("ascending", bool), self.get("descending", bool)
        if ascending is not None and descending is not None:
            self._fail("only one of the annotations 'ascending' and 'descending' may be set")
        return -limit if descending is True or ascending is False else limit

    def target_hits(self) -> int:
        """How many hits an operator shall find on a node; 0: Vespa's default."""
        for name in ("totalTargetHits", "targetHits", "targetNumHits"):
            hits = self.get(name, int)
            if hits is not None:
                if hits < 0:
                    self._fail(f"annotation '{name}' must not be negative")
                return int(hits)
        return 0


NO_SCOPE: Final = Scope()
_KIND_NAMES: Final = {bool: "true or false", int: "an integer", float: "a number", str: "a string", dict: "a map"}


def accept_annotations(tokens: TokenStream, parameter: Callable[[], str]) -> dict[str, Value] | None:
    """`{…}`, or the older `[{…}]`, if one starts here. `parameter` reads the value of `@name`."""
    if tokens.at("[") and tokens.peek().text == "{":
        tokens.next()
        values = _map(tokens, parameter)
        tokens.expect("]")
        return values
    return _map(tokens, parameter) if tokens.at("{") else None


def _map(tokens: TokenStream, parameter: Callable[[], str]) -> dict[str, Value]:
    tokens.expect("{")
    values: dict[str, Value] = {}
    while not tokens.at("}"):
        name = _name(tokens)
        tokens.expect(":")
        values[name] = _value(tokens, parameter)
        if not tokens.accept(","):
            break
    tokens.expect("}")
    return values


def _name(tokens: TokenStream) -> str:
    token = tokens.accept_kind("string")
    if token is not None:
        return string_value(tokens, token)
    parts = [tokens.expect_kind("identifier").text]
    while tokens.accept("."):
        parts.append(tokens.expect_kind("identifier").text)
    return ".".join(parts)


def _value(tokens: TokenStream, parameter: Callable[[], str]) -> Value:
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
            return _map(tokens, parameter)
        if tokens.accept("["):
            return _list(tokens, parameter)
    tokens.fail(f"expected the value of an annotation, found {tokens.found()}")


def _list(tokens: TokenStream, parameter: Callable[[], str]) -> list[Value]:
    values: list[Value] = []
    while not tokens.at("]"):
        values.append(_value(tokens, parameter))
        if not tokens.accept(","):
            break
    tokens.expect("]")
    return values
