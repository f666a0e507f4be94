"""Measures of rankings, each query by itself, and what can be said of their mean.

The measures are those of ir-measures (https://ir-measur.es), which are what trec_eval computes.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.embedded.frames import import_optional
from paperwasp.errors import InvalidInput
from paperwasp.relevance.collection import Judgments
from paperwasp.relevance.rankings import RankedDocument, Run

DEFAULT: Final = ("nDCG@10", "AP", "R@100", "RR@10")
_SAMPLES: Final = 10_000
_DRAWN_AT_ONCE: Final = 1_000_000
"""Of all samples together thousands of queries would take a gigabyte."""
_SEED: Final = 20
_CONFIDENCE: Final = 0.95


class NoMeasures(InvalidInput):
    """ir-measures does not know a measure, or cannot compute it."""


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


def check_measures(judgments: Judgments, queries: Sequence[str], names: Sequence[str]) -> None:
    """Tries each measure on a query that finds a judged document, before anything is asked.

    Only trying tells what a library that is not installed would compute, or what takes only ids that are numbers.
    Errors: NoMeasures with the measure; MissingLibrary where ir-measures is not installed.
    """
    tried = queries[:1]
    run = {query: [RankedDocument(next(iter(judgments[query])), 1.0)] for query in tried}
    for name in names:
        measure(run, judgments, tried, (name,))


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
    # One measure may have several names: AP is MAP.
    values = {each: np.zeros(len(queries)) for each in measures.values()}
    try:
        for each in library.iter_calc(list(values), judged, ranked):
            values[each.measure][place_of[each.query_id]] = each.value
    except Exception as error:  # each of the programs behind the library has errors of its own
        shown = ", ".join(f"'{name}'" for name in names)
        raise NoMeasures(f"ir-measures cannot compute {shown}: {_one_line(error)}") from None
    return {name: values[measures[name]] for name in names}


def estimate(values: NDArray[np.float64]) -> Estimate:
    """The mean with its bootstrap confidence interval, of a fixed seed."""
    chance = np.random.default_rng(_SEED)
    means = np.concatenate([values[chance.integers(0, len(values), shape)].mean(axis=1) for shape in _blocks(values)])
    tail = (1 - _CONFIDENCE) / 2
    low, high = np.quantile(means, (tail, 1 - tail))
    return Estimate(float(values.mean()), float(low), float(high))


def compare(values: NDArray[np.float64], first: NDArray[np.float64]) -> Difference:
    """How much better than the first ranking, of the same queries in the same order."""
    differences = values - first
    chance = np.random.default_rng(_SEED)
    least = abs(differences.mean()) - 1e-12
    as_large = 0
    for shape in _blocks(differences):
        means = (chance.choice((-1.0, 1.0), shape) * differences).mean(axis=1)
        as_large += int((np.abs(means) >= least).sum())
    p_value = (as_large + 1) / (_SAMPLES + 1)
    return Difference(estimate(differences), p_value, int((differences > 0).sum()), int((differences < 0).sum()))


def _blocks(values: NDArray[np.float64]) -> Iterator[tuple[int, int]]:
    """How many samples are drawn at once, and of how many values: in as many steps as all samples take."""
    most = max(1, _DRAWN_AT_ONCE // len(values))
    for start in range(0, _SAMPLES, most):
        yield min(most, _SAMPLES - start), len(values)


def _library() -> Any:
    return import_optional("ir_measures", "measures of rankings", "ir-measures")


def _measure(library: Any, name: str) -> Any:
    try:
        found = library.parse_measure(name)
        missing = [
            each for each, known in found.SUPPORTED_PARAMS.items() if known.required and each not in found.params
        ]
        if not missing:
            found.validate_params()
    except (NameError, ValueError, SyntaxError, AssertionError, TypeError) as error:
        raise NoMeasures(f"'{name}' is no measure of ir-measures: {_one_line(error)}") from None
    if missing:
        raise NoMeasures(f"'{name}' is no measure of ir-measures: it has no {', '.join(missing)}")
    # trec_eval would end the process.
    if found.params.get("cutoff", 1) < 1:
        raise NoMeasures(f"'{name}' is no measure of ir-measures: its cutoff is less than 1")
    return found


def _one_line(error: Exception) -> str:
    return " ".join(str(error).split())


Values = Mapping[str, NDArray[np.float64]]
