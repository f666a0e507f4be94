"""near and onear: terms within a distance of each other in one element of an indexed field.

A window is from a place of one term to the nearest following places of all others; with onear, from a place of the
first term over the next place of each other, in the order of the query. It fits if it is not longer than the distance,
and no excluded term is within the exclusion's distance of it. With an `element-gap` in the rank profile, a window may
reach into the next element, which counts as being that far behind. Ranking sees of each term what stands in a window.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#near
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.base.records import replace
from paperwasp.core import _core
from paperwasp.document.types import ArrayType, WeightedSetType
from paperwasp.errors import InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.boolean import FalseItem, has_false
from paperwasp.search.operators.composed import UnionMatch, blocks_of, documents_with_all
from paperwasp.search.operators.equiv import index_of
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.item import GRAM_COMPOSITES, Annotated, Composite, Item
from paperwasp.search.operators.notation import ArgumentReader, annotated, argument, call, leaf
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import PositionalMatch
from paperwasp.search.operators.text import QueryPart, Target
from paperwasp.search.operators.word import fields_of, term_operator
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, AnnotationScope

DISTANCE: Final = 2
"""Where the query says none."""
_PARTS: Final = ("equiv", "phrase", "alternatives")
"""The operators that may be parts."""
_NO_GAP: Final = -1
_FARTHEST: Final = 0x7FFFFFFF


class Window(Struct, frozen=True):
    """How near is near; positions."""

    distance: int
    exclusion: int
    ordered: bool
    gap: int
    """Between elements; below zero: no window reaches into another."""


class NearMatch(PositionalMatch):
    """Terms near each other in a field; it stands where windows begin."""

    def __init__(
        self,
        space: SearchSpace,
        field: Field,
        terms: Sequence[FieldMatch],
        excluded: Sequence[FieldMatch],
        near: Window,
    ) -> None:
        super().__init__(space, field.name)
        self.terms = tuple(terms)
        self._excluded = (UnionMatch(space, field.name, excluded),) if len(excluded) > 1 else tuple(excluded)
        self._near = near
        self._has_elements = isinstance(field.type, ArrayType | WeightedSetType)
        self._last: tuple[Lids, list[Occurrences], Occurrences] | None = None

    def matching(self, within: Bitmap) -> Lids:
        """The documents of a bitmap that match, rising."""
        lids = documents_with_all(self.terms, within)
        found = [np.zeros(0, np.uint32)]
        lengths = self._space.index.field_lengths(self.number, lids)
        for block in blocks_of(lids, lengths, len(self.terms) + len(self._excluded)):
            self._space.check_time()
            found.append(block[self.occurrences(block) > 0])
        return np.concatenate(found)

    def add_to(self, bitmap: Bitmap) -> None:
        lids = self.matching(self._space.accept)
        np.bitwise_or.at(bitmap, lids >> 6, np.uint64(1) << (lids & 63).astype(np.uint64))

    def frequency(self) -> int:
        return len(self.matching(self._space.accept))

    def document_frequencies(self) -> tuple[int, ...]:
        """Return the document frequency of the rarest term."""
        return (min(max(term.document_frequencies()) for term in self.terms),)

    def estimate(self) -> int:
        return min(term.estimate() for term in self.terms)

    def positions(self, lids: Lids) -> Occurrences:
        return self._windows(lids)[1]

    def of_term(self, number: int, lids: Lids) -> Occurrences:
        """Where one of the terms stands in a window."""
        return self._windows(lids)[0][number]

    def _windows(self, lids: Lids) -> tuple[list[Occurrences], Occurrences]:
        """(the occurrences of each term in windows, the beginnings of windows). The last result is kept: ranking needs
        it for each term of a block."""
        last = self._last
        if last is None or not np.array_equal(last[0], lids):
            found = [match.positions(lids) for match in (*self.terms, *self._excluded)]
            offsets, positions = [offsets for offsets, _ in found], [positions for _, positions in found]
            places = [self._places(lids, *each) for each in found] if self._has_elements else []
            near = self._near
            kept, *starts = _core.near(
                offsets, positions, places, len(self.terms), near.ordered, near.distance, near.exclusion, near.gap
            )
            terms = [_select_marked(*each, marks.view(np.bool_)) for each, marks in zip(found, kept, strict=False)]
            last = self._last = lids, terms, (starts[0], starts[1])  # another thread may have replaced it meanwhile
        return last[1:]

    def _places(
        self, lids: Lids, offsets: NDArray[np.uint32], positions: NDArray[np.uint32]
    ) -> tuple[NDArray[np.uint32], NDArray[np.uint32], NDArray[np.uint32]]:
        found = self._space.index.locate(self.number, lids, offsets, positions)
        return found.elements, found.starts, found.ends


def _select_marked(offsets: NDArray[np.uint32], positions: NDArray[np.uint32], marks: NDArray[np.bool_]) -> Occurrences:
    before = np.concatenate([[0], np.cumsum(marks)]).astype(np.uint32)
    return before[offsets], positions[marks]


class _TermMatch(PositionalMatch):
    """One of the terms, as far as it stands in a window."""

    def __init__(self, space: SearchSpace, near: NearMatch, number: int) -> None:
        super().__init__(space, near.field)
        self._near = near
        self._number = number

    def add_to(self, bitmap: Bitmap) -> None:
        self._near.add_to(bitmap)

    def frequency(self) -> int:
        return self._near.terms[self._number].frequency()

    def document_frequencies(self) -> tuple[int, ...]:
        return self._near.terms[self._number].document_frequencies()

    def positions(self, lids: Lids) -> Occurrences:
        return self._near.of_term(self._number, lids)


class NearOperator(TermOperator):
    """Documents with a window in any of the fields. What ranking sees are the terms."""

    def __init__(self, space: SearchSpace, near: Sequence[NearMatch], children: Sequence[TermOperator]) -> None:
        super().__init__(space, near, DEFAULT_ANNOTATIONS)
        self._near = tuple(near)
        self._children = tuple(children)

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        result = self._space.empty()
        for match in self._near:
            lids = match.matching(self._space.accept if within is None else within & self._space.accept)
            np.bitwise_or.at(result, lids >> 6, np.uint64(1) << (lids & 63).astype(np.uint64))
        return result

    def children_of(self) -> tuple[Operator, ...]:
        return self._children

    def order(self) -> tuple[Operator, ...]:
        return ()

    def terms(self) -> Iterator[TermOperator]:
        for child in self._children:
            yield from child.terms()


class NearItem(Composite, frozen=True):
    """Terms on one index within `distance` positions of each other; `ordered`: in the order of the query.

    None of the `exclusions` may be within `exclusion_distance` of them.
    """

    distance: int = DISTANCE
    ordered: bool = False
    exclusions: tuple[Item, ...] = ()
    exclusion_distance: int = -1
    """-1: half of the distance, rounded up."""

    def children_of(self) -> tuple[Item, ...]:
        return self.children + self.exclusions

    def with_children(self, children: tuple[Item, ...]) -> Item:
        count = len(children) - len(self.exclusions)
        return replace(self, children=children[:count], exclusions=children[count:])

    def excluded(self) -> tuple[Item, ...]:
        return self.exclusions

    def contained(self) -> str:
        parts = [*map(argument, self.children), *(f"!{argument(child)}" for child in self.exclusions)]
        extra = {"distance": self.distance} if self.distance != DISTANCE else {}
        if self.exclusion_distance >= 0:
            extra["exclusionDistance"] = self.exclusion_distance
        return annotated(call("onear" if self.ordered else "near", parts), extra=extra)

    def canonical(self) -> Item:
        """`near` of one word, which nothing has to be near to, is that word."""
        children = tuple(self.canonical_children())
        if has_false(children[: len(self.children)]):
            return FalseItem()
        return children[0] if len(children) == 1 else self.over(children)

    def plan(self, space: SearchSpace) -> Operator:
        what = "onear" if self.ordered else "near"
        if not self.children:
            raise InvalidQuery(f"{what} needs a term that is not excluded")
        index = index_of(self.children_of(), what)
        fields = fields_of(index, space)
        indexed = [field for field in fields if space.has_index(field)]
        if fields and not indexed:
            raise InvalidQuery(f"{what} needs positions, which only indexes have: '{index}' is not an index field")
        found = [match for field in indexed if (match := _near_in(self, field, space)) is not None]
        children = [_child(number, child, found, space) for number, child in enumerate(self.children)]
        return NearOperator(space, found, children)

    def shown(self, target: Target) -> Iterator[QueryPart]:
        for child in self.children:
            yield from child.shown(target)


GRAM_COMPOSITES["near"] = NearItem
GRAM_COMPOSITES["onear"] = lambda grams: NearItem(grams, ordered=True)


def _near_in(item: NearItem, field: Field, space: SearchSpace) -> NearMatch | None:
    terms = [child.match_in(field, space) for child in item.children]
    excluded = [child.match_in(field, space) for child in item.exclusions]
    present = [match for match in terms if match is not None]
    if len(present) < len(terms):  # a term without tokens is near nothing
        return None
    return NearMatch(
        space, field, present, [match for match in excluded if match is not None], _window(item, field, space)
    )


def _window(item: NearItem, field: Field, space: SearchSpace) -> Window:
    gap = space.element_gaps.get(field.name, math.inf)
    distance = min(item.distance, _FARTHEST)
    exclusion = (distance + 1) // 2 if item.exclusion_distance < 0 else min(item.exclusion_distance, _FARTHEST)
    return Window(distance, exclusion, item.ordered, _NO_GAP if math.isinf(gap) else int(gap))


def _child(number: int, item: Item, found: Sequence[NearMatch], space: SearchSpace) -> TermOperator:
    """The term operator by which ranking sees one of the terms."""
    matches: list[FieldMatch] = [_TermMatch(space, near, number) for near in found]
    notes = item.annotations if isinstance(item, Annotated) else DEFAULT_ANNOTATIONS
    return term_operator(space, matches, notes, item.length)


@leaf("near")
def read_near(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """`near("a", "b", !"c")`: words within `distance` positions, and none of the others near them."""
    return _read(parser, field, scope, outer, ordered=False)


@leaf("onear")
def read_onear(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
    """Read `onear`: as `near`, with words in the order of the query."""
    return _read(parser, field, scope, outer, ordered=True)


def _read(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope, *, ordered: bool) -> Item:
    tokens = parser.tokens
    name = "onear" if ordered else "near"
    terms: list[Item] = []
    exclusions: list[Item] = []
    while True:
        start = tokens.current
        if tokens.accept("!"):
            if not terms:
                tokens.fail(f"Must have some positive term before negative terms in {name}", start)
            exclusions.append(parser.part(field, outer, _PARTS))
        elif exclusions:
            tokens.fail(f"Positive terms must come before negative terms in {name}", start)
        else:
            terms.append(parser.part(field, outer, _PARTS))
        if not tokens.accept(","):
            break
    distance, exclusion_distance = scope.count("distance"), scope.count("exclusionDistance")
    return NearItem(
        tuple(terms),
        DISTANCE if distance is None else distance,
        ordered,
        tuple(exclusions),
        -1 if exclusion_distance is None or not exclusions else exclusion_distance,
    )
