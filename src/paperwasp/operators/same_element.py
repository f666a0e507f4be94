"""sameElement: documents with one element of a field in which all conditions hold.

The conditions below are planned as if they stood alone, on the parts of the field (`persons.name`, `scores.key`) or,
where they name none, on the field itself. What each of them matches is then asked element by element, of the documents
that all of them could match: as flags, one for each element of each of these documents, which `and`, `or` and `not`
combine. So the cost is that of the elements of candidates, whatever the depth of the conditions.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#sameelement
Differs: `not`, `rank` and every kind of term may be used on fields of all types, in Vespa some only on indexed strings.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.operators.and_operator import AndOperator
from paperwasp.operators.base import Bitmap, Operator, SearchSpace, plan, planner
from paperwasp.operators.composed import element_keys
from paperwasp.operators.constants import FalseOperator, TrueOperator
from paperwasp.operators.not_operator import NotOperator
from paperwasp.operators.or_operator import OrOperator
from paperwasp.operators.rank_operator import RankOperator
from paperwasp.operators.term import FieldMatch, Lids, Occurrences, PositionalMatch, TermOperator, counts_of
from paperwasp.query import Item, SameElementItem, TermItem
from paperwasp.query.items import DEFAULT_ANNOTATIONS, EquivItem, NearItem, PhraseItem
from paperwasp.schema.model import Field

Flags = NDArray[np.bool_]
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

    def estimate(self) -> int:
        return self._condition.estimate()

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return (counts_of(self.elements(lids)) > 0).astype(np.int32)

    def elements(self, lids: Lids) -> Occurrences:
        found = _Elements(lids)
        flags = found.flags_of(self._condition)
        if len(self._only):
            flags = flags & np.isin(found.numbers, self._only)
        return found.occurrences(flags)


class _Elements:
    """The elements of some documents: as many of each as there are to the last one that any term matches."""

    def __init__(self, lids: Lids) -> None:
        self._lids = lids
        self._found: dict[Operator, list[Occurrences]] = {}
        self._lengths = np.zeros(len(lids), np.int64)

    def flags_of(self, condition: Operator) -> Flags:
        """In which elements the condition holds. Only for one condition: it decides how many elements there are."""
        self._ask(condition)
        self._starts = np.cumsum(self._lengths) - self._lengths
        return self._flags(condition)

    @property
    def numbers(self) -> NDArray[np.int64]:
        """The number of each element within its document."""
        return np.arange(int(self._lengths.sum())) - np.repeat(self._starts, self._lengths)

    def occurrences(self, flags: Flags) -> Occurrences:
        """The elements with a flag, by document."""
        owners = np.repeat(np.arange(len(self._lids)), self._lengths)[flags]
        counts = np.bincount(owners, minlength=len(self._lids))
        offsets = np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32)
        return offsets, self.numbers[flags].astype(np.uint32)

    def _ask(self, condition: Operator) -> None:
        if _is_composite(condition):
            for child in condition.children_of():
                self._ask(child)
            return
        self._found[condition] = found = [] if condition in self._found else _elements_of(condition, self._lids)
        for offsets, numbers in found:
            has = offsets[1:] > offsets[:-1]
            last = numbers[offsets[1:][has] - 1].astype(np.int64)
            self._lengths[has] = np.maximum(self._lengths[has], last + 1)

    def _flags(self, condition: Operator) -> Flags:
        children = condition.children_of()
        match condition:
            case AndOperator():
                return _all([self._flags(child) for child in children])
            case OrOperator():
                return ~_all([~self._flags(child) for child in children])
            case NotOperator():
                positive, *negatives = children
                return _all([self._flags(positive), *(~self._flags(child) for child in negatives)])
            case RankOperator():
                return self._flags(children[0])
            case TrueOperator():
                return np.ones(int(self._lengths.sum()), np.bool_)
        flags = np.zeros(int(self._lengths.sum()), np.bool_)
        for offsets, numbers in self._found[condition]:
            flags[np.repeat(self._starts, np.diff(offsets)) + numbers] = True
        return flags


def _all(flags: Sequence[Flags]) -> Flags:
    found = flags[0].copy()
    for each in flags[1:]:
        found &= each
    return found


def _is_composite(condition: Operator) -> bool:
    return isinstance(condition, AndOperator | OrOperator | NotOperator | RankOperator)


def _elements_of(condition: Operator, lids: Lids) -> list[Occurrences]:
    """Where an operator matches that is not made of others: in some elements of each of its fields."""
    matches = condition.matches if isinstance(condition, TermOperator) else ()
    return [match.elements(lids) for match in matches]


def candidates(condition: Operator, within: Bitmap) -> Bitmap:
    """The documents in which some element may match: what a negation takes away is known of single elements only."""
    children = condition.children_of()
    if isinstance(condition, NotOperator | RankOperator):
        return candidates(children[0], within)
    if isinstance(condition, AndOperator | OrOperator):
        found = candidates(children[0], within)
        for child in children[1:]:
            more = candidates(child, within)
            found = found & more if isinstance(condition, AndOperator) else found | more
        return found
    return condition.bitmap(within)


class SameElementOperator(TermOperator):
    """One term for ranking, as in Vespa; below it are the terms of indexed fields, where the whole matches."""

    def __init__(self, space: SearchSpace, match: SameElementMatch, condition: Operator) -> None:
        super().__init__(space, [match], DEFAULT_ANNOTATIONS)
        self._match = match
        self._condition = condition

    def children_of(self) -> tuple[Operator, ...]:
        return (self._condition,)

    def terms(self) -> Iterator[TermOperator]:
        yield self
        for term in self._condition.terms():
            found = [match for match in term.matches if isinstance(match, PositionalMatch)]
            if found:
                matches = [_WithinMatch(self._space, match, self._match) for match in found]
                yield TermOperator(self._space, matches, term.annotations, term.length)


class _WithinMatch(PositionalMatch):
    """A term below sameElement, as far as it stands in an element where the whole matches."""

    def __init__(self, space: SearchSpace, match: PositionalMatch, whole: SameElementMatch) -> None:
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

    def positions(self, lids: Lids) -> Occurrences:
        offsets, positions = self._match.positions(lids)
        found = self._space.index.locate(self.number, lids, offsets, positions).elements
        kept = np.isin(element_keys(offsets, found), element_keys(*self._whole.elements(lids)))
        before = np.concatenate([[0], np.cumsum(kept)]).astype(np.uint32)
        return before[offsets], positions[kept]


# Planning


@planner(SameElementItem)
def plan_same_element(item: SameElementItem, space: SearchSpace) -> Operator:
    field = space.schema.field_named(item.index)
    if field is None or not item.children:
        return FalseOperator(space)
    conditions = [plan(_below(child, field, space), space) for child in item.children]
    for condition in conditions:
        _check(condition, field)
    whole = conditions[0] if len(conditions) == 1 else AndOperator(space, tuple(conditions))
    return SameElementOperator(space, SameElementMatch(space, field.name, whole, item.elements), whole)


def _below(item: Item, field: Field, space: SearchSpace) -> Item:
    """The item with the whole names of the parts that it asks about."""

    def all_below(items: Sequence[Item]) -> tuple[Item, ...]:
        return tuple(_below(each, field, space) for each in items)

    match item:
        case PhraseItem():
            words = tuple(part if isinstance(part, str) else _below(part, field, space) for part in item.words)
            return replace(item, index=_name(item.index, field, space), words=words)
        case TermItem():
            return replace(item, index=_name(item.index, field, space))
        case SameElementItem():
            raise InvalidQuery(f"sameElement in '{field.name}' cannot be used within another sameElement")
        case NearItem():
            return replace(item, children=all_below(item.children), exclusions=all_below(item.exclusions))
        case EquivItem():
            return replace(item, children=all_below(item.children))
    children = item.children_of()
    return replace(item, children=all_below(children)) if children else item  # type: ignore[call-arg]


def _name(index: str, field: Field, space: SearchSpace) -> str:
    """The name of a part of the field. Raises InvalidQuery if it is not searched."""
    name = f"{field.name}.{index}" if index else field.name
    part = space.schema.field_named(name) if index else field
    if part is None:
        raise InvalidQuery(f"Field '{field.name}' of type '{field.type}' has no part '{index}'")
    if part.attribute is None and part.index is None:
        how = "its struct-field must be an attribute" if index else "name the part of it that is to be searched"
        raise InvalidQuery(f"Field '{name}' of schema '{space.schema.name}' is not searched: {how}")
    return name


def _check(condition: Operator, field: Field) -> None:
    """Raises InvalidQuery for what cannot say in which elements it matches."""
    if _is_composite(condition):
        for child in condition.children_of():
            _check(child, field)
    elif not isinstance(condition, TermOperator | TrueOperator | FalseOperator):
        raise InvalidQuery(f"{type(condition).__name__} cannot be used within sameElement on '{field.name}'")
