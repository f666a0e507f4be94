"""Bytes by lid: rows of bytes (`attributes.rows`). No bytes are the same as unset."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.operations import Value
from paperwasp.storage.attributes.column import Arrays, Frozen, Lids, OpaqueView
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.attributes.rows import RowColumn, Rows, RowStore, split


class RawView(OpaqueView):
    """`rows` as in `attributes.rows`, over `content`."""

    __slots__ = ("content", "limit", "rows")

    def __init__(self, rows: Rows, content: NDArray[np.uint8]) -> None:
        self.rows = rows
        self.content = content
        self.limit = len(rows)

    def gather(self, lids: Lids) -> list[Value | None]:
        starts, lengths = split(self.rows[lids])
        spans = zip(starts.tolist(), lengths.tolist(), strict=True)
        return [self.content[start : start + length].tobytes() if length else None for start, length in spans]


class RawColumn(RowColumn):
    """The writer's side of raw."""

    def __init__(self) -> None:
        super().__init__(RowStore(GrowableArray(np.uint8)))

    def snapshot(self) -> RawView:
        rows, (content,) = self._store.snapshot()
        return RawView(rows, content)

    def freeze(self) -> Frozen:
        rows = self._store.freeze()

        def arrays() -> Arrays:
            lengths, content = rows()
            return {"lengths": lengths, "values": content}

        return arrays

    def load(self, arrays: Arrays) -> None:
        self._store.load(arrays["lengths"], arrays["values"])

    def size_bytes(self) -> int:
        return self._store.size_bytes()

    def _encode(self, values: Sequence[Value | None]) -> tuple[NDArray[Any], ...]:
        rows: list[bytes] = [value or b"" for value in values]
        return np.fromiter(map(len, rows), np.uint64, len(rows)), np.frombuffer(b"".join(rows), np.uint8)
