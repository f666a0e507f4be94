"""Which hits are behind the one that the page before ended with: found by comparing, without sorting what is before.

The row of that hit says where each level is cut, unless it was changed since or is of another type or cluster: then
the levels' values are searched for the place.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.content.view import View
from paperwasp.errors import InvalidQuery
from paperwasp.search.order import RELEVANCE, Level, Lids, Scores, ScoresOf
from paperwasp.search.query import BEFORE_ALL, SearchAfter
from paperwasp.storage.documents.document_store import GID_BYTES

Mask = NDArray[np.bool_]
_FIRST_STREAMED: Final = 1 << 32
"""Above all lids."""
_BEHIND_ALL: Final = 1 << 128
"""Above all that stands for a lid."""


def streamed_lid(gid: bytes) -> int:
    """What stands for the lid of a document of mode streaming, which has none: these rise as the global ids do."""
    return _FIRST_STREAMED + int.from_bytes(gid, "big")


def located(after: SearchAfter, view: View) -> SearchAfter:
    """Where the page before ended, in a view. The hit's row may be dead; of several, the page begins behind the first,
    so that nothing is left out."""
    return replace(after, lid=_place_of(after.gid, view))


def _place_of(gid: bytes, view: View) -> int:
    if len(gid) != GID_BYTES:
        return -1 if gid <= BEFORE_ALL else _BEHIND_ALL
    words = view.gids[: view.limit].view(np.uint32)
    first, second, third = np.frombuffer(gid, np.uint32)
    rows = np.flatnonzero(words[:, 0] == first)
    rows = rows[(words[rows, 1] == second) & (words[rows, 2] == third)]
    if len(rows) == 0:
        return -1
    number = view.document_types[rows[0]]
    streamed = {kind.number for name, kind in view.layout.types.items() if view.modes.get(name) == "streaming"}
    return streamed_lid(gid) if number in streamed else int(rows[0])


def within_batch(after: SearchAfter, gids: Sequence[bytes]) -> SearchAfter:
    """What a page begins behind, in a batch whose lids are the places of rising global ids."""
    return replace(after, lid=bisect_right(gids, after.lid, key=streamed_lid) - 1)


def ranked_behind(lids: Lids, scores: Scores, after: SearchAfter) -> Mask:
    """Of hits in the order of their relevance."""
    mask: Mask = (scores < after.relevance) | ((scores == after.relevance) & (lids > after.lid))
    return mask


def sorted_behind(levels: Sequence[Level], lids: Lids, scores_of: ScoresOf, limit: int, after: SearchAfter) -> Mask:
    """Of hits, by rising lids below `limit`, in the order of the levels. Errors: InvalidQuery for keys of others."""
    behind = np.zeros(len(lids), np.bool_)
    equal = np.ones(len(lids), np.bool_)
    if len(after.sort_keys) != len(levels):
        raise InvalidQuery("'searchAfter' is of a query that sorts by other keys")
    for level, key in zip(levels, after.sort_keys, strict=True):
        keys = level.keys(lids, scores_of)
        scores = scores_of(lids) if level.field == RELEVANCE else np.zeros(len(lids))
        try:
            later, same = _cut(level, lids, keys, scores, limit, after.lid, key)
        except TypeError:
            raise InvalidQuery("'searchAfter' is of a query that sorts by other keys") from None
        behind |= equal & later
        equal &= same
    mask: Mask = behind | (equal & (lids > after.lid))
    return mask


def _cut(
    level: Level, lids: Lids, keys: NDArray[np.int64] | None, scores: Scores, limit: int, lid: int, key: Any
) -> tuple[Mask, Mask]:
    """Which rows come later than the key, and which are the same."""
    if len(lids) == 0 or keys is None:
        own = level.portable_keys(lids[:1], scores[:1])
        return np.full(len(lids), own > [key]), np.full(len(lids), own == [key])
    at = int(np.searchsorted(lids, lid)) if 0 <= lid < limit else len(lids)
    if at < len(lids) and lids[at] == lid and level.portable_keys(lids[at : at + 1], scores[at : at + 1]) == [key]:
        return keys > keys[at], keys == keys[at]
    distinct, places = np.unique(keys, return_index=True)
    low, high = 0, len(distinct)
    while low < high:
        middle = (low + high) // 2
        place = places[middle]
        if level.portable_keys(lids[place : place + 1], scores[place : place + 1])[0] < key:
            low = middle + 1
        else:
            high = middle
    if low == len(distinct):
        nothing = np.zeros(len(lids), np.bool_)
        return nothing, nothing
    place = places[low]
    is_there = level.portable_keys(lids[place : place + 1], scores[place : place + 1])[0] == key
    same = keys == distinct[low]
    return (keys > distinct[low], same) if is_there else (keys >= distinct[low], np.zeros(len(lids), np.bool_))
