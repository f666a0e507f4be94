"""Makes numbers by which a level of `order by` sorts the values of an attribute.

Inside a view a level is a number a row (`order_keys`): the row with the lower number comes first. For a hit that leaves
the node it is a key that compares with those of other views, other types and other nodes (`portable_key`).

Vespa: https://docs.vespa.ai/en/reference/querying/sorting-language.html
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import singledispatch
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core.clock import OutOfTime, check_time
from paperwasp.document.operations import Value
from paperwasp.document.types import BOOL, NumericType
from paperwasp.errors import InvalidQuery
from paperwasp.storage.attributes.array import ArrayView
from paperwasp.storage.attributes.column import ColumnView, Lids
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.numeric import NumericView, number_in
from paperwasp.storage.attributes.raw import RawView
from paperwasp.storage.attributes.rows import places_of
from paperwasp.storage.attributes.string import StringView
from paperwasp.text.linguistics.collation import LOWERCASE, Collation

OrderKeys = NDArray[np.int64]
PortableKey = tuple[int, int, Any]
"""(0, 1 or 2: before all values, a value, after all; 0 for numbers, 1 for text; the value, less if it is earlier)."""

MISSING_POLICIES: Final = ("first", "last", "as")
_FIRST: Final = np.iinfo(np.int64).min
_LAST: Final = np.iinfo(np.int64).max
_SIGNS: Final = np.int64(_LAST)


class SortOrder(Struct, frozen=True):
    """The order of one level. `missing`: `first`, `last`, `as`, or empty: before all values if values rise and there is
    one a document, else after them."""

    descending: bool = False
    collation: Collation = LOWERCASE
    missing: str = ""
    missing_value: str = ""
    """With `as`: the text of the value that a document without one stands for."""

    def unset_is_first(self, *, is_array: bool) -> bool:
        return self.missing == "first" or (not self.missing and not self.descending and not is_array)


def order_keys(view: ColumnView, lids: Lids, order: SortOrder) -> OrderKeys:
    """One number a row, lower for what comes first.

    Of several values the least counts in ascending order, and the greatest in descending. Errors: InvalidQuery for
    values that have no order, and where `missing_value` is none of the attribute's.
    """
    keys, unset = _keys(view, lids, order)
    if order.descending:
        keys = ~keys
    if unset is None:
        return keys
    if order.missing == "as":
        stands_for = _key_of(view, order.missing_value, order)
        keys[unset] = ~stands_for if order.descending else stands_for
        return keys
    place = _FIRST if order.unset_is_first(is_array=view.is_array) else _LAST
    if (keys[~unset] == place).any():  # the last number of a long: ranks leave room beyond it
        keys[~unset] = np.unique(keys[~unset], return_inverse=True)[1]
    keys[unset] = place
    return keys


def portable_key(view: ColumnView | None, value: Value | None, order: SortOrder) -> PortableKey:
    """The key of one row, from what `ColumnView.gather` gives of it. No view: its type has no such attribute."""
    is_array = view is not None and view.is_array
    values = _set_values(value)
    if not values:
        if order.missing != "as":
            return (0 if order.unset_is_first(is_array=is_array) else 2), 0, 0
        values = [order.missing_value if view is None or view.is_string else _number(order.missing_value, view)]
    texts = [value for value in values if isinstance(value, str | bytes)]
    if not texts:
        number = max(values) if order.descending else min(values)
        return 1, 0, -number if order.descending else number
    keys = [value if isinstance(value, bytes) else order.collation.key_of(value) for value in texts]
    return 1, 1, _falling(max(keys)) if order.descending else min(keys)


def _set_values(value: Value | None) -> list[Any]:
    if isinstance(value, list | dict):
        return [element for element in value if element is not None and element == element]
    return [] if value is None or value == "" or value != value else [value]


_COMPLEMENT: Final = bytes(range(255, -1, -1))


def _falling(key: bytes) -> bytes:
    """Bytes that compare the other way round. What ends first comes last, so that the end is the greatest byte."""
    return key.replace(b"\0", b"\0\1").translate(_COMPLEMENT) + b"\xff\xff"


# The keys of rows, rising, and which of them have no value


_Keys = tuple[OrderKeys, NDArray[np.bool_] | None]


@singledispatch
def _keys(view: ColumnView, lids: Lids, order: SortOrder) -> _Keys:
    raise InvalidQuery("An attribute of this type is not sorted by")


@_keys.register
def _(view: NumericView, lids: Lids, order: SortOrder) -> _Keys:
    return _number_keys(view.values[lids], view.data_type)


def _number_keys(values: NDArray[Any], kind: NumericType) -> _Keys:
    if kind == BOOL:
        return np.maximum(values, 0).astype(np.int64), None
    if kind.low is None:
        return rising(values), np.isnan(values)
    return rising(values), values == kind.low


def rising(numbers: NDArray[Any]) -> OrderKeys:
    """Integers that compare as the numbers do: the bits of a double are such once those of negative ones are turned."""
    if numbers.dtype.kind != "f":
        return numbers.astype(np.int64)
    bits: OrderKeys = (numbers.astype(np.float64) + 0.0).view(np.int64)
    return bits ^ ((bits >> 63) & _SIGNS)


@_keys.register
def _(view: StringView, lids: Lids, order: SortOrder) -> _Keys:
    return _text_keys(view.values[lids], view.dictionary, order)


def _text_keys(codes: NDArray[np.uint32], dictionary: StringDictionary, order: SortOrder) -> _Keys:
    return order_of(dictionary, order.collation, codes).ranks(codes), codes == 0


@_keys.register
def _(view: ArrayView, lids: Lids, order: SortOrder) -> _Keys:
    places, lengths = places_of(view.rows[lids])
    elements = view.values[places]
    if view.dictionary is not None:
        keys, unset = _text_keys(elements, view.dictionary, order)[0], None  # an empty element is a value
    else:
        assert view.element_type is not None
        keys, unset = _number_keys(elements, view.element_type)
    nothing = _FIRST if order.descending else _LAST
    if unset is not None:
        keys[unset] = nothing
    of_rows = np.full(len(lids), nothing, np.int64)
    has = lengths > 0
    if has.any():
        starts = (np.cumsum(lengths) - lengths)[has]
        of_rows[has] = (np.maximum if order.descending else np.minimum).reduceat(keys, starts)
    return of_rows, of_rows == nothing


@_keys.register
def _(view: ImportedView, lids: Lids, order: SortOrder) -> _Keys:
    parents, is_there = view.parents(lids)
    found, unset = _keys(view.parent, parents[is_there], order)
    keys = np.zeros(len(lids), np.int64)
    keys[is_there] = found
    missing = ~is_there
    if unset is not None:
        missing[is_there] = unset
    return keys, missing


@_keys.register
def _(view: RawView, lids: Lids, order: SortOrder) -> _Keys:
    values = [value or b"" for value in view.gather(lids)]
    ranks = {value: rank for rank, value in enumerate(sorted(set(values)))}
    keys = np.array([ranks[value] for value in values], np.int64)
    return keys, np.array([not value for value in values], np.bool_)


# What a document without a value stands for


@singledispatch
def _key_of(view: ColumnView, text: str, order: SortOrder) -> int:
    raise InvalidQuery("An attribute of this type has no missing value to sort by")


@_key_of.register(NumericView)
@_key_of.register(ArrayView)
def _(view: NumericView | ArrayView, text: str, order: SortOrder) -> int:
    if isinstance(view, ArrayView) and view.dictionary is not None:
        return _text_rank(view.dictionary, text, order)
    return int(rising(np.array([_number(text, view)]))[0])


@_key_of.register
def _(view: StringView, text: str, order: SortOrder) -> int:
    return _text_rank(view.dictionary, text, order)


@_key_of.register
def _(view: ImportedView, text: str, order: SortOrder) -> int:
    return _key_of(view.parent, text, order)


def _text_rank(dictionary: StringDictionary, text: str, order: SortOrder) -> int:
    return order_of(dictionary, order.collation, np.array([len(dictionary) - 1], np.uint32)).rank_of(text)


def _number(text: str, view: ColumnView) -> int | float:
    """Raises InvalidQuery unless the text is a number of the attribute's type."""
    while isinstance(view, ImportedView):
        view = view.parent
    kind = view.data_type if isinstance(view, NumericView) else getattr(view, "element_type", None)
    number = None if kind is None else number_in(text, kind)
    if number is None or (kind is not None and kind.low is not None and number != int(number)):
        raise InvalidQuery(f"Could not sort documents without a value as '{text[:64]}': it is no {kind}")
    return number if kind is None or kind.low is None else int(number)


