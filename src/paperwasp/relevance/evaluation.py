"""An evaluation: rankings over the queries of a collection, their measures, and where they differ."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidInput
from paperwasp.relevance.collection import Judgments, Queries
from paperwasp.relevance.measuring import Difference, Estimate, check_measures, compare, estimate, measure
from paperwasp.relevance.rankings import Ask, RankedDocument, Ranking, Run, ask_all, notes_of


@dataclass(frozen=True, slots=True)
class Measured:
    """One ranking, as it was measured."""

    ranking: Ranking
    run: Run
    values: Mapping[str, NDArray[np.float64]]
    """Measure → its value for each query."""
    notes: Sequence[str] = ()
    """Why it may score less than its author means."""

    def estimate(self, measure: str) -> Estimate:
        return estimate(self.values[measure])


@dataclass(frozen=True, slots=True)
class Change:
    """A query that a ranking answers better, or worse, than the first one."""

    query: str
    text: str
    before: float
    after: float
    documents: Sequence[tuple[RankedDocument | None, RankedDocument | None]]
    """The best documents of both, place by place."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """What came of it. The first ranking is what all others are compared with."""

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
        """What the judgments say; None: nothing."""
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
