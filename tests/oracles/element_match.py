"""The plain twin of core/rank/element_match.cpp: how well the terms of a query match one element of a field."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

NEAR: Final = 8
"""Words: terms that are further apart are not near."""


def element_match(
    places: Mapping[int, Sequence[int]], weights: Sequence[float], length: int, weight: int
) -> dict[str, float]:
    """The values of an element of a length and weight, where term i stands at places[i]."""
    waiting = {term: list(found) for term, found in places.items()}
    taken: list[tuple[int, int]] = []
    while waiting:
        place, term = min((found[0], term) for term, found in waiting.items())
        if not taken or place > taken[-1][0]:
            taken.append((place, term))
            del waiting[term]
        else:
            waiting[term].pop(0)
            if not waiting[term]:
                del waiting[term]
    pairs = list(pairwise(taken))
    return {
        "proximity": _mean([nearness(b - a) for (a, _), (b, _) in pairs], nearness(max(length, 1))),
        "order": _mean([float(later > term) for (_, term), (_, later) in pairs], 1.0),
        "taken": len(taken),
        "taken_weight": sum(weights[term] for _, term in taken),
        "length": length,
        "weight": weight,
        "terms": len(places),
        "terms_weight": sum(weights[term] for term in places),
        "flow": _flow(list(places.values())),
    }


def nearness(distance: int) -> float:
    """1 for words next to each other, falling to 0."""
    return 0.0 if distance > NEAR else 1 - ((distance - 1) / NEAR) ** 2


def _mean(values: list[float], without: float) -> float:
    return sum(values) / len(values) if values else without


def _flow(places: list[Sequence[int]]) -> int:
    """The largest number of terms that can each have a place of their own."""
    owners: dict[int, int] = {}

    def placed(term: int, seen: set[int]) -> bool:
        for place in places[term]:
            if place not in seen:
                seen.add(place)
                if place not in owners or placed(owners[place], seen):
                    owners[place] = term
                    return True
        return False

    return sum(placed(term, set()) for term in range(len(places)))
