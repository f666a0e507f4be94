"""The plain twins of core/rank/term_order.cpp: the terms of a query, in their order, beside the words of one field.

`places[i]`: where term i stands in the field, rising.
"""

from __future__ import annotations

from collections.abc import Sequence

Places = Sequence[Sequence[int]]


def edit_distance(
    places: Places, length: int, deletion: float, insertion: float, replacement: float
) -> tuple[float, int, int, int]:
    """(cost, deletions, insertions, replacements) of the cheapest way from the terms to the words of the field.

    Of equal ways a deletion is taken before an insertion, and that before a replacement. A word that is the term is
    free."""
    before = [(word * insertion, 0, word, 0) for word in range(length + 1)]
    for number, found in enumerate(places, 1):
        now = [(before[0][0] + deletion, number, 0, 0)]
        for word in range(1, length + 1):
            if word - 1 in found:
                now.append(before[word - 1])
                continue
            ways = [
                (_with(before[word], deletion, 1)),
                (_with(now[word - 1], insertion, 2)),
                (_with(before[word - 1], replacement, 3)),
            ]
            now.append(min(ways, key=lambda way: way[0]))
        before = now
    return before[length]


def _with(way: tuple[float, int, int, int], cost: float, kind: int) -> tuple[float, int, int, int]:
    counts = [count + (number == kind) for number, count in enumerate(way[1:], 1)]
    return way[0] + cost, counts[0], counts[1], counts[2]


def order_matches(places: Places, length: int, prefix: int) -> tuple[int, int, int]:
    """(terms that stand within half of the shorter text around their number; those of them that stand not just there;
    terms of the start, at most `prefix`, that all begin at their number)."""
    half = min(len(places), length) // 2 + 1
    near = [
        next((place for place in found if number - half <= place <= min(length, number + half)), None)
        for number, found in enumerate(places)
    ]
    same = 0
    for number, found in enumerate(places[: min(length, prefix)]):
        if not found or found[0] != number:
            break
        same += 1
    matches = [(number, place) for number, place in enumerate(near) if place is not None]
    return len(matches), sum(number != place for number, place in matches), same


def reverse_proximity(a: Sequence[int], b: Sequence[int]) -> tuple[int, int, int] | None:
    """(distance, place of the first, place of the other): as Vespa walks over both; None: it finds none."""
    if not a or not b or a[-1] < b[0]:
        return None
    place, other = a[0], b[0]
    firsts, others = [each for each in a if each >= other], list(b)
    best = (place, other)
    while firsts and others:
        if others[0] < place:
            other = others.pop(0)
            continue
        if (place - other) % 2**32 < (best[0] - best[1]) % 2**32:
            best = (place, other)
        place = firsts.pop(0)
    return (best[0] - best[1]) % 2**32, *best