# The order of a dictionary's strings

Ranks = NDArray[np.int64]
Keys = list[tuple[bytes, int]]
"""Each with the code of its string."""
KEPT_ORDERS: Final = 4
"""The orders that a dictionary keeps: queries choose the collations, and each order takes 8 bytes a string."""
FEW: Final = 16
"""New strings are inserted into a kept order that has at least FEW times as many; otherwise all are sorted again. And
where a query needs fewer than 1 in FEW of the strings to be sorted, only these are sorted."""
BETWEEN_CLOCKS: Final = 4096
"""Keys that are made between two looks at the clock."""


class StringOrder:
    """The order of a dictionary's strings with codes below `length` in a collation. `extend` gives another.

    It is kept from query to query while strings are added. Strings with one key are one group, and have one rank. A key
    is computed once for each string that is added and a few times for those that it is compared with: keys are not
    kept, they are as large as the strings. Only where a query's time is over before it has them all, they are, for the
    next one to go on from there.
    """

    __slots__ = ("_groups", "_order", "_ranks", "collation", "dictionary")

    def __init__(
        self,
        dictionary: StringDictionary,
        collation: Collation,
        groups: NDArray[np.uint32],
        order: NDArray[np.uint32],
    ) -> None:
        """`groups[code]` is the code of the first string with the same key; `order`: those codes, in order."""
        self.dictionary = dictionary
        self.collation = collation
        self._groups = groups
        self._order = order
        ranks = np.zeros(len(groups), np.uint32)
        ranks[order] = np.arange(len(order), dtype=np.uint32)
        self._ranks = ranks[groups]

    @classmethod
    def empty(cls, dictionary: StringDictionary, collation: Collation) -> StringOrder:
        """The order of no strings."""
        return cls(dictionary, collation, np.zeros(0, np.uint32), np.zeros(0, np.uint32))

    @property
    def length(self) -> int:
        return len(self._groups)

    def ranks(self, codes: NDArray[np.uint32]) -> Ranks:
        """Numbers that sort as the strings do: an even number each, so that there is room between them."""
        return self._ranks[codes].astype(np.int64) * 2

    def rank_of(self, text: str) -> int:
        """The rank that a string has or would have."""
        key = self.collation.key_of(text)
        place = self._place(key)
        return 2 * place if self._has_key(place, key) else 2 * place - 1

    def extend(self, length: int) -> StringOrder:
        """The order with the strings that were added since. Errors: OutOfTime."""
        if (length - self.length) * FEW > self.length:
            return _sort_keys(
                self.dictionary, self.collation, _keys_below(self.dictionary, self.collation, length), length
            )
        key_of, strings = self.collation.key_of, self.dictionary
        groups, places, added = np.zeros(length - self.length, np.uint32), [], []
        last_key, group = None, 0
        for key, code in sorted((key_of(strings[code]), code) for code in range(self.length, length)):
            if key != last_key:
                place = self._place(key)
                last_key, group = key, int(self._order[place]) if self._has_key(place, key) else code
                if group == code:
                    places.append(place)
                    added.append(code)
            groups[code - self.length] = group
        order = np.insert(self._order, places, np.array(added, np.uint32))
        return StringOrder(strings, self.collation, np.concatenate([self._groups, groups]), order)

    def _has_key(self, place: int, key: bytes) -> bool:
        return place < len(self._order) and self.collation.key_of(self.dictionary[int(self._order[place])]) == key

    def _place(self, key: bytes) -> int:
        """Where the key stands, or would, in the order."""
        key_of = self.collation.key_of
        low, high = 0, len(self._order)
        while low < high:
            middle = (low + high) // 2
            if key_of(self.dictionary[int(self._order[middle])]) < key:
                low = middle + 1
            else:
                high = middle
        return low


