"""Values that terms and ranges are not matched against, and that are no numbers: what a view answers of such a column.

Tensors, raw, positions. Each has (or will have) operators and rank features of its own, which read its view directly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.errors import InvalidQuery
from paperwasp.storage.attributes.column import Bitmap, ColumnView, Lids, Number, empty_bitmap
from paperwasp.storage.attributes.patterns import TextPattern, no_clock
from paperwasp.storage.attributes.wanted import Wanted


class OpaqueView(ColumnView):
    """A view of values that are only shown."""

    __slots__ = ()

    is_searched = False

    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        raise InvalidQuery("An attribute of this type has no ranges")

    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        raise InvalidQuery("An attribute of this type is not matched by terms")

    def like(self, pattern: TextPattern, check_time: Callable[[], None] = no_clock) -> Wanted:
        raise InvalidQuery("An attribute of this type is not matched by terms")

    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        return empty_bitmap(self.limit if limit is None else limit)

    def estimate(self, wanted: Wanted) -> int:
        return 0

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))
