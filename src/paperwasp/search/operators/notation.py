"""Operators in YQL: reads their names and arguments, and prints them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Any, Final, NamedTuple, Protocol, cast

import orjson

from paperwasp.errors import Position
from paperwasp.search.operators.item import Annotated, Item, TermItem
from paperwasp.search.yql_syntax import (
    DEFAULT_ANNOTATIONS,
    NO_SCOPE,
    NO_SLOTS,
    OF_GROUP,
    Annotations,
    AnnotationScope,
    Slot,
    Value,
    accept_annotations,
    dotted_name,
    read_value,
    string_value,
)
from paperwasp.text.parsing.tokens import Token, TokenStream

# Names → the readers of operators in YQL, of the three kinds there are.
#
# A *condition* stands for itself in `where` (`rank(…)`); a *leaf* stands to the right of `contains` and is given the
# field (`phrase(…)`); a *comparison* stands between a field and what it is compared with (`matches`, `in`). The parser
# has read the name, and the parenthesis of the first two, when it calls a reader, which reads the arguments up to, and
# without, the closing one.
#
# What kinds of arguments a condition or leaf has is said for the JSON query language, which writes them as YQL.


class Condition(Protocol):
    """Reads the arguments of an operator that stands for itself."""

    def __call__(self, parser: ArgumentReader, scope: AnnotationScope, /) -> Item: ...


class Leaf(Protocol):
    """Reads the arguments of an operator that stands to the right of `contains`.

    `scope` has the annotations of the operator, and what is in force around it; `outer` is what is in force for the
    words that are its arguments.
    """

    def __call__(
        self, parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope, /
    ) -> Item: ...


class Comparison(Protocol):
    """Reads what a field is compared with."""

    def __call__(self, parser: ArgumentReader, field: str, scope: AnnotationScope, /) -> Item: ...


class Argument(Enum):
    """A kind of argument."""

    CONDITION = "condition"
    PART = "part"
    """A word, or an operator on the same field."""
    NAME = "name"
    """The name of a field or a tensor."""
    LITERAL = "literal"


class Arguments(NamedTuple):
    """The arguments of an operator."""

    kinds: tuple[Argument, ...]
    """In their order; further ones are of the last kind. None of them: there are no arguments."""
    is_fixed: bool = False
    """Whether there are as many as there are kinds."""


CONDITIONS: Final[dict[str, Condition]] = {}
LEAVES: Final[dict[str, Leaf]] = {}
COMPARISONS: Final[dict[str, Comparison]] = {}
ARGUMENTS: Final[dict[str, Arguments]] = {}
"""The arguments of conditions and leaves."""


def condition(name: str, *arguments: Argument, is_fixed: bool = False) -> Callable[[Condition], Condition]:
    """Registers the reader of a condition under its YQL name."""

    def register(reader: Condition) -> Condition:
        CONDITIONS[name], ARGUMENTS[name] = reader, Arguments(arguments, is_fixed)
        return reader

    return register


def leaf(name: str, *arguments: Argument) -> Callable[[Leaf], Leaf]:
    """Registers the reader of an operator that stands after `contains` under its YQL name."""

    def register(reader: Leaf) -> Leaf:
        LEAVES[name], ARGUMENTS[name] = reader, Arguments(arguments or (Argument.PART,))
        return reader

    return register


def comparison(name: str) -> Callable[[Comparison], Comparison]:
    """Registers the reader of an operator that stands behind a field under its YQL name."""

    def register(reader: Comparison) -> Comparison:
        COMPARISONS[name] = reader
        return reader

    return register


# The arguments of YQL's operators, read from a stream of tokens.
#
# An operator's file has a function that reads its arguments through an `ArgumentReader`: texts, values, names of
# fields and conditions. The grammar of conditions is that of `conditions.ConditionParser`, the one implementation,
# which in turn calls the operators.


class ArgumentReader(ABC):
    """Reads arguments of operators; notes which fields and parameters they name."""

    def __init__(
        self, tokens: TokenStream, parameters: Mapping[str, str], slots: Mapping[int | str, Slot] = NO_SLOTS
    ) -> None:
        """`slots`: the values of literals by their offset, and of parameters by name, that are read as slots where they
        are only copied into an item."""
        self.tokens = tokens
        self._slots = slots
        self.fields: dict[str, Position] = {}
        self.quoted: dict[str, Position] = {}
        """The fields whose names are in quotes, which may be of any case."""
        self.parameter_names: list[str] = []
        """The parameters whose values are in what was read, and may have decided how."""
        self.copied_names: list[str] = []
        """The parameters whose values were read as slots."""
        self.element = ""
        """The field whose elements what is read is about, with a dot; empty: no field's."""
        self._parameters = parameters

    @abstractmethod
    def expression(self, scope: AnnotationScope = NO_SCOPE) -> Item:
        """A whole condition, up to what cannot belong to it."""

    @abstractmethod
    def leaf(self, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item | None:
        """An operator such as `phrase(…)`, if one stands here; `outer` is in force for its words."""

    @abstractmethod
    def refuse_call(self) -> None:
        """Fails if an operator stands here that is unknown, or out of place."""

    @abstractmethod
    def word(self, field: str, text: str, scope: AnnotationScope) -> TermItem:
        """The term for a text in a field: a word, or with an annotation the start, the end or a part of one."""

    def arguments(self, scope: AnnotationScope) -> tuple[Item, ...]:
        """Conditions between commas: the arguments of an operator."""
        items = [self.expression(scope.below())]
        while self.tokens.accept(","):
            items.append(self.expression(scope.below()))
        return tuple(items)

    def parts(self, field: str, scope: AnnotationScope, operators: tuple[str, ...]) -> list[Item]:
        """Words, or operators on the same field of those named, between commas."""
        parts = [self.part(field, scope, operators)]
        while self.tokens.accept(","):
            parts.append(self.part(field, scope, operators))
        return parts

    def part(
        self, field: str, scope: AnnotationScope, operators: tuple[str, ...], outer: AnnotationScope | None = None
    ) -> Item:
        """A word, or one of these operators; annotated, perhaps in parentheses. `outer`: the scope around it."""
        tokens = self.tokens
        outer = outer or scope
        if tokens.current.text in ("(", "{", "["):
            with tokens.nested():
                scope = self.annotated(scope)
                if not tokens.accept("("):
                    return self.part(field, scope, operators, outer)
                part = self.part(field, scope, operators, outer)
                tokens.expect(")")
                return part
        if tokens.current.text in operators:
            with tokens.nested():
                item = self.leaf(field, scope, outer)
            if item is not None:
                return item
        self.refuse_call()
        return self.word(field, self.copied_text("a word"), scope)

    def field(self) -> str:
        """The name of a field, noted with its place."""
        token = self.tokens.current
        if token.kind != "identifier":
            self.tokens.fail(f"expected the name of a field, found {self.tokens.found()}")
        name = dotted_name(self.tokens)
        self.note_field(name, token)
        return name

    def field_or_quoted(self) -> str:
        """The name of a field where it may be in quotes: Vespa's fetchFieldName."""
        token = self.tokens.current
        if token.kind != "string":
            return self.field()
        self.tokens.next()
        name = string_value(self.tokens, token)
        self.quoted.setdefault(self.element + name, self.tokens.position(token))
        return name

    def note_field(self, name: str, token: Token) -> None:
        name = self.element + name
        if name not in self.fields:
            self.fields[name] = self.tokens.position(token)

    @contextmanager
    def inside(self, field: str) -> Iterator[None]:
        """Everything that is read inside is about the elements of a field."""
        outer, self.element = self.element, f"{self.element}{field}."
        yield
        self.element = outer

    def text(self, what: str) -> str:
        """A string, or the value of a parameter."""
        token = self.tokens.current
        if token.kind == "string":
            self.tokens.next()
            return string_value(self.tokens, token)
        if token.text == "@":
            return self.parameter()
        self.tokens.fail(f"expected a string as {what}, found {self.tokens.found()}")

    def copied_text(self, what: str) -> str:
        """As `text`, of a text that decides nothing: it is copied into an item, where another may take its place."""
        token = self.tokens.current
        if token.kind == "string" and (slot := self._slots.get(token.start)) is not None:
            self.tokens.next()
            return cast(str, slot)
        is_parameter = token.text == "@" and self.tokens.peek(2).text != "."
        if is_parameter and (slot := self._slots.get(self.tokens.peek().text)) is not None:
            self.tokens.next()
            self.copied_names.append(self.tokens.next().text)
            return cast(str, slot)
        return self.text(what)

    def parameter(self) -> str:
        """The value of `@name`. The current token is the `@`."""
        at = self.tokens.expect("@")
        name = self.parameter_name()
        self.parameter_names.append(name)
        if name not in self._parameters:
            self.tokens.fail(f"parameter '{name}' is not set", at)
        return self._parameters[name]

    def parameter_name(self) -> str:
        return dotted_name(self.tokens)

    def annotations(self) -> dict[str, Value] | None:
        return accept_annotations(self.tokens, self.parameter)

    def value(self) -> Value:
        """A literal: of a string, a number, a list or a map; or the value of a parameter."""
        return read_value(self.tokens, self.parameter)

    def annotated(self, scope: AnnotationScope) -> AnnotationScope:
        """The scope with the annotation that stands here, if one does."""
        token = self.tokens.current
        own = self.annotations()
        return scope.inherit(own, self.tokens, token) if own else scope


# Parts of conditions as YQL: literals, maps, annotations. `Item.to_yql` and `Item.contained` write with them.


_NAMES: Final = {
    "normalize_case": "normalizeCase",
    "accent_drop": "accentDrop",
    "implicit_transforms": "implicitTransforms",
    "use_position_data": "usePositionData",
    "and_segmenting": "andSegmenting",
    "document_frequency": "documentFrequency",
    "profile": "grammar.profile",
}
_BOUNDS: Final = {(False, False): "open", (False, True): "leftOpen", (True, False): "rightOpen"}


def annotated(text: str, annotations: Annotations = DEFAULT_ANNOTATIONS, extra: Mapping[str, Any] | None = None) -> str:
    """A text with annotations, those of terms and others, in front of it."""
    parts = {**_annotations_of(annotations), **(extra or {})}
    return f"({_map(parts)}{text})" if parts else text


def _annotations_of(annotations: Annotations) -> dict[str, Any]:
    given = {_NAMES.get(name, name): value for name, value in annotations.given().items()}
    if "connectivity" in given:
        given["connectivity"] = dict(zip(("id", "weight"), given["connectivity"], strict=True))
    if "documentFrequency" in given:
        given["documentFrequency"] = dict(zip(("frequency", "count"), given["documentFrequency"], strict=True))
    return given


def group_to_yql(item: Annotated) -> str:
    """The condition of an operator over words, with the annotations about its words in front of it."""
    text = Item.to_yql(item)
    of_words = {name: value for name, value in _annotations_of(item.annotations).items() if name not in OF_GROUP}
    return f"({_map(of_words)}{text})" if of_words else text


def group(name: str, parts: Iterable[str | Item], annotations: Annotations) -> str:
    """An operator over words with the annotations on it as a whole."""
    given = {name: value for name, value in _annotations_of(annotations).items() if name in OF_GROUP}
    text = call(name, map(argument, parts))
    return f"({_map(given)}{text})" if given else text


def call(name: str, arguments: Iterable[str]) -> str:
    return f"{name}({', '.join(arguments)})"


def argument(part: str | Item) -> str:
    """An argument of an operator on a field, which has the field already."""
    return string(part) if isinstance(part, str) else part.contained()


def operand(item: Item) -> str:
    """A child of `and` and its kin, in parentheses where it would read otherwise without."""
    text = item.to_yql()
    return f"({text})" if item.is_joined else text


def _map(values: Mapping[str, Any]) -> str:
    return "{" + ", ".join(f"{name}: {literal(value)}" for name, value in values.items()) + "}"


def literal(value: Any) -> str:
    """A literal. Keys of maps are written bare, so they must be names."""
    if isinstance(value, dict):
        return _map(value)
    if isinstance(value, str):
        return string(value)
    if isinstance(value, bool):
        return str(value).lower()
    return repr(value)


def string(text: str) -> str:
    return orjson.dumps(text.encode("utf-8", "replace").decode()).decode()


def keys(pairs: Iterable[tuple[Any, Any]]) -> str:
    """A map whose keys are strings of any kind."""
    return "{" + ", ".join(f"{string(key)}: {literal(value)}" for key, value in pairs) + "}"


def bounds(low_inclusive: bool, high_inclusive: bool) -> dict[str, str]:
    """The annotation of a range, by whether its low and high ends belong to it."""
    kind = _BOUNDS.get((low_inclusive, high_inclusive))
    return {} if kind is None else {"bounds": kind}
