"""Evaluations: rankings over the queries of a collection, their measures, each query by itself, what can be said of
their mean, and where they differ.

The measures are those of ir-measures (https://ir-measur.es), which are what trec_eval computes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.embedded.frames import import_optional
from paperwasp.errors import InvalidInput
from paperwasp.relevance.collection import Judgments, Queries
from paperwasp.relevance.rankings import Ask, RankedDocument, Ranking, Run, ask_all, notes_of

DEFAULT: Final = ("nDCG@10", "AP", "R@100", "RR@10")
_SAMPLES: Final = 10_000
_DRAWN_AT_ONCE: Final = 1_000_000
"""Of all samples together thousands of queries would take a gigabyte."""
_SEED: Final = 20
_CONFIDENCE: Final = 0.95


class NoMeasures(InvalidInput):
    """ir-measures does not know a measure, or cannot compute it."""


class Estimate(Struct, frozen=True):
    """A mean over queries, and between which values it lies with a probability of 95 percent."""

    mean: float
    low: float
    high: float


class Difference(Struct, frozen=True):
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
    library = import_optional("ir_measures", "measures of rankings", "ir-measures")
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


# An evaluation of several rankings, and where they differ.


class Measured(Struct, frozen=True):
    """One ranking, as it was measured."""

    ranking: Ranking
    run: Run
    values: Mapping[str, NDArray[np.float64]]
    """Measure → its value for each query."""
    notes: Sequence[str] = ()
    """Why it may score less than its author means."""

    def estimate(self, measure: str) -> Estimate:
        return estimate(self.values[measure])


class Change(Struct, frozen=True):
    """A query that a ranking answers better, or worse, than the first one."""

    query: str
    text: str
    before: float
    after: float
    documents: Sequence[tuple[RankedDocument | None, RankedDocument | None]]
    """The best documents of both, place by place."""


class Evaluation(Struct, frozen=True):
    """The measures of all rankings. All others are compared with the first one."""

    queries: Queries
    judged: Sequence[str]
    judgments: Judgments
    measures: Sequence[str]
    measured: Sequence[Measured]

    def check_measure(self, name: str) -> None:
        """Errors: InvalidInput for a measure that was not measured."""
        if name not in self.measures:
            raise InvalidInput(f"'{name}' was not measured, but {', '.join(self.measures)}")

    def doubt(self) -> str | None:
        """Why all measures are 0, where it is unlikely that the rankings are to blame; None: they are not all 0."""
        found = [(query, ranked.id) for each in self.measured for query in self.judged for ranked in each.run[query]]
        if not found:
            return "No query found a document: is anything fed?"
        if any(self.relevance(query, document) is not None for query, document in found):
            return None
        wanted = next(iter(self.judgments[self.judged[0]]))
        return (
            f"No document that was found is judged: they are named like '{found[0][1]}', and in the judgments like "
            f"'{wanted}'. Another field may have the ids of the judgments (--id-field)"
        )

    def difference(self, measured: Measured, name: str) -> Difference:
        """How much better than the first ranking."""
        return compare(measured.values[name], self.measured[0].values[name])

    def changes(self, measured: Measured, name: str, most: int) -> tuple[list[Change], list[Change]]:
        """The queries that won most and that lost most, by a measure."""
        first = self.measured[0]
        gains = measured.values[name] - first.values[name]
        order = np.argsort(gains, kind="stable")
        won = [int(place) for place in order[::-1][:most] if gains[place] > 0]
        lost = [int(place) for place in order[:most] if gains[place] < 0]
        return [self._change(measured, name, place) for place in won], [
            self._change(measured, name, place) for place in lost
        ]

    def _change(self, measured: Measured, name: str, place: int) -> Change:
        query = self.judged[place]
        first = self.measured[0]
        before, after = list(first.run[query][:5]), list(measured.run[query][:5])
        longest = max(len(before), len(after))
        pairs = [
            (before[at] if at < len(before) else None, after[at] if at < len(after) else None) for at in range(longest)
        ]
        values = float(first.values[name][place]), float(measured.values[name][place])
        return Change(query, self.queries[query], *values, pairs)

    def relevance(self, query: str, document: str) -> int | None:
        """The relevance by the judgments; None: they do not say."""
        return self.judgments[query].get(document)

    def to_json(self) -> dict[str, Any]:
        """Everything that is measured, for programs."""
        rankings = []
        for each in self.measured:
            means = {name: _shown(each.estimate(name)) for name in self.measures}
            shown: dict[str, Any] = {"name": each.ranking.name, "measures": means}
            if each.notes:
                shown["notes"] = list(each.notes)
            if each is not self.measured[0]:
                shown["against first"] = {name: _difference(self.difference(each, name)) for name in self.measures}
            shown["queries"] = {
                query: {name: float(each.values[name][place]) for name in self.measures}
                for place, query in enumerate(self.judged)
            }
            rankings.append(shown)
        return {"queries": len(self.judged), "rankings": rankings}


def evaluate(
    ask: Ask,
    queries: Queries,
    judgments: Judgments,
    judged: Sequence[str],
    rankings: Sequence[Ranking],
    measures: Sequence[str],
    parameters: Mapping[str, object],
    id_field: str | None = None,
    report: Callable[[], None] = lambda: None,
) -> Evaluation:
    """Asks the judged queries by each ranking. Errors: NoMeasures, MissingLibrary; those of asking."""
    check_measures(judgments, judged, measures)
    measured = []
    for ranking in rankings:
        run = ask_all(ask, queries, judged, ranking, parameters, id_field, report)
        values = measure(run, judgments, judged, measures)
        measured.append(Measured(ranking, run, values, notes_of(ask, queries, judged, ranking, parameters)))
    return Evaluation(queries, judged, judgments, measures, measured)


def _shown(estimate: Estimate) -> dict[str, float]:
    return {"mean": estimate.mean, "low": estimate.low, "high": estimate.high}


def _difference(difference: Difference) -> dict[str, float]:
    return {
        **_shown(difference.estimate),
        "p": difference.p_value,
        "won": difference.won,
        "lost": difference.lost,
    }
