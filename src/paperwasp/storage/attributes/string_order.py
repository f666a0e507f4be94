"""The order of a dictionary's strings in a collation, kept from query to query while strings are added.

Strings with one key are one group, and have one rank. A key is computed once for each string that is added and a few
times for those that it is compared with: keys are not kept, they are as large as the strings. Only where a query's
time is over before it has them all, they are, for the next one to go on from there.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import OutOfTime, check_time
from paperwasp.storage.attributes.dictionary import StringDictionary
from paperwasp.text.linguistics.collation import Collation

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
    """The order of the strings with codes below `length`. Never changes: `extend` gives another."""

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