def order_of(dictionary: StringDictionary, collation: Collation, codes: NDArray[np.uint32]) -> StringOrder:
    """An order that has at least the strings of these codes."""
    orders = dictionary.orders
    order = orders.get(collation) or StringOrder.empty(dictionary, collation)
    length = len(dictionary)
    if len(codes) == 0 or int(codes.max()) < order.length:
        return order
    if len(codes) * FEW < length - order.length:
        keys = _keys_of(dictionary, collation, np.unique(codes).tolist())
        return _sort_keys(dictionary, collation, keys, int(codes.max()) + 1)
    order = order.extend(length)
    if collation not in orders and len(orders) >= KEPT_ORDERS:
        orders.pop(next(iter(list(orders))), None)
    orders[collation] = order
    return order


def _keys_of(dictionary: StringDictionary, collation: Collation, codes: Sequence[int]) -> Keys:
    """The sort keys of these strings, with their codes, sorted in pieces. Errors: OutOfTime."""
    key_of = collation.key_of
    keys: Keys = []
    for start in range(0, len(codes), BETWEEN_CLOCKS):
        check_time()
        keys += sorted((key_of(dictionary[code]), code) for code in codes[start : start + BETWEEN_CLOCKS])
    return keys


def _keys_below(dictionary: StringDictionary, collation: Collation, length: int) -> Keys:
    """The sort keys of the strings with codes below `length`. Raises OutOfTime, and keeps what there is."""
    keys: Keys = dictionary.keys_begun.pop(collation, [])
    try:
        while len(keys) < length:
            end = min(len(keys) + BETWEEN_CLOCKS, length)
            keys += _keys_of(dictionary, collation, range(len(keys), end))
    except OutOfTime:
        dictionary.keys_begun.clear()
        dictionary.keys_begun[collation] = keys
        raise
    return keys


def _sort_keys(dictionary: StringDictionary, collation: Collation, keys: Keys, length: int) -> StringOrder:
    """The order of the strings with these keys alone; others below `length` stand anywhere. Sorts the keys."""
    keys.sort()
    groups = np.zeros(length, np.uint32)
    order: list[int] = []
    last_key = None
    for key, code in keys:
        if key != last_key:
            order.append(code)
            last_key = key
        groups[code] = order[-1]
    return StringOrder(dictionary, collation, groups, np.array(order, np.uint32))
