"""The conditions of YQL's `where`, read into items.

From weak to strong: `or`, `and`, `!`, one comparison. An annotation in front of any of them holds for all of it.
`a and !b` is a NotItem: what matches the positives and none of the negatives. Inside `sameElement(…)` a text may stand
alone, and names are below the field.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#where
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final, NamedTuple, cast

from paperwasp.base.patterns import compile_later
from paperwasp.search.operators.boolean import AndItem, FalseItem, NotItem, OrItem, TrueItem
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import COMPARISONS, CONDITIONS, LEAVES, ArgumentReader
from paperwasp.search.operators.patterns import text_range, word_of
from paperwasp.search.operators.range_operator import RangeItem
from paperwasp.search.operators.same_element import SameElementItem, element_number
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import (
    NO_SCOPE,
    NUMBERS,
    AnnotationScope,
    Number,
    Value,
    accept_keyword,
    number_value,
    parse_number,
)
from paperwasp.text.parsing.tokens import Token

_HIT_LIMIT: Final = compile_later(r"[+-]?\d{1,9}")


class NumberRange(NamedTuple):
    """A range of numbers; None is open. `hit_limit` is that of a RangeItem."""

    low: Number | None
    high: Number | None
    low_inclusive: bool = True
    high_inclusive: bool = True
    hit_limit: int = 0


def parse_range(text: str) -> NumberRange | None:
    """Read the range of numbers in a string or parameter: `<7`, `>7`, `[1;7]`, `<1;7>`, `[;7;-9]`; None: it is none.

    Vespa: setNumber of container-search's IntItem.java; which bound belongs to a range is the content node's reading of
    the text (numeric_range_spec.cpp).
    """
    text = text.strip()
    if text[:1] in ("<", ">") and ";" not in text:
        number = parse_number(text[1:])
        if number is None:
            return None
        is_above = text[0] == ">"
        return NumberRange(number if is_above else None, None if is_above else number, not is_above, is_above)
    if text[:1] not in ("[", "<") or text[-1:] not in ("]", ">"):
        return None
    low, high, limit = (*text[1:-1].split(";"), "", "")[:3]
    if text.count(";") not in (1, 2) or not (_is_bound(low) and _is_bound(high)):
        return None
    if limit and not _HIT_LIMIT.fullmatch(limit):
        return None
    return NumberRange(parse_number(low), parse_number(high), text[0] == "[", text[-1] == "]", int(limit or 0))


def _is_bound(text: str) -> bool:
    return not text or parse_number(text) is not None


Compared = Number | NumberRange | str
"""The value that a field is compared with: a number, a range of them, or any other string."""
Bounds = tuple[Number | None, Number | None, bool, bool]

_COMPARISONS: Final[Mapping[str, Callable[[Number], Bounds]]] = {
    "=": lambda n: (n, n, True, True),
    "<": lambda n: (None, n, True, False),
    "<=": lambda n: (None, n, True, True),
    ">": lambda n: (n, None, False, True),
    ">=": lambda n: (n, None, True, True),
}
_TURNED: Final = {"=": "=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}
_AFTER_QUOTED: Final = ("contains", *COMPARISONS)
"""The operators before which the name of a field may be in quotes; before signs it may not."""


class ConditionParser(ArgumentReader):
    """Reads conditions from a stream of YQL tokens; notes which fields and parameters they name."""

    def expression(self, scope: AnnotationScope = NO_SCOPE) -> Item:
        """A whole condition, up to what cannot belong to it."""
        tokens = self.tokens
        tokens.enter()
        scope = self._read_annotated(scope)
        item = self._conjunction(scope)
        if tokens.current.text.lower() == "or":
            alternatives = [item]
            while accept_keyword(tokens, "or"):
                alternatives.append(self._conjunction(scope.below()))
            item = OrItem(tuple(alternatives))
        tokens.leave()
        return item

    def leaf(self, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item | None:
        """An operator such as `phrase(…)`, if one stands here; `outer` is in force for its words."""
        tokens = self.tokens
        name = tokens.current
        if name.kind != "identifier" or name.text not in LEAVES or tokens.peek().text != "(":
            return None
        tokens.next()
        tokens.next()
        item = LEAVES[name.text](self, field, scope, outer)
        tokens.expect(")")
        return item

    def word(self, field: str, text: str, scope: AnnotationScope) -> TermItem:
        """The term for a text in a field: a word, or with an annotation the start, the end or a part of one."""
        return word_of(field, text, scope)

    def refuse_call(self) -> None:
        """Fails if an operator stands here that is unknown, or out of place."""
        name = self.tokens.current
        if name.kind != "identifier" or self.tokens.peek().text != "(":
            return
        if name.text in CONDITIONS or name.text in LEAVES:
            self.tokens.fail(f"operator '{name.text}' cannot stand here", name)
        known = sorted({*CONDITIONS, *LEAVES})
        self.tokens.fail(f"operator '{name.text}' is not known here; known are {', '.join(known)}", name)

    def _read_annotated(self, scope: AnnotationScope) -> AnnotationScope:
        return self.annotated(scope) if self.tokens.current.text in ("{", "[") else scope

    def _conjunction(self, scope: AnnotationScope) -> Item:
        tokens = self.tokens
        first_negated = tokens.current.text == "!" and tokens.next()
        first = self._condition(scope)
        if not first_negated and tokens.current.text.lower() != "and":
            return first
        positives = [] if first_negated else [first]
        negatives = [first] if first_negated else []
        while accept_keyword(tokens, "and"):
            side = negatives if tokens.accept("!") else positives
            side.append(self._condition(scope.below()))
        return _conjoin(positives, negatives)

    def _condition(self, scope: AnnotationScope) -> Item:
        tokens = self.tokens
        scope = self._read_annotated(scope)
        token = tokens.current
        if token.text == "(":
            tokens.next()
            item = self.expression(scope)
            tokens.expect(")")
            return item
        if token.kind == "string" and tokens.peek().text.lower() in _AFTER_QUOTED:
            return self._on_field(scope)
        if token.kind != "identifier":
            return self._text_of_element(scope) or self._turned_comparison(scope)
        if tokens.peek().text == "(":
            return self._call(scope)
        if token.text.lower() in ("true", "false"):
            return self._truth(scope)
        return self._on_field(scope)

    def _call(self, scope: AnnotationScope) -> Item:
        operator = CONDITIONS.get(self.tokens.current.text)
        if operator is None:
            item = self.leaf("", scope, scope) if self.element else None
            if item is None:
                self.refuse_call()
                raise AssertionError("refuse_call fails")
            return item
        self.tokens.next()
        self.tokens.expect("(")
        item = operator(self, scope)
        self.tokens.expect(")")
        return item

    def _text_of_element(self, scope: AnnotationScope) -> Item | None:
        """A text that an element is, or has in it; none where a comparison starts."""
        tokens = self.tokens
        if not self.element:
            return None
        token = tokens.current
        if token.kind == "string" and tokens.peek().text in _COMPARISONS:
            return None
        if token.kind in NUMBERS and tokens.peek().text not in _COMPARISONS:
            return self.word("", tokens.next().text, scope)
        if token.kind == "string" or token.text == "@":
            return self.word("", self.copied_text("what the element is"), scope)
        return None

    def _truth(self, scope: AnnotationScope) -> Item:
        token = self.tokens.next()
        truth = token.text.lower() == "true"
        if self.tokens.accept("="):
            return self._compare(self.field(), "=", truth, scope, token)
        return TrueItem() if truth else FalseItem()

    def _on_field(self, scope: AnnotationScope) -> Item:
        tokens = self.tokens
        field = self.field_or_quoted()
        operator = tokens.current.text
        if operator in _COMPARISONS:
            tokens.next()
            start = tokens.current
            value, scope = self._number(scope)
            return self._compare(field, operator, value, scope, start)
        name = operator.lower()
        if name == "contains":
            tokens.next()
            return self._read_contained(field, scope, scope)
        if (read := COMPARISONS.get(name)) is not None:
            tokens.next()
            return read(self, field, scope)
        if operator == "[":
            return self._element_at(field, scope)
        if operator == "{":
            return self._value_of_key(field, scope)
        if operator == "!=":
            tokens.fail("'!=' is not an operator of YQL here: write !(field = value)")
        tokens.fail(f"expected contains, matches, in, =, <, <=, > or >=, found {tokens.found()}")

    def _read_contained(self, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
        """Reads the operand to the right of `contains`. `outer` are the annotations of the whole condition."""
        tokens = self.tokens
        token = tokens.current
        if token.kind == "string":
            return self.word(field, self.copied_text("what the field contains"), scope)
        if token.text in ("(", "{", "["):
            tokens.enter()
            scope = self._read_annotated(scope)
            if tokens.accept("("):
                item = self._read_contained(field, scope, outer)
                tokens.expect(")")
            else:
                item = self._read_contained(field, scope, outer)
            tokens.leave()
            return item
        leaf = self.leaf(field, scope, outer)
        if leaf is not None:
            return leaf
        self.refuse_call()
        return self.word(field, self.copied_text("what the field contains"), scope)

    def _element_at(self, field: str, scope: AnnotationScope) -> Item:
        """`field[2] = 42`: the element with that number, from 0."""
        tokens = self.tokens
        tokens.expect("[")
        number = element_number(self.value(), tokens)
        tokens.expect("]")
        tokens.expect("=")
        value, scope = self._literal(scope)
        return SameElementItem(field, (self.word("", value, scope),), (number,))

    def _value_of_key(self, field: str, scope: AnnotationScope) -> Item:
        """`field{"key"} contains "text"` and `field{"key"} = 5`: the entry of a map with that key."""
        tokens = self.tokens
        tokens.expect("{")
        start = tokens.current
        key = self.value()
        tokens.expect("}")
        with self.inside(field):
            self.note_field("key", start)
            self.note_field("value", start)
        if accept_keyword(tokens, "contains"):
            entry = self._read_contained("value", scope, scope)
        else:
            tokens.expect("=", "contains")
            text, scope = self._literal(scope)
            entry = self.word("value", text, scope)
        return SameElementItem(field, (WordItem("key", _literal_text(key)), entry))

    def _literal(self, scope: AnnotationScope) -> tuple[str, AnnotationScope]:
        """The text of a literal, which may be annotated."""
        tokens = self.tokens
        if tokens.accept("("):
            with tokens.nested():
                text, scope = self._literal(self._read_annotated(scope))
            tokens.expect(")")
            return text, scope
        scope = self._read_annotated(scope)
        start = tokens.current
        value = self.value()
        if isinstance(value, list | dict):
            tokens.fail("expected a string, a number, true or false", start)
        return _literal_text(value), scope

    def _compare(self, field: str, operator: str, value: Compared, scope: AnnotationScope, start: Token) -> TermItem:
        """A comparison with a number; `= true` is with that word, as in Vespa (BoolItem), and there is no `< true`.
        A text may also hold the whole range; any other is compared by the order of strings."""
        if isinstance(value, str):
            if operator == "=":
                self.tokens.fail(f"'{value}' is not a number", start)
            is_low, is_inclusive = operator[0] == ">", operator[1:] == "="
            bounds = (value, None) if is_low else (None, value)
            return text_range(field, bounds, (is_inclusive or not is_low, is_inclusive or is_low), scope)
        if isinstance(value, NumberRange):
            if operator != "=":
                self.tokens.fail("a range of numbers can only be compared by '='", start)
            return RangeItem(field, *value[:4], value.hit_limit or scope.hit_limit(), annotations=scope.of_term())
        if isinstance(value, bool):
            if operator != "=":
                self.tokens.fail(f"'{_literal_text(value)}' is not a number", start)
            return WordItem(field, _literal_text(value), annotations=scope.of_term())
        low, high, low_inclusive, high_inclusive = _COMPARISONS[operator](value)
        return RangeItem(
            field, low, high, low_inclusive, high_inclusive, scope.hit_limit(), annotations=scope.of_term()
        )

    def _turned_comparison(self, scope: AnnotationScope) -> Item:
        """`5 < field`."""
        tokens = self.tokens
        if not tokens.at_kind(*NUMBERS, "string") and not tokens.at("@", "-"):
            tokens.fail(f"expected a condition, found {tokens.found()}")
        start = tokens.current
        value, scope = self._number(scope)
        operator = tokens.expect(*_COMPARISONS)
        if isinstance(value, str) and operator.text == "=":
            tokens.fail(f"'{value}' is not a number", start)
        return self._compare(self.field(), _TURNED[operator.text], value, scope, start)

    def _number(self, scope: AnnotationScope) -> tuple[Compared, AnnotationScope]:
        """A number, true or false, or a string or parameter, which may hold one or a range; and its scope."""
        tokens = self.tokens
        token = tokens.current
        if token.kind in NUMBERS:
            slot = self._slots.get(token.start)
            number = number_value(tokens, tokens.next())
            return number if slot is None else cast(Number, slot), scope
        if tokens.accept("("):
            with tokens.nested():
                value, scope = self._number(self._read_annotated(scope))
            tokens.expect(")")
            return value, scope
        scope = self._read_annotated(scope)
        sign = "-" if tokens.accept("-") else ""
        token = tokens.current
        if tokens.accept_kind(*NUMBERS):
            number = number_value(tokens, token)
            return -number if sign else number, scope
        if not sign and accept_keyword(tokens, "true", "false"):
            return token.text.lower() == "true", scope
        if token.kind != "string" and token.text != "@":
            tokens.fail(f"expected a number, found {tokens.found()}")
        text = sign + self.text("a number")
        if text in ("true", "false"):
            return text == "true", scope
        value = _compared(text)
        if sign and isinstance(value, str):
            tokens.fail(f"'{text}' is not a number", token)
        return value, scope


def _compared(text: str) -> Compared:
    """Read the number or the range in a text; any other text stays one."""
    number = parse_number(text)
    value = parse_range(text) if number is None else number
    return text if value is None else value


def _literal_text(value: Value) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)


def _conjoin(positives: list[Item], negatives: list[Item]) -> Item:
    if not positives:
        wanted: Item = TrueItem()
    elif len(positives) == 1:
        wanted = positives[0]
    else:
        wanted = AndItem(tuple(positives))
    return NotItem((wanted, *negatives)) if negatives else wanted
