"""Evaluations of a service in this process: in notebooks, tests and scripts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct

from paperwasp.embedded.frames import pandas_frame
from paperwasp.embedded.html import framed
from paperwasp.embedded.service import Service
from paperwasp.relevance.collection import check_fit, judgments_of_mapping
from paperwasp.relevance.measuring import DEFAULT, Evaluation
from paperwasp.relevance.measuring import evaluate as evaluate_rankings
from paperwasp.relevance.rankings import YQL, Ranking, ask_service
from paperwasp.relevance.report import means_html

if TYPE_CHECKING:
    import pandas

_TIMEOUT: Final = "20s"


class Comparison(Struct, frozen=True):
    """Rankings, as they were measured; each is compared with the first one."""

    evaluation: Evaluation

    def rows(self) -> list[dict[str, Any]]:
        """A row for each ranking and measure: the mean with its interval, and the difference from the first ranking."""
        rows = []
        for ranking in self.evaluation.to_json()["rankings"]:
            against = ranking.get("against first", {})
            for measure, values in ranking["measures"].items():
                named = {"ranking": ranking["name"], "measure": measure, **values}
                if measure in against:
                    more = against[measure]
                    named.update({"difference": more["mean"]}, p=more["p"], won=more["won"], lost=more["lost"])
                rows.append(named)
        return rows

    def to_pandas(self) -> pandas.DataFrame:
        """`rows` as a frame. Errors: MissingLibrary."""
        return pandas_frame(self.rows())

    def query_rows(self, measure: str) -> list[dict[str, Any]]:
        """A row for each query that is judged: its text, and the measure by each ranking. Errors: InvalidInput."""
        evaluation = self.evaluation
        evaluation.check_measure(measure)
        return [
            {
                "query": evaluation.queries[query],
                **{each.ranking.name: float(each.values[measure][place]) for each in evaluation.measured},
            }
            for place, query in enumerate(evaluation.judged)
        ]

    def queries_to_pandas(self, measure: str) -> pandas.DataFrame:
        """`query_rows` as a frame. Errors: InvalidInput, MissingLibrary."""
        return pandas_frame(self.query_rows(measure))

    def __repr__(self) -> str:
        shown = (f"{row['ranking']} {row['measure']} {row['mean']:.3f}" for row in self.rows())
        return f"<Comparison over {len(self.evaluation.judged)} queries: {', '.join(shown)}>"

    def _repr_html_(self) -> str:
        return framed(means_html(self.evaluation))


def evaluate(
    service: Service,
    queries: Mapping[str, str],
    judgments: Mapping[str, Mapping[str, int] | Iterable[str]],
    rankings: Mapping[str, Mapping[str, object]],
    measures: Sequence[str] = DEFAULT,
    *,
    yql: str | None = None,
    hits: int = 100,
    parameters: Mapping[str, object] | None = None,
    id_field: str | None = None,
) -> Comparison:
    """Asks each query by each ranking, and measures where the relevant documents come.

    `queries`: id → text. `judgments`: id of a query → its documents, each with its relevance, or those that are
    relevant. `rankings`: name → parameters of its queries, as `{"ranking": "bm25"}`; the others are compared with the
    first one. `yql` says how documents match, and takes the text as `@query`; None: each document that has one of the
    words. `hits` is how many documents of each query count, at most as many as queries may ask for. `id_field` has the
    ids of the judgments; None: the last part of document ids. Errors: BadCollection, NoMeasures, MissingLibrary; what
    is wrong with a query.
    """
    judged = judgments_of_mapping(judgments)
    asked = {"yql": yql or YQL, "hits": hits, "timeout": _TIMEOUT, **(parameters or {})}
    found = evaluate_rankings(
        ask_service(service),
        queries,
        judged,
        check_fit(queries, judged),
        [Ranking(name, own) for name, own in rankings.items()],
        measures,
        asked,
        id_field,
    )
    return Comparison(found)
