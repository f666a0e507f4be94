"""From global id to lid, for all live documents: the table of core/documents/gid_map.cpp with room to grow.

Sixteen bytes a slot, between three eighths and three quarters full. Only the writer uses it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core

NO_LID: Final = 0xFFFFFFFF
"""Of a document that there is not."""
GID_BYTES: Final = 12
_FIRST_SLOTS: Final = 1024


class GidMap:
    """gid → lid."""

    def __init__(self) -> None:
        self.count = 0
        """The number of gids."""
        self._make_slots(_FIRST_SLOTS)

    def find(self, gids: bytes) -> NDArray[np.uint32]:
        """The lids of these gids (12 bytes each, one after another); NO_LID where there is none."""
        found = np.empty(len(gids) // GID_BYTES, np.uint32)
        _core.gid_map_find(self._keys, self._lids, np.frombuffer(gids, np.uint8), found)
        return found

    def insert(self, gids: bytes, lids: NDArray[np.uint32]) -> NDArray[np.uint32]:
        """Maps gids to lids, in order; gives the lid each had until then, perhaps of this call, or NO_LID."""
        self._reserve(self.count + len(lids))
        previous = np.empty(len(lids), np.uint32)
        gid_array = np.frombuffer(gids, np.uint8)
        self.count += _core.gid_map_insert(self._keys, self._lids, gid_array, lids, previous)
        return previous

    def remove(self, gids: Sequence[bytes]) -> NDArray[np.uint32]:
        """Forgets gids; gives the lid each had, or NO_LID."""
        previous = np.empty(len(gids), np.uint32)
        joined = np.frombuffer(b"".join(gids), np.uint8)
        self.count -= _core.gid_map_remove(self._keys, self._lids, joined, previous)
        return previous

    def size_bytes(self) -> int:
        return self._keys.nbytes + self._lids.nbytes

    def _make_slots(self, slots: int) -> None:
        self._keys = np.zeros(slots * GID_BYTES, np.uint8)
        self._lids = np.full(slots, NO_LID, np.uint32)

    def _reserve(self, count: int) -> None:
        slots = len(self._lids)
        if count * 4 <= slots * 3:
            return
        while count * 4 > slots * 3:
            slots *= 2
        used = self._lids != NO_LID
        gids, lids = self._keys.reshape(-1, GID_BYTES)[used], self._lids[used]
        self._make_slots(slots)
        _core.gid_map_insert(self._keys, self._lids, gids.reshape(-1), lids, np.empty(len(lids), np.uint32))
