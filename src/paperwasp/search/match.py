"""Matching: all documents of one type that a bound query matches, as a bitmap."""

from __future__ import annotations

from typing import Final

from paperwasp.core import _core
from paperwasp.search.bound import BoundQuery
from paperwasp.search.mutations import ON_MATCH
from paperwasp.search.ranked import Matches

_MATCH_PHASE: Final = frozenset({"match-phase"})


def match(bound: BoundQuery) -> Matches:
    """Return all documents that match; with a match-phase, those of them that it leaves. Raises OutOfTime."""
    space, observer = bound.setting.space, bound.observer
    bitmap = bound.setting.operator.bitmap() & space.accept
    limited = None if bound.limiter is None else bound.limiter.limited(bitmap)
    left = bitmap if limited is None else limited.matches
    count = _core.bitmap_count(left, space.accept)
    observer.step("match", "general (bitmaps)")
    observer.tag("matching", matches=count, limited=limited is not None)
    if observer.wants(ON_MATCH):
        observer.reach(ON_MATCH, [_core.bitmap_lids(left, space.limit)])
    if limited is None:
        return Matches(bitmap, count)
    return Matches(left, count, limited.documents / space.documents, _MATCH_PHASE)
