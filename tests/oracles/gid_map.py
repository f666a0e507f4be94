"""The plain twin of core/documents/gid_map.cpp: the same functions over a dict. Its oracle and its documentation."""

from __future__ import annotations

from collections.abc import Sequence

from paperwasp.storage.documents.gid_map import NO_LID


def find(table: dict[bytes, int], gids: Sequence[bytes]) -> list[int]:
    """The lid of each gid, or NO_LID."""
    return [table.get(gid, NO_LID) for gid in gids]


def insert(table: dict[bytes, int], gids: Sequence[bytes], lids: Sequence[int]) -> list[int]:
    """Maps each gid to its lid, in order; gives the lid each had until then, or NO_LID."""
    previous = []
    for gid, lid in zip(gids, lids, strict=True):
        previous.append(table.get(gid, NO_LID))
        table[gid] = lid
    return previous


def remove(table: dict[bytes, int], gids: Sequence[bytes]) -> list[int]:
    """Forgets each gid; gives the lid each had, or NO_LID."""
    return [table.pop(gid, NO_LID) for gid in gids]
