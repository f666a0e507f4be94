"""The conditions of YQL's `where`, read into items.

From weak to strong: `or`, `and`, `!`, one comparison. An annotation in front of any of them holds for all of it.
`a and !b` is a NotItem: what matches the positives and none of the negatives.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#where
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NoReturn

from paperwasp.errors import Position
from paperwasp.parsing.tokens import Token, TokenStream
from paperwasp.query.items import AndItem, FalseItem, Item, NotItem, OrItem, RangeItem, TrueItem, WordItem
from paperwasp.yql.annotations import NO_SCOPE, Scope, Value, accept_annotations
from paperwasp.yql.lexicon import (
    MAX_DIGITS,
    NUMBERS,
    accept_keyword,
    at_keyword,
    dotted_name,
    number_value,
    string_value,
)
from paperwasp.yql.operators import CONDITIONS, LEAVES, UNSUPPORTED

Number = int | float
Bounds = tuple[Number | None, Number | None, bool, bool]

_COMPARISONS: Final[Mapping[str, Callable[[Number], Bounds]]] = {
    "=": lambda n: (n, n, True, True),
    "<": lambda n: (None, n, True, False),
    "<=": lambda n: (None, n, True, True),
    ">": lambda n: (n, None, False, True),
    ">=": lambda n: (n, None, True, True),
}
_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


class ConditionParser:
    """Reads conditions from a stream of YQL tokens; notes which fields and parameters they name."""

    def __init__(self, tokens: TokenStream, parameters: Mapping[str, str]) -> None:
        self.tokens = tokens
        self.fields: dict[str, Position] = {}
        self.parameter_names: list[str] = []
        """The parameters whose values are in what was read."""
        self._parameters = parameters

    def expression(self, scope: Scope = NO_SCOPE) -> Item:
        """A whole condition, up to what cannot belong to it."""
        tokens = self.tokens
        with tokens.nested():
            scope = self._annotated(scope)
            first = self._conjunction(scope)
            if not at_keyword(tokens, "or"):
                return first
            alternatives = [first]
            while accept_keyword(tokens, "or"):
                alternatives.append(self._conjunction(scope.below()))
            return OrItem(tuple(alternatives))

    def arguments(self, scope: Scope) -> tuple[Item, ...]:
        """Conditions between commas: the arguments of an operator."""
        items = [self.expression(scope.below())]
        while self.tokens.accept(","):
            items.append(self.expression(scope.below()))
        return tuple(items)

    def field(self) -> str:
        """The name of a field, noted with its place."""
        token = self.tokens.current
        if token.kind != "identifier":
            self.tokens.fail(f"expected the name of a field, found {self.tokens.found()}")
        name = dotted_name(self.tokens)
        self.note_field(name, token)
        return name

    def note_field(self, name: str, token: Token) -> None:
        if name not in self.fields:
            self.fields[name] = self.tokens.position(token)

    def text(self, what: str) -> str:
        """A string, or the value of a parameter."""
        token = self.tokens.current
        if token.kind == "string":
            self.tokens.next()
            return string_value(self.tokens, token)
        if token.text == "@":
            return self.parameter()
        self.tokens.fail(f"expected a string as {what}, found {self.tokens.found()}")

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

    def refuse_call(self) -> None:
        """Fails if an operator stands here that is unknown, not supported yet, or out of place."""
        name = self.tokens.current
        if name.kind != "identifier" or self.tokens.peek().text != "(":
            return
        if name.text in UNSUPPORTED:
            self.tokens.fail(f"'{name.text}' is not supported yet", name)
        known = sorted({*CONDITIONS, *LEAVES})
        self.tokens.fail(f"operator '{name.text}' is not known here; known are {', '.join(known)}", name)

    def _annotated(self, scope: Scope) -> Scope:
        token = self.tokens.current
        own = self.annotations()
        return scope.inherit(own, self.tokens, token) if own else scope

    def _conjunction(self, scope: Scope) -> Item:
        tokens = self.tokens
        first_negated = tokens.accept("!") is not None
        first = self._condition(scope)
        if not first_negated and not at_keyword(tokens, "and"):
            return first
        positives = [] if first_negated else [first]
        negatives = [first] if first_negated else []
        while accept_keyword(tokens, "and"):
            side = negatives if tokens.accept("!") else positives
            side.append(self._condition(scope.below()))
        return _conjoined(positives, negatives)

    def _condition(self, scope: Scope) -> Item:
        tokens = self.tokens
        scope = self._annotated(scope)
        if tokens.accept("("):
            item = self.expression(scope)
            tokens.expect(")")
            return item
        token = tokens.current
        if token.kind != "identifier":
            return self._turned_comparison(scope)
        if token.text.lower() in ("true", "false"):
            return self._truth(scope)
        if tokens.peek().text == "(":
            return self._call(scope)
        return self._on_field(scope)

    def _call(self, scope: Scope) -> Item:
        operator = CONDITIONS.get(self.tokens.current.text)
        if operator is None:
            self.refuse_call()
            raise AssertionError("refuse_call fails")
        self.tokens.next()
        self.tokens.expect("(")
        item = operator(self, scope)
        self.tokens.expect(")")
        return item

    def _truth(self, scope: Scope) -> Item:
        token = self.tokens.next()
        truth = token.text.lower() == "true"
        if self.tokens.accept("="):
            return _equal(self.field(), int(truth), scope)
        return TrueItem() if truth else FalseItem()

    def _on_field(self, scope: Scope) -> Item:
        tokens = self.tokens
        field = self.field()
        if accept_keyword(tokens, "contains"):
            return self._contained(field, scope)
        if tokens.at(*_COMPARISONS):
            return self._comparison(field, tokens.next().text, scope)
        if accept_keyword(tokens, "in"):
            return self._in(field, scope)
        self._refuse_operator()

    def _refuse_operator(self) -> NoReturn:
        tokens = self.tokens
        if tokens.at("!="):
            tokens.fail("'!=' is not an operator of YQL here: write !(field = value)")
        if at_keyword(tokens, "matches"):
            tokens.fail("'matches' is not supported yet")
        if tokens.at("[", "{"):
            tokens.fail("access to elements and entries is not supported yet")
        tokens.fail(f"expected contains, in, =, <, <=, > or >=, found {tokens.found()}")

    def _contained(self, field: str, scope: Scope) -> Item:
        """What stands to the right of `contains`."""
        tokens = self.tokens
        with tokens.nested():
            scope = self._annotated(scope)
            if tokens.accept("("):
                item = self._contained(field, scope)
                tokens.expect(")")
                return item
        name = tokens.current
        if name.kind == "identifier" and tokens.peek().text == "(" and name.text in LEAVES:
            tokens.next()
            tokens.next()
            item = LEAVES[name.text](self, field, scope)
            tokens.expect(")")
            return item
        self.refuse_call()
        return WordItem(field, self.text("what the field contains"), annotations=scope.of_term())

    def _comparison(self, field: str, operator: str, scope: Scope) -> Item:
        value, scope = self._number(scope)
        low, high, low_inclusive, high_inclusive = _COMPARISONS[operator](value)
        return RangeItem(
            field, low, high, low_inclusive, high_inclusive, scope.hit_limit(), annotations=scope.of_term()
        )

    def _turned_comparison(self, scope: Scope) -> Item:
        """`5 < field`."""
        tokens = self.tokens
        if not tokens.at_kind(*NUMBERS, "string") and not tokens.at("@", "-"):
            tokens.fail(f"expected a condition, found {tokens.found()}")
        value, scope = self._number(scope)
        operator = tokens.expect(*_COMPARISONS)
        low, high, low_inclusive, high_inclusive = _COMPARISONS[_TURNED[operator.text]](value)
        field = self.field()
        return RangeItem(
            field, low, high, low_inclusive, high_inclusive, scope.hit_limit(), annotations=scope.of_term()
        )

    def _number(self, scope: Scope) -> tuple[Number, Scope]:
        """A number, true or false (1 and 0), or a string or parameter that holds one; and its scope."""
        tokens = self.tokens
        if tokens.accept("("):
            with tokens.nested():
                value, scope = self._number(self._annotated(scope))
            tokens.expect(")")
            return value, scope
        scope = self._annotated(scope)
        sign = -1 if tokens.accept("-") else 1
        token = tokens.current
        if tokens.accept_kind(*NUMBERS):
            return sign * number_value(tokens, token), scope
        if accept_keyword(tokens, "true", "false"):
            return int(token.text.lower() == "true"), scope
        if token.kind != "string" and token.text != "@":
            tokens.fail(f"expected a number, found {tokens.found()}")
        return sign * self._number_of_text(self.text("a number"), token), scope

    def _number_of_text(self, text: str, token: Token) -> Number:
        value = parse_number(text)
        if value is None:
            self.tokens.fail(f"'{text}' is not a number", token)
        return value

    def _in(self, field: str, scope: Scope) -> Item:
        """`field in (1, 2)`, `field in ("a", "b")`, `field in (@values)`: one of them."""
        tokens = self.tokens
        tokens.expect("(")
        items = self._element(field, scope)
        while tokens.accept(","):
            items += self._element(field, scope)
        tokens.expect(")")
        return items[0] if len(items) == 1 else OrItem(tuple(items))

    def _element(self, field: str, scope: Scope) -> list[Item]:
        tokens = self.tokens
        if (token := tokens.accept_kind("int", "long")) is not None:
            return [_equal(field, number_value(tokens, token), scope)]
        if (token := tokens.accept_kind("string")) is not None:
            return [WordItem(field, string_value(tokens, token), annotations=scope.of_term())]
        if tokens.at("@"):
            annotations = scope.of_term()
            return [WordItem(field, value, annotations=annotations) for value in _listed(self.parameter())]
        tokens.fail(f"expected an integer or a string, found {tokens.found()}")


def _equal(field: str, value: Number, scope: Scope) -> RangeItem:
    return RangeItem(field, value, value, hit_limit=scope.hit_limit(), annotations=scope.of_term())


def _conjoined(positives: list[Item], negatives: list[Item]) -> Item:
    if not positives:
        wanted: Item = TrueItem()
    elif len(positives) == 1:
        wanted = positives[0]
    else:
        wanted = AndItem(tuple(positives))
    return NotItem((wanted, *negatives)) if negatives else wanted


def parse_number(text: str) -> Number | None:
    """The number a text holds; None if it holds none, or one that no field has."""
    if len(text) > MAX_DIGITS:
        return None
    for kind in (int, float):
        try:
            value: Number = kind(text)
        except ValueError:
            continue
        return value if value == value else None
    return None


def _listed(text: str) -> list[str]:
    """The values of a comma-separated list; quotes around one are not part of it."""
    values = []
    for value in text.split(","):
        value = value.strip()
        if len(value) >= 2 and value[0] == value[-1] and value[0] in "\"'":
            value = value[1:-1]
        if value:
            values.append(value)
    return values
