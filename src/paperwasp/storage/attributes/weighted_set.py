"""Weighted sets by lid: rows of keys, and beside each key its weight. An empty set is the same as unset.

Terms and ranges match any key, as in Vespa.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.document.types import NumericType
from paperwasp.storage.attributes.array import ArrayColumn, ArrayView, lengths_of
from paperwasp.storage.attributes.column import Lids
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.rows import RowStore, places_of


class WeightedSetView(ArrayView):
    """Keys as an array's elements, with their weights."""

    __slots__ = ()

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

    def weights(self, lids: Lids, key: Value) -> NDArray[np.float64]:
        places, lengths = places_of(self.rows[lids])
        wanted = self.dictionary.find(key) if self.dictionary is not None else key
        weights = np.full(len(lids), np.nan)
        if wanted is None:
            return weights
        found = np.flatnonzero(self.values[places] == wanted)
        weights[np.repeat(np.arange(len(lids)), lengths)[found]] = self.key_weights[places[found]]
        return weights

    def _value(self, start: int, end: int) -> dict[Value, int]:
        return dict(zip(self._decode(self.values[start:end]), self.key_weights[start:end].tolist(), strict=True))


class WeightedSetColumn(ArrayColumn):
    """The writer's side of weighted sets. `key_type` None: strings."""

    _OTHERS = ("weights",)

    def __init__(self, key_type: NumericType | None, *, cased: bool = False, fast_search: bool = False) -> None:
        super().__init__(key_type, cased=cased, fast_search=fast_search)
        self._store = RowStore(GrowableArray(self._dtype), GrowableArray(np.int32))

    def snapshot(self) -> WeightedSetView:
        rows, (keys, weights) = self._store.snapshot()
        return WeightedSetView(self._type, rows, keys, self._dictionary, weights, self._posting_of_rows())

    def _encode(self, values: Sequence[Value | None]) -> tuple[NDArray[Any], ...]:
        sets: list[dict[Value, int]] = [value or {} for value in values]
        weights = np.array(list(chain.from_iterable(each.values() for each in sets)), np.int32)
        return lengths_of(sets), self._elements(list(chain.from_iterable(sets))), weights
