"""Measures of rankings, each query by itself, and what can be said of their mean.

The measures are those of ir-measures (https://ir-measur.es), which are what trec_eval computes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.embedded.frames import import_optional
from paperwasp.errors import InvalidInput
from paperwasp.records import dataclass
from paperwasp.relevance.collection import Judgments
from paperwasp.relevance.rankings import Run

DEFAULT: Final = ("nDCG@10", "AP", "R@100", "RR@10")
_SAMPLES: Final = 10_000
_SEED: Final = 20
_CONFIDENCE: Final = 0.95


class NoMeasures(InvalidInput):
    """ir-measures does not know a measure."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """A mean over queries, and between which values it lies with a probability of 95 percent."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Difference:
    """How much a ranking is better than the first one, query by query."""

    estimate: Estimate
    p_value: float
    """How often a difference as large would come of chance: of a randomization test with two sides."""
    won: int
    lost: int


def measure(
    run: Run, judgments: Judgments, queries: Sequence[str], names: Sequence[str]
) -> dict[str, NDArray[np.float64]]:
    """Measure → its value for each of the queries, in their order. A query that finds nothing has 0.

    Errors: NoMeasures; MissingLibrary where ir-measures is not installed.
    """
    library = _library()
    measures = {name: _measure(library, name) for name in names}
    judged = [
        library.Qrel(query, document, relevance)
        for query in queries
        for document, relevance in judgments[query].items()
    ]
    # Ties have the order in which the hits came; trec_eval would sort them by name.
    ranked = [
        library.ScoredDoc(query, found.id, float(len(run[query]) - place))
        for query in queries
        for place, found in enumerate(run[query])
    ]
    place_of = {query: place for place, query in enumerate(queries)}
    values = {name: np.zeros(len(queries)) for name in names}
    name_of = {measures[name]: name for name in names}
    for each in library.iter_calc(list(measures.values()), judged, ranked):
        values[name_of[each.measure]][place_of[each.query_id]] = each.value
    return values


def estimate(values: NDArray[np.float64]) -> Estimate:
    """The mean with its bootstrap confidence interval, of a fixed seed."""
    chance = np.random.default_rng(_SEED)
    means = values[chance.integers(0, len(values), (_SAMPLES, len(values)))].mean(axis=1)
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Estimate(float(values.mean()), float(low), float(high))


def compare(values: NDArray[np.float64], first: NDArray[np.float64]) -> Difference:
    """How much better than the first ranking, of the same queries in the same order."""
    differences = values - first
    chance = np.random.default_rng(_SEED)
    signs = chance.choice((-1.0, 1.0), (_SAMPLES, len(differences)))
    observed = abs(differences.mean())
    as_large = np.abs((signs * differences).mean(axis=1)) >= observed - 1e-12
    p_value = (int(as_large.sum()) + 1) / (_SAMPLES + 1)
    return Difference(estimate(differences), p_value, int((differences > 0).sum()), int((differences < 0).sum()))


def _library() -> Any:
    return import_optional("ir_measures", "measures of rankings", "paperwasp[evaluate]")


def _measure(library: Any, name: str) -> Any:
    try:
        return library.parse_measure(name)
    except (NameError, ValueError, SyntaxError) as error:
        raise NoMeasures(f"'{name}' is no measure of ir-measures: {error}") from None


Values = Mapping[str, NDArray[np.float64]]
