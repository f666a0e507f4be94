"""A parent's column as its children see it: through the field that refers to the parent.

For a child, the code of its reference (what a string column has by lid) says which document it refers to, and
`targets[code]` is the lid of that document, or NO_LID where there is none. A value is unset where the reference is
unset or leads nowhere. The parent's view may itself be one of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.document.operations import Value
from paperwasp.storage.attributes.column import Bitmap, ColumnView, Elements, Lids, Number, empty_bitmap
from paperwasp.storage.attributes.patterns import TextPattern, no_clock
from paperwasp.storage.attributes.string import StringView
from paperwasp.storage.attributes.wanted import Tokens, Wanted
from paperwasp.storage.documents.gid_map import NO_LID

Targets = NDArray[np.uint32]
"""By code of a reference: a lid, or NO_LID. Codes beyond its end lead nowhere."""


class ImportedView(ColumnView):
    """The rows of the children. All lids of `targets` are below the limit of `parent`."""

    __slots__ = ("limit", "parent", "reference", "targets")

    def __init__(self, reference: StringView, targets: Targets, parent: ColumnView) -> None:
        self.reference = reference
        self.targets = targets
        self.parent = parent
        self.limit = reference.limit

    @property
    def is_array(self) -> bool:  # type: ignore[override]
        return self.parent.is_array

    @property
    def is_string(self) -> bool:  # type: ignore[override]
        return self.parent.is_string

    @property
    def is_searched(self) -> bool:  # type: ignore[override]
        return self.parent.is_searched

    def in_range(
        self, low: Number | None, high: Number | None, low_inclusive: bool = True, high_inclusive: bool = True
    ) -> Wanted:
        return self.parent.in_range(low, high, low_inclusive, high_inclusive)

    def any_of(self, values: Value | Sequence[Value]) -> Wanted:
        return self.parent.any_of(values)

    def like(self, pattern: TextPattern, check_time: Callable[[], None] = no_clock) -> Wanted:
        return self.parent.like(pattern, check_time)

    def bitmap(self, wanted: Wanted, limit: int | None = None) -> Bitmap:
        return self.children_of(self.parent.bitmap(wanted), limit)

    def estimate(self, wanted: Wanted) -> int:
        found = int(np.count_nonzero(self.targets != NO_LID))
        children = self.parent.estimate(wanted) * self.limit  # as many for each parent as they have on average
        return min(self.limit, children // found) if found else 0

    def elements(self, lids: Lids, wanted: Wanted) -> Elements:
        parents, is_there = self.parents(lids)
        found = self.parent.elements(parents[is_there], wanted)
        counts = np.zeros(len(lids), np.int64)
        counts[is_there] = found.counts
        return found._replace(counts=counts)

    def tokens(self, tokens: Sequence[tuple[Value, int]]) -> Tokens:
        return self.parent.tokens(tokens)

    def products(self, lids: Lids, tokens: Tokens) -> NDArray[np.float64]:
        return self._read_parents(lids, lambda parents: self.parent.products(parents, tokens), 0.0)

    def values_at(self, lids: Lids, wanted: Wanted) -> NDArray[Any]:
        parents, is_there = self.parents(lids)
        return self.parent.values_at(parents[is_there], wanted)

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return self._read_parents(lids, self.parent.as_float64, np.nan)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return self._read_parents(lids, self.parent.counts, 0.0 if self.is_array else 1.0)

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        return self._read_parents(lids, lambda parents: self.parent.element(parents, element), 0.0)

    def weights(self, lids: Lids, key: Value) -> NDArray[np.float64]:
        return self._read_parents(lids, lambda parents: self.parent.weights(parents, key), np.nan)

    def gather(self, lids: Lids) -> list[Value | None]:
        parents, is_there = self.parents(lids)
        values = iter(self.parent.gather(parents[is_there]))
        return [next(values) if there else None for there in is_there.tolist()]

    def get(self, lid: int) -> Value | None:
        parents, is_there = self.parents(np.array([lid], np.uint32))
        return self.parent.get(int(parents[0])) if is_there[0] else None

    def get_all(self, lids: Lids) -> list[Value | None]:
        parents, is_there = self.parents(lids)
        values = iter(self.parent.get_all(parents[is_there]))
        return [next(values) if there else None for there in is_there.tolist()]

    def parents(self, lids: Lids) -> tuple[Lids, NDArray[np.bool_]]:
        """The lid of each child's parent, and whether it has one."""
        codes = self.reference.values[lids]
        is_known = codes < len(self.targets)
        parents = np.full(len(codes), NO_LID, np.uint32)
        parents[is_known] = self.targets[codes[is_known]]
        return parents, parents != NO_LID

    @property
    def innermost(self) -> ColumnView:
        """The column that has the values, over as many parents as there are."""
        inner = self.parent
        return inner.innermost if isinstance(inner, ImportedView) else inner

    def rows(self, lids: Lids) -> tuple[Lids, NDArray[np.bool_]]:
        """The row of each child in the innermost column, and whether it has one."""
        parents, is_there = self.parents(lids)
        if isinstance(self.parent, ImportedView):
            parents[is_there], found = self.parent.rows(parents[is_there])
            is_there[is_there] = found
        return parents, is_there

    def over_innermost(self, rows: Bitmap, limit: int | None) -> Bitmap:
        """The children of these rows of the innermost column."""
        parents = self.parent.over_innermost(rows, None) if isinstance(self.parent, ImportedView) else rows
        return self.children_of(parents, limit)

    def _read_parents(self, lids: Lids, of: Any, unset: Number) -> NDArray[Any]:
        """Reads the parents' column by `of`, with `unset` for children without a parent."""
        parents, is_there = self.parents(lids)
        found = of(parents[is_there])
        values = np.full(len(lids), unset, found.dtype)
        values[is_there] = found
        return values

    def children_of(self, parents: Bitmap, limit: int | None) -> Bitmap:
        """The children of these parents: a table by code, then each child's code is looked up in it."""
        limit = self.limit if limit is None else limit
        bitmap = empty_bitmap(limit)
        codes = np.flatnonzero(self.targets != NO_LID)
        if len(codes):
            lids = self.targets[codes]
            table = np.zeros(len(self.targets), np.uint8)
            table[codes] = parents[lids >> 6] >> (lids & 63).astype(np.uint64) & np.uint64(1)
            _core.member_bitmap(self.reference.values[:limit], table, bitmap)
        return bitmap
