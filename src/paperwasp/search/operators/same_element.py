"""sameElement: documents with one element of a field in which all conditions hold.

The conditions below are planned as if they stood alone, on the parts of the field (`persons.name`, `scores.key`) or,
where they name none, on the field itself. What each of them matches is then asked element by element, of the documents
that all of them could match: as lists of elements, which `and`, `or` and `not` join in the kernel
`core/attributes/elements.cpp`. So the cost is that of the elements of candidates that conditions match.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#sameelement
Differs: `not`, `rank` and every kind of term may be used on fields of all types, in Vespa some only on indexed strings.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property, reduce
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.document.types import PRIMITIVES, ArrayType, MapType, part_of_element
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.boolean import AndItem, AndOperator, FalseItem, FalseOperator, TrueOperator, has_false
from paperwasp.search.operators.composed import element_keys
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.item import Item, TermItem, entry_term, plan
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, call, leaf
from paperwasp.search.operators.operator import BOTH, EITHER, FIRST_ONLY, Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import PositionalMatch, counts_of
from paperwasp.search.operators.text import QueryPart, Target
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, AnnotationScope, Value
from paperwasp.text.parsing.tokens import TokenStream

_BLOCK_LIDS: Final = 65_536
"""Documents whose elements are looked at together."""


class SameElementMatch(FieldMatch):
    """The elements in which an operator matches, as a term of the field. `only`: numbers of the ones that count."""

    def __init__(self, space: SearchSpace, field: str, condition: Operator, only: Sequence[int]) -> None:
        self.field = field
        self._space = space
        self._condition = condition
        self._only = np.array(sorted(set(only)), np.int64)

    @cached_property
    def _lids(self) -> Lids:
        """The live documents that match, rising."""
        space = self._space
        lids = _core.bitmap_lids(candidates(self._condition, space.accept) & space.accept, space.limit)
        found = [np.zeros(0, np.uint32)]
        for start in range(0, len(lids), _BLOCK_LIDS):
            space.check_time()
            block = lids[start : start + _BLOCK_LIDS]
            found.append(block[counts_of(self.elements(block)) > 0])
        return np.concatenate(found)

    def add_to(self, bitmap: Bitmap) -> None:
        np.bitwise_or.at(bitmap, self._lids >> 6, np.uint64(1) << (self._lids & 63).astype(np.uint64))

    def frequency(self) -> int:
        return len(self._lids)

    @property
    def is_counted(self) -> bool:
        """Vespa sets no document frequency (blueprintbuilder.cpp, `buildSameElement`)."""
        return False

    def estimate(self) -> int:
        return self._condition.estimate()

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return (counts_of(self.elements(lids)) > 0).astype(np.int32)

    def elements(self, lids: Lids) -> Occurrences:
        offsets, numbers = _Elements(lids, self._condition).all()
        if not len(self._only):
            return offsets, numbers
        kept = np.isin(numbers, self._only)
        return np.concatenate([[0], np.cumsum(kept)]).astype(np.uint32)[offsets], numbers[kept]


class _Elements:
    """The elements of some documents in which a condition holds."""

    def __init__(self, lids: Lids, condition: Operator) -> None:
        self._lids = lids
        self._condition = condition
        self._found: dict[Operator, Occurrences] = {}
        """The occurrences of terms that were asked for already."""

    def all(self) -> Occurrences:
        return self._of(self._condition)

    def _of(self, condition: Operator) -> Occurrences:
        how = condition.element_join
        if how is not None:
            return _join(how, map(self._of, condition.order()))
        return self._every if isinstance(condition, TrueOperator) else self._of_term(condition)

    def _of_term(self, condition: Operator) -> Occurrences:
        """Where an operator matches that is not made of others: in some elements of each of its fields."""
        found = self._found.get(condition)
        if found is None:
            matches = condition.matches if isinstance(condition, TermOperator) else ()
            nothing = np.zeros(len(self._lids) + 1, np.uint32), np.zeros(0, np.uint32)
            each = (match.elements(self._lids) for match in matches)
            found = self._found[condition] = _join(EITHER, each) if matches else nothing
        return found

    @cached_property
    def _every(self) -> Occurrences:
        """As many elements of each document as there are to the last one that any term matches."""
        counts = np.zeros(len(self._lids), np.int64)
        for term in _terms(self._condition):
            offsets, numbers = self._of_term(term)
            has = offsets[1:] > offsets[:-1]
            counts[has] = np.maximum(counts[has], numbers[offsets[1:][has] - 1].astype(np.int64) + 1)
        offsets = np.concatenate([[0], np.cumsum(counts)])
        numbers = np.arange(offsets[-1]) - np.repeat(offsets[:-1], counts)
        return offsets.astype(np.uint32), numbers.astype(np.uint32)


def _join(how: int, lists: Iterable[Occurrences]) -> Occurrences:
    return reduce(lambda found, more: _core.join_elements(how, *found, *more), lists)


def _terms(condition: Operator) -> Iterator[Operator]:
    if condition.element_join is None:
        yield condition
        return
    for child in condition.children_of():
        yield from _terms(child)


def candidates(condition: Operator, within: Bitmap) -> Bitmap:
    """The documents in which some element may match: what a negation takes away is known of single elements only."""
    how = condition.element_join
    if how is None:
        return condition.bitmap(within)
    first, *others = condition.order()
    found = candidates(first, within)
    for child in () if how == FIRST_ONLY else others:
        more = candidates(child, within)
        found = found & more if how == BOTH else found | more
    return found


class SameElementOperator(TermOperator):
    """One term for ranking, as in Vespa; below it are the terms of indexed fields, where the whole matches.

    Where there are terms on the field itself, it is they that ranking sees in it, and not the operator (Vespa:
    sameelementmodifier.cpp).
    """

    def __init__(self, space: SearchSpace, match: SameElementMatch, condition: Operator) -> None:
        super().__init__(space, [match], DEFAULT_ANNOTATIONS)
        self._match = match
        self._condition = condition

    def children_of(self) -> tuple[Operator, ...]:
        return (self._condition,)

    def terms(self) -> Iterator[TermOperator]:
        below = tuple(self._terms_below())
        if any(match.field == self._match.field for term in below for match in term.matches):
            yield TermOperator(self._space, [_UnseenMatch(self._match.field)], self.annotations)
        else:
            yield self
        yield from below

    def _terms_below(self) -> Iterator[TermOperator]:
        for term in self._condition.terms():
            found = [match for match in term.matches if match.is_positional]
            if found:
                matches = [_WithinMatch(self._space, match, self._match) for match in found]
                yield TermOperator(self._space, matches, term.annotations, term.length)


class _UnseenMatch(FieldMatch):
    """A term whose matches ranking does not see."""

    def __init__(self, field: str) -> None:
        self.field = field

    def add_to(self, bitmap: Bitmap) -> None:
        """Sets no bit."""

    def frequency(self) -> int:
        return 0

    @property
    def is_counted(self) -> bool:
        return False

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return np.zeros(len(lids), np.int32)


class _WithinMatch(PositionalMatch):
    """A term below sameElement, as far as it stands in an element where the whole matches."""

    def __init__(self, space: SearchSpace, match: FieldMatch, whole: SameElementMatch) -> None:
        super().__init__(space, match.field)
        self._match = match
        self._whole = whole

    def add_to(self, bitmap: Bitmap) -> None:
        own, whole = np.zeros_like(bitmap), np.zeros_like(bitmap)
        self._match.add_to(own)
        self._whole.add_to(whole)
        bitmap |= own & whole

    def frequency(self) -> int:
        return self._match.frequency()

    def document_frequencies(self) -> tuple[int, ...]:
        return self._match.document_frequencies()

    def positions(self, lids: Lids) -> Occurrences:
        offsets, positions = self._match.positions(lids)
        found = self._space.index.locate(self.number, lids, offsets, positions).elements
        kept = np.isin(element_keys(offsets, found), element_keys(*self._whole.elements(lids)))
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.uint32)
        return before[offsets], positions[kept]


class SameElementItem(Item, frozen=True):
    """One element of the field `index` in which all children match.

    The index of a child is below that field (`name` for `persons.name`, `key`, `value`); empty: the element itself.
    """

    is_canonical = False

    index: str
    children: tuple[Item, ...]
    elements: tuple[int, ...] = ()
    """Only in elements with these numbers, from 0; empty: in any."""

    def children_of(self) -> tuple[Item, ...]:
        return self.children

    def field_of(self) -> str:
        return self.index

    def contained(self) -> str:
        extra = {"elementFilter": [*self.elements]} if self.elements else {}
        return annotated(call("sameElement", [child.to_yql() for child in self.children]), extra=extra)

    def canonical(self) -> Item:
        """An `and` among the conditions is dissolved: all conditions hold for the element anyway."""
        children: list[Item] = []
        for child in self.canonical_children():
            children += child.children_of() if isinstance(child, AndItem) else (child,)
        return FalseItem() if has_false(children) else self.over(tuple(children))

    def with_indexes(self, rename: Callable[[str], str]) -> Item:
        start = f"{self.index}."
        below = tuple(child.with_indexes(lambda name: rename(start + name)[len(start) :]) for child in self.children)
        return replace(self, index=rename(self.index), children=below)

    def literal_words(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def plan(self, space: SearchSpace) -> Operator:
        field = space.schema.field_named(self.index)
        if field is None or not self.children:
            return FalseOperator(space)
        for child in self.children:
            _check(child, field)
        conditions = [plan(_below(child, field, space), space) for child in self.children]
        whole = conditions[0] if len(conditions) == 1 else AndOperator(space, tuple(conditions))
        return SameElementOperator(space, SameElementMatch(space, field.name, whole, self.elements), whole)

    def weak_weight(self) -> int:
        return DEFAULT_ANNOTATIONS.weight

    def shown(self, target: Target) -> Iterator[QueryPart]:
        """Nothing, as in Vespa: see juniper_query_adapter.cpp."""
        return iter(())


def _check(item: Item, field: Field) -> None:
    """Raises InvalidQuery for what cannot say in which elements it matches."""
    for below in item.walk():
        if name := below.without_elements:
            instead = ": label the sameElement itself" if name == "labeled" else ""
            raise InvalidQuery(f"{name} cannot be used within sameElement on '{field.name}'{instead}")


def _below(item: Item, field: Field, space: SearchSpace) -> Item:
    """The item with the whole names of the parts that it asks about."""
    if any(isinstance(below, SameElementItem) for below in item.walk()):
        raise InvalidQuery(f"sameElement in '{field.name}' cannot be used within another sameElement")
    return item.with_indexes(lambda index: _name(index, field, space))


def _name(index: str, field: Field, space: SearchSpace) -> str:
    """The name of a part of the field. Raises InvalidQuery if it is not searched."""
    name = f"{field.name}.{index}" if index else field.name
    part = space.schema.field_named(name) if index else field
    if part is None:
        raise InvalidQuery(f"Field '{field.name}' of type '{field.type}' has no part '{index}'")
    if part.attribute is None and part.index is None:
        how = "its struct-field must be an attribute" if index else "name the part of it that is to be searched"
        raise InvalidQuery(f"Field '{name}' of schema '{space.schema.name}' is not searched: {how}")
    is_multiple = isinstance(field.type, ArrayType | MapType) and index
    if is_multiple and part_of_element(field.type, index) not in PRIMITIVES.values():
        raise InvalidQuery(f"Field '{name}' has several values in one element: sameElement cannot be used on it")
    return name


@leaf("sameElement", Argument.CONDITION)
def read_same_element(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`sameElement(name contains "x", year < 1940)`, or of texts `sameElement("a" and !"b")`.

    `elementFilter` says in which elements alone, by their numbers.
    """
    given = scope.values.get("elementFilter", [])
    numbers = tuple(element_number(value, parser.tokens) for value in (given if isinstance(given, list) else [given]))
    with parser.inside(field):
        children = parser.arguments(outer)
    return SameElementItem(field, children, numbers)


def element_number(value: Value, tokens: TokenStream) -> int:
    """The number of an element. Errors: LanguageError if it is none."""
    if type(value) is not int or not 0 <= value < 2**31:
        tokens.fail(f"the number of an element must be an integer from 0 to {2**31 - 1}, not {value!r}")
    return value


# Indexes that name one entry of a map by its key: `roles{ann}.name`, `notes{"a b"}`. Only streaming search has them.
#
# Vespa: FieldSearchSpecMap::stripNonFields in streamingvisitors


_ENTRY: Final = re.compile(r'([^{}]+)\{(?:([a-zA-Z0-9]+)|"([^"]*)")\}((?:\.[^{}]+)?)')


@entry_term
def within_entry(item: TermItem) -> Item:
    """The item, whose index has a brace, as a term of the entry that it names; as it is, where it names none."""
    found = _ENTRY.fullmatch(item.index)
    if found is None:
        return item
    field, plain, quoted, path = found.groups()
    key = quoted if plain is None else plain
    return SameElementItem(field, (WordItem("key", key), replace(item, index=f"value{path}")))
