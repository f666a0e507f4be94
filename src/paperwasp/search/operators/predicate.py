"""predicate(): documents whose predicate the features of the query fulfil, in one of its subqueries at least.

Vespa: https://docs.vespa.ai/en/schemas/predicate-fields.html
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.document.types import PREDICATE
from paperwasp.errors import IllegalQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.boolean import FalseOperator
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, call, condition, literal, string
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.yql_syntax import AnnotationScope
from paperwasp.storage.attributes.predicate import PredicateView
from paperwasp.text.parsing.tokens import Token

ALL_SUBQUERIES: Final = 2**64 - 1
_BITS: Final = compile_later(r"\[\s*[0-9]{1,2}\s*(?:,\s*[0-9]{1,2}\s*)*\]")
_LEAST, _MOST = -(2**63), 2**63 - 1


class PredicateMatch(FieldMatch):
    """The match of one predicate() in its field."""

    def __init__(self, space: SearchSpace, field: str, column: PredicateView, item: PredicateItem) -> None:
        self.field = field
        self._space = space
        self._column = column
        self._item = item

    @cached_property
    def _results(self) -> NDArray[np.uint64]:
        """The subqueries in which it holds, by code of a predicate; the last is for codes that are newer."""
        return np.append(self._column.evaluate(self._item.attributes, self._item.ranges), np.uint64(0))

    @cached_property
    def _bitmap(self) -> Bitmap:
        bitmap = self._space.empty()
        table = (self._results != 0).astype(np.uint8)
        _core.member_bitmap(self._column.codes[: self._space.limit], table, bitmap)
        return bitmap

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self._bitmap

    def frequency(self) -> int:
        return _core.bitmap_count(self._bitmap, self._space.accept)

    def estimate(self) -> int:
        return self._space.documents

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        matched: NDArray[np.int32] = (self.subqueries(lids) != 0).astype(np.int32)
        return matched

    def subqueries(self, lids: Lids) -> NDArray[np.uint64]:
        """The subqueries that each document matches: a bit for each."""
        codes = np.minimum(self._column.codes[lids], len(self._results) - 1)
        found: NDArray[np.uint64] = self._results[codes]
        return found


class PredicateItem(TermItem, frozen=True):
    """Predicates that the attributes make true: (name, value, subqueries), a bit for each subquery (all: 2**64 - 1)."""

    is_seen_by_rules = False
    without_elements = "predicate"

    attributes: tuple[tuple[str, str, int], ...] = ()
    ranges: tuple[tuple[str, int, int], ...] = ()

    def to_yql(self) -> str:
        arguments = (self.index, _print_features(self.attributes), _print_features(self.ranges))
        return annotated(call("predicate", arguments), self.annotations)

    def plan(self, space: SearchSpace) -> Operator:
        field = space.schema.field_named(self.index)
        if field is None:
            return FalseOperator(space)
        if field.type != PREDICATE:
            raise IllegalQuery(f"Index '{self.index}' is not a predicate attribute.")
        _check_bounds(self, field)
        column = space.columns.get(field.name)
        if not isinstance(column, PredicateView):
            return FalseOperator(space)
        return TermOperator(space, [PredicateMatch(space, field.name, column, self)], self.annotations)


def _check_bounds(item: PredicateItem, field: Field) -> None:
    settings = field.index
    low = _LEAST if settings is None or settings.lower_bound is None else settings.lower_bound
    high = _MOST if settings is None or settings.upper_bound is None else settings.upper_bound
    for name, value, _ in item.ranges:
        if not low <= value <= high:
            raise IllegalQuery(f"{name}={value} outside configured predicate bounds.")


def _print_features(features: tuple[tuple[str, Any, int], ...]) -> str:
    """A map of names and their values, and of maps for some of the subqueries."""
    plain: dict[str, Any] = {}
    for name, value, subqueries in features:
        into = plain if subqueries == ALL_SUBQUERIES else plain.setdefault(hex(subqueries), {})
        into.setdefault(name, []).append(value)
    return _print_map(plain) if plain else "0"


def _print_map(features: Mapping[str, Any]) -> str:
    parts = []
    for name, values in features.items():
        if isinstance(values, dict):
            text = _print_map(values)
        else:
            text = literal(values[0]) if len(values) == 1 else f"[{', '.join(map(literal, values))}]"
        parts.append(f"{string(name)}: {text}")
    return "{" + ", ".join(parts) + "}"


@condition("predicate", Argument.NAME, Argument.LITERAL)
def read_predicate(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`predicate(field, {"gender": "Female"}, {"age": 20L})`; 0 stands for no attributes.

    A key `"0x3"` or `"[0, 1]"` holds a map for those subqueries alone.
    """
    tokens = parser.tokens
    field = parser.field_or_quoted()
    tokens.expect(",")
    start = tokens.current
    attributes = tuple(_read_features(parser, start, parser.value(), str, ALL_SUBQUERIES))
    tokens.expect(",")
    start = tokens.current
    ranges = tuple(_read_features(parser, start, parser.value(), int, ALL_SUBQUERIES))
    return PredicateItem(field, attributes, ranges, annotations=scope.of_term())


def _read_features(
    parser: ArgumentReader, start: Token, given: Any, kind: type, subqueries: int
) -> Iterator[tuple[str, Any, int]]:
    """(name, value, subqueries) for each value in a map; anything else stands for an empty one."""
    if not isinstance(given, dict):
        return
    for name, value in given.items():
        if isinstance(value, dict):
            yield from _read_features(parser, start, value, kind, _read_subqueries(parser, start, name))
            continue
        for one in value if isinstance(value, list) else [value]:
            if type(one) is not kind or (isinstance(one, int) and not -(2**63) <= one < 2**63):
                wanted = "a string" if kind is str else "an integer of 64 bits"
                parser.tokens.fail(f"the value of '{name}' must be {wanted}, not {one!r}", start)
            yield name, one, subqueries


def _read_subqueries(parser: ArgumentReader, start: Token, key: str) -> int:
    """The bits that a key names: `0x` and at most 16 digits, or `[0, 1]`."""
    if re.fullmatch(r"0x[0-9a-fA-F]{1,16}", key):
        return int(key, 16)
    bits = [int(bit) for bit in key[1:-1].split(",")] if _BITS.fullmatch(key) else [64]
    if max(bits) > 63:
        parser.tokens.fail(f"'{key}' does not name subqueries: write '0x3' or '[0, 1]', of 64 at most", start)
    return sum(1 << bit for bit in set(bits))
