"""The plain twin of core/rank/field_match.cpp, and the definition of the string segment match of a query and a field.

Vespa: https://docs.vespa.ai/en/reference/ranking/string-segment-match.html

The words of the query are looked for in their order. Where one is found a segment starts; the words after it belong to
the segment while each is less than `limit` places from the one before. Then the next segment starts. Places are tried
in the order of their semantic distance from the end of the segment before: up to `limit` places forward, as many
backward, then all that is further forward, then backward. Of the segmentations of the first words of the query that
end in different ways, the one with the best score is kept.
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Final

import numpy as np
from msgspec import Struct, field

from paperwasp.search.features.field_match import DEFAULT_CONNECTEDNESS, METRICS, Settings

LEAST_CONNECTEDNESS: Final = 0.1


class Word(Struct, frozen=True):
    """A word of the query in a field. `places`: None where the field does not match it; empty: where is not known."""

    places: Sequence[int] | None
    weight: float = 100
    significance: float = 0.5
    connectedness: float = DEFAULT_CONNECTEDNESS


class _Segmentation(Struct):
    """A segmentation of the first words, as far as it is built."""

    starts: list[int] = field(default_factory=list)
    matched: list[int] = field(default_factory=list)
    pairs: list[tuple[int, int]] = field(default_factory=list)
    """(word, distance to the one before)"""
    gaps: list[int] = field(default_factory=list)
    """Lengths."""
    out_of_order: int = 0
    sequence: int = 0
    longest: int = 1
    head: int | None = None
    tail: int | None = None

    def __copy__(self) -> _Segmentation:
        lists = (list(self.starts), list(self.matched), list(self.pairs), list(self.gaps))
        return _Segmentation(*lists, self.out_of_order, self.sequence, self.longest, self.head, self.tail)


class _Start(Struct):
    """A word at which a segment may start, after the best segmentation of the words before it."""

    best: _Segmentation
    previous: int = 0
    """Where that one ends."""
    skipped: int = 0
    """Words from this one on that the field does not have."""
    explored: int = 0
    """Semantic distances from `previous` that were tried."""
    is_open: bool = True


def field_match(
    words: Sequence[Word], length: int, settings: Settings, total_weight: float, total_significance: float
) -> dict[str, float]:
    """The metrics of one hit, whose field has `length` words."""
    match = _Match(words, length, settings, total_weight, total_significance)
    found = [word for word in words if word.places is not None]
    degraded = sum(not word.places for word in found)
    if len(found) == degraded or length == 0:
        return match.without_places(len(found), degraded)
    return {**dict.fromkeys(METRICS, 0.0), **match.metrics(match.best()), "degradedMatches": degraded}


def share_of(part: float, whole: float) -> float:
    return part / whole if whole > 0 else 0.0


class _Match:
    def __init__(
        self, words: Sequence[Word], length: int, settings: Settings, total_weight: float, total_significance: float
    ) -> None:
        self.words, self.length, self.settings = words, length, settings
        self.total_weight, self.total_significance = total_weight, total_significance
        self.starts: dict[int, _Start] = {}

    def without_places(self, found: int, degraded: int) -> dict[str, float]:
        metrics = dict.fromkeys(METRICS, 0.0)
        if found:
            weight = sum(word.weight for word in self.words if word.places is not None)
            metrics["queryCompleteness"] = found / len(self.words)
            metrics["completeness"] = metrics["queryCompleteness"] * (1 - self.settings.field_completeness)
            metrics["weight"] = share_of(weight, self.total_weight)
            metrics["matches"], metrics["degradedMatches"] = found, degraded
        return metrics

    # The search

    def order(self, origin: int) -> list[int]:
        """All places of the field by their semantic distance from `origin`."""
        limit = self.settings.limit
        near_start, near_end = max(origin - limit, 0), min(origin + limit, self.length)
        near = [*range(origin, near_end), *reversed(range(near_start, origin))]
        return [*near, *range(near_end, self.length), *reversed(range(near_start))]

    def closest(self, word: Word, origin: int, least: int) -> tuple[int, int] | None:
        """(semantic distance, place) of a word, at a distance of at least `least`."""
        order = self.order(origin)
        places = set(word.places or ())
        return next(((at, order[at]) for at in range(least, len(order)) if order[at] in places), None)

    def best(self) -> _Segmentation:
        self.starts = {0: _Start(_Segmentation())}
        alternatives = 0
        for number in range(len(self.words) + 1):
            while (start := self.starts.get(number)) is not None and start.is_open:
                if start.explored > 0:
                    if alternatives == self.settings.max_alternatives:
                        break
                    alternatives += 1
                start.is_open = self.add_segment(number)
        return self.starts[max(self.starts)].best

    def add_segment(self, number: int) -> bool:
        """Looks for one more segment from a start on; whether there was one."""
        start = self.starts[number]
        now, previous, least = copy(start.best), start.previous, start.explored
        before: int | None = None  # the last word that was found
        for i in range(number + start.skipped, len(self.words)):
            found = self.closest(self.words[i], previous, least)
            if found is None and least > 0 and before is None:
                return False
            place = found[1] if found is not None else -1
            if now.sequence and place != previous + 1:
                self.end_sequence(now, previous)
            if before is None and found is None:
                start.skipped += 1
            elif before is None:
                assert found is not None
                now.starts.append(place)
                start.explored = found[0] + 1
            elif abs(place - previous) >= self.settings.limit:
                self.offer(i, previous, now)
                return True
            elif found is not None:
                self.add_pair(now, i, place, previous, i == before + 1)
            if found is None:
                if self.words[i].places is not None and not self.words[i].places:
                    self.add_match(now, i)
                least = 0
                continue
            self.add_match(now, i)
            if not now.sequence:
                now.head = place if now.head is None else min(now.head, place)
                now.sequence = 1
            least, before, previous = 1, i, place
        if now.sequence:
            self.end_sequence(now, previous)
        if before is not None:
            self.offer(len(self.words), previous, now)
        return before is not None

    def end_sequence(self, now: _Segmentation, place: int) -> None:
        tail = self.length - place - 1
        now.tail = tail if now.tail is None else min(now.tail, tail)
        now.longest = max(now.longest, now.sequence)
        now.sequence = 0

    def add_pair(self, now: _Segmentation, word: int, place: int, previous: int, next_word: bool) -> None:
        distance = place - previous - 1 if place > previous else place - previous
        if abs(distance) <= self.settings.limit:
            now.pairs.append((word, distance))
        if place == previous + 1 and next_word:
            now.sequence += 1
            return
        now.gaps.append(abs(distance))
        now.out_of_order += place <= previous

    def add_match(self, now: _Segmentation, word: int) -> None:
        if len(now.matched) < self.length:
            now.matched.append(word)

    def offer(self, number: int, place: int, found: _Segmentation) -> None:
        start = self.starts.get(number)
        if start is None:
            self.starts[number] = _Start(copy(found), place)
        elif self.score(found) > self.score(start.best):
            start.best, start.previous = copy(found), place

    # The metrics

    def score(self, found: _Segmentation) -> float:
        return self.absolute_proximity(found) / len(found.starts) ** 2 if found.starts else 0.0

    def nearness(self, distance: int) -> float:
        return self.settings.table[distance + self.settings.limit]

    def absolute_proximity(self, found: _Segmentation) -> float:
        if not found.pairs:
            return DEFAULT_CONNECTEDNESS
        total = 0.0
        for word, distance in found.pairs:
            connected = self.words[word].connectedness
            power = float(np.power(self.nearness(distance), connected / LEAST_CONNECTEDNESS))
            total += power * max(LEAST_CONNECTEDNESS, connected)
        return total / len(found.pairs)

    def average_connectedness(self) -> float:
        others = [max(LEAST_CONNECTEDNESS, word.connectedness) for word in self.words[1:]]
        return sum(others) / len(others) if others else DEFAULT_CONNECTEDNESS

    def metrics(self, found: _Segmentation) -> dict[str, float]:
        matches, pairs, length = len(found.matched), len(found.pairs), self.length
        head, tail = found.head or 0, found.tail or 0
        distance = max(found.starts) - min(found.starts) + len(found.starts) - 1 if len(found.starts) > 1 else 0
        weight = share_of(sum(self.words[i].weight for i in found.matched), self.total_weight)
        significance = share_of(sum(self.words[i].significance for i in found.matched), self.total_significance)
        metrics: dict[str, float] = {
            "absoluteProximity": self.absolute_proximity(found),
            "proximity": self.absolute_proximity(found) / self.average_connectedness(),
            "unweightedProximity": sum(self.nearness(d) for _, d in found.pairs) / pairs if pairs else 1.0,
            "queryCompleteness": matches / len(self.words),
            "fieldCompleteness": matches / length,
            "orderness": 1 - found.out_of_order / pairs if pairs else 1.0,
            "relatedness": 1 - (len(found.starts) - 1) / (matches - 1) if matches > 1 else float(matches),
            "earliness": (1 - head / (max(6, length) - 1) if length > 1 else 1.0) if matches else 0.0,
            "longestSequenceRatio": found.longest / matches if matches else 0.0,
            "segmentProximity": 1 - distance / length if matches else 0.0,
            "weight": weight,
            "significance": significance,
            "importance": (weight + significance) / 2,
            "segments": len(found.starts),
            "matches": matches,
            "outOfOrder": found.out_of_order,
            "gaps": len(found.gaps),
            "gapLength": sum(found.gaps),
            "longestSequence": found.longest,
            "head": head,
            "tail": tail,
            "segmentDistance": distance,
            **self.occurrences(),
        }
        share = self.settings.field_completeness
        metrics["completeness"] = metrics["queryCompleteness"] * (1 - share) + metrics["fieldCompleteness"] * share
        metrics["score"] = self.combined(metrics)
        return metrics

    def combined(self, metrics: dict[str, float]) -> float:
        by = self.settings
        related = 1 - by.relatedness + by.relatedness * metrics["relatedness"]
        parts = (
            by.proximity_completeness * related * metrics["proximity"] * metrics["completeness"] ** 2,
            by.earliness * metrics["earliness"],
            by.segment_proximity * metrics["segmentProximity"],
            by.occurrence * metrics["occurrence"],
        )
        return sum(parts) / (by.proximity_completeness + by.earliness + by.segment_proximity + by.occurrence)

    def occurrences(self) -> dict[str, float]:
        """Words that first occur at the same place count once, by the first of them."""
        unique: dict[int, Word] = {}
        for word in self.words:
            if word.places:
                unique.setdefault(word.places[0], word)
        most = self.settings.max_occurrences
        each, divider = min(self.length, most), min(self.length, most * len(unique))
        times = [(min(len(word.places or ()), most), word) for word in unique.values()]
        all_weight = sum(word.weight for word in unique.values())
        all_significance = sum(word.significance for word in unique.values())
        weighted = sum(count * word.weight for count, word in times)
        significant = sum(count * word.significance for count, word in times)
        return {
            "occurrence": sum(count for count, _ in times) / divider,
            "absoluteOccurrence": sum(count for count, _ in times) / (most * len(unique)),
            "weightedOccurrence": weighted / (each * all_weight) if all_weight > 0 else 0.0,
            "weightedAbsoluteOccurrence": weighted / most / (all_weight if all_weight > 0 else 1),
            "significantOccurrence": significant / (each * all_significance) if all_significance > 0 else 0.0,
        }
