"""Values that terms and ranges are not matched against, and that are no numbers: what a view answers of such a column.

Tensors, raw, positions. Each has (or will have) operators and rank features of its own, which read its view directly.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute.column import Bitmap, ColumnView, Lids, Number
from paperwasp.document.operations import Value
from paperwasp.errors import InvalidQuery


class OpaqueView(ColumnView):
    """A view of values that are only shown."""

    __slots__ = ()

    is_searched = False

    def range_bitmap(
        self,
        low: Number | None,
        high: Number | None,
        low_inclusive: bool = True,
        high_inclusive: bool = True,
        limit: int | None = None,
    ) -> Bitmap:
        raise InvalidQuery("An attribute of this type has no ranges")

    def equal_bitmap(self, values: Value | Sequence[Value], limit: int | None = None) -> Bitmap:
        raise InvalidQuery("An attribute of this type is not matched by terms")

    def estimate_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> int:
        return 0

    def estimate_equal(self, values: Value | Sequence[Value]) -> int:
        return 0

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.full(len(lids), np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.ones(len(lids))

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return np.zeros(len(lids))

    def sort_keys(self, lids: Lids) -> NDArray[Any]:
        raise InvalidQuery("An attribute of this type is not sorted by")
