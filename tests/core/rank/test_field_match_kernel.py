"""The string segment match: the kernel against its twin, and both against values that are worked by hand.

Authority: https://docs.vespa.ai/en/reference/ranking/string-segment-match.html
"""

from __future__ import annotations

import random

import numpy as np
import pytest

from paperwasp.core import _core
from paperwasp.search.features.field_match import DEFAULT_CONNECTEDNESS, METRICS, Settings
from tests.oracles.field_match import Word, field_match

TABLE = [*(0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.17, 0.24, 0.33, 1)]
TABLE += [0.71, 0.50, 0.35, 0.25, 0.18, 0.13, 0.09, 0.06, 0.04, 0.03]
DEFAULTS = Settings(TABLE, 0.9, 0.9, 0.05, 0.05, 0.05, 0.05, max_alternatives=1000, max_occurrences=100)
CASES = 3000


def lists(hits: list[list[int]]) -> tuple[np.ndarray, np.ndarray]:
    offsets = np.cumsum([0, *map(len, hits)]).astype(np.uint32)
    return offsets, np.array([at for hit in hits for at in hit], np.uint32)


def by_kernel(
    hits: list[tuple[list[Word], int]], settings: Settings, total_weight: float, total_significance: float
) -> list[dict[str, float]]:
    """Hits of one query: their words differ in places only, and no two words share their positions."""
    query = hits[0][0]
    found = [lists([list(words[i].places or ()) for words, _ in hits]) for i in range(len(query))]
    matched = np.array([[words[i].places is not None for words, _ in hits] for i in range(len(query))], np.uint8)
    results = np.empty(len(METRICS) * len(hits))
    _core.field_match(
        [offsets for offsets, _ in found],
        [positions for _, positions in found],
        matched.ravel(),
        np.array([length for _, length in hits], np.int32),
        np.arange(len(query), dtype=np.uint32),
        np.zeros(len(query), np.uint32),
        np.array([word.weight for word in query], np.float64),
        np.array([word.significance for word in query], np.float64),
        np.array([word.connectedness for word in query], np.float64),
        total_weight,
        total_significance,
        np.array(settings.table, np.float64),
        np.array(settings.importances()),
        settings.max_alternatives,
        settings.max_occurrences,
        results,
    )
    rows = results.reshape(len(hits), len(METRICS)).tolist()
    return [dict(zip(METRICS, row, strict=True)) for row in rows]


def random_settings(random_: random.Random) -> Settings:
    if random_.random() < 0.5:
        return DEFAULTS
    table = [random_.choice((0.0, 0.2, 0.5, 1.0, random_.random())) for _ in range(2 * random_.randrange(5) + 1)]
    first, second, third, fourth, fifth, sixth = (random_.uniform(0.01, 1) for _ in range(6))
    alternatives, occurrences = random_.choice((0, 1, 3, 1000)), random_.choice((1, 2, 5, 100))
    return Settings(table, first, second, third, fourth, fifth, sixth, alternatives, occurrences)


def random_hits(random_: random.Random) -> list[tuple[list[Word], int]]:
    """Fields of a few words, or of many, in which the words of a query are at random places."""
    count = random_.randrange(1, 8)
    query = [
        (random_.choice((0, 50, 100, 200)), random_.random(), random_.choice((DEFAULT_CONNECTEDNESS, 0.0, 0.3, 1.0)))
        for _ in range(count)
    ]
    hits = []
    for _ in range(random_.randrange(1, 4)):
        length = random_.choice((0, 1, 2, 5, 12, 40, 100))
        words = []
        for weight, significance, connectedness in query:
            kind = random_.random()
            most = random_.choice((1, 2, 5, 30))
            places = sorted(
                {random_.randrange(length) for _ in range(random_.randrange(1, most + 1))} if length else ()
            )
            words.append(
                Word(None if kind < 0.2 else [] if kind < 0.3 else places, weight, significance, connectedness)
            )
        hits.append((words, length))
    return hits


@pytest.mark.parametrize("part", range(4))
def test_the_kernel_is_its_twin(part: int) -> None:
    for seed in range(part * CASES // 4, (part + 1) * CASES // 4):
        random_ = random.Random(seed)
        settings, hits = random_settings(random_), random_hits(random_)
        totals = random_.choice((0.0, 300.0, 1000.0)), random_.choice((0.0, 0.7, 2.0))
        for (words, length), found in zip(hits, by_kernel(hits, settings, *totals), strict=True):
            expected = field_match(words, length, settings, *totals)
            assert found == pytest.approx(expected, rel=1e-9, abs=1e-12, nan_ok=True), f"{seed=} {words=} {length=}"


def test_wrong_arguments_are_refused() -> None:
    offsets, positions = lists([[0, 3]])
    one, numbers, none = np.ones(1), np.zeros(1, np.uint32), np.zeros(0, np.uint8)

    def run(
        offsets: np.ndarray = offsets,
        terms: np.ndarray = numbers,
        table: np.ndarray = one,
        results: int = 30,
        importances: int = 6,
        occurrences: int = 1,
        matched: np.ndarray = none,
    ) -> None:
        lengths, by = np.array([4], np.int32), np.ones(importances)
        ones = np.ones(len(terms))
        words = terms, np.zeros(len(terms), np.uint32), ones, ones, ones, 1.0, 1.0
        wanted = np.empty(results)
        _core.field_match([offsets], [positions], matched, lengths, *words, table, by, 9, occurrences, wanted)

    run()
    for wrong in (np.array([0, 3], np.uint32), np.array([1, 0], np.uint32), np.array([0], np.uint32)):
        with pytest.raises(ValueError, match="offsets"):
            run(offsets=wrong)
    for arguments in (
        {"terms": np.ones(1, np.uint32)},
        {"table": np.ones(2)},
        {"results": 29},
        {"importances": 5},
        {"occurrences": 0},
        {"matched": np.zeros(2, np.uint8)},
    ):
        with pytest.raises(ValueError):
            run(**arguments)
