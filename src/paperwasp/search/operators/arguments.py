"""The arguments of YQL's operators, read from a stream of tokens.

An operator's file has a function that reads its arguments through an `ArgumentReader`: texts, values, names of fields
and conditions. The grammar of conditions is that of `conditions.ConditionParser`, the one implementation, which in turn
calls the operators.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import cast

from paperwasp.errors import Position
from paperwasp.search.language.lexicon import dotted_name, string_value
from paperwasp.search.language.scope import NO_SCOPE, Scope, Value, accept_annotations, read_value
from paperwasp.search.language.slots import NO_SLOTS, Slot
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.text.parsing.tokens import Token, TokenStream


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
    def expression(self, scope: Scope = NO_SCOPE) -> Item:
        """A whole condition, up to what cannot belong to it."""

    @abstractmethod
    def leaf(self, field: str, scope: Scope, outer: Scope) -> Item | None:
        """An operator such as `phrase(…)`, if one stands here; `outer` is in force for its words."""

    @abstractmethod
    def refuse_call(self) -> None:
        """Fails if an operator stands here that is unknown, or out of place."""

    @abstractmethod
    def word(self, field: str, text: str, scope: Scope) -> TermItem:
        """The term for a text in a field: a word, or with an annotation the start, the end or a part of one."""

    def arguments(self, scope: Scope) -> tuple[Item, ...]:
        """Conditions between commas: the arguments of an operator."""
        items = [self.expression(scope.below())]
        while self.tokens.accept(","):
            items.append(self.expression(scope.below()))
        return tuple(items)

    def parts(self, field: str, scope: Scope, operators: tuple[str, ...]) -> list[Item]:
        """Words, or operators on the same field of those named, between commas."""
        parts = [self.part(field, scope, operators)]
        while self.tokens.accept(","):
            parts.append(self.part(field, scope, operators))
        return parts

    def part(self, field: str, scope: Scope, operators: tuple[str, ...], outer: Scope | None = None) -> Item:
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

    def annotated(self, scope: Scope) -> Scope:
        """The scope with the annotation that stands here, if one does."""
        token = self.tokens.current
        own = self.annotations()
        return scope.inherit(own, self.tokens, token) if own else scope
