"""Rankings of a service in this process, as a notebook measures them."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import pytest

import paperwasp
from paperwasp.errors import InvalidInput
from paperwasp.relevance import evaluate
from paperwasp.relevance.collection import BadCollection
from paperwasp.relevance.measuring import NoMeasures
from paperwasp.relevance.measuring import evaluate as evaluate_rankings
from paperwasp.relevance.rankings import YQL, Ranking, ask_service
from paperwasp.relevance.report import means_html
from tests.relevance.test_commands import DOCUMENTS, SCHEMA

QUERIES = {"q1": "blue", "q2": "giant steps", "q3": "nothing judged"}
RANKINGS = {"words": {"ranking": "words"}, "votes": {"ranking": "votes"}}


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        assert service.feed(DOCUMENTS).ok == len(DOCUMENTS)
        yield service


@pytest.mark.parametrize("judgments", [{"q1": {"b": 1, "a": 0}, "q2": {"c": 1}}, {"q1": "b", "q2": ["c"]}])
def test_relevant_documents_are_found_at_their_places(service: paperwasp.Service, judgments: object) -> None:
    """Blue: by words a, b; by votes b, a. Giant steps: by words c first; by votes e, c, d. What has one word counts."""
    found = evaluate(service, QUERIES, judgments, RANKINGS, ["RR@10"])  # type: ignore[arg-type]
    assert found.query_rows("RR@10") == [
        {"query": "blue", "words": 0.5, "votes": 1.0},
        {"query": "giant steps", "words": 1.0, "votes": 0.5},
    ]
    first, second = found.rows()
    assert (first["ranking"], first["measure"], first["mean"]) == ("words", "RR@10", 0.75)
    assert (second["mean"], second["difference"], second["won"], second["lost"]) == (0.75, 0.0, 1, 1)
    assert found.to_pandas()["mean"].tolist() == [0.75, 0.75]
    assert found.queries_to_pandas("RR@10")["votes"].tolist() == [1.0, 0.5]
    assert "words RR@10 0.750" in repr(found)
    assert "<b>0.7500</b>" in found._repr_html_()
    with pytest.raises(InvalidInput, match="'AP' was not measured, but RR@10"):
        found.query_rows("AP")


def test_matching_hits_and_parameters_are_as_one_says(service: paperwasp.Service) -> None:
    judged = {"q2": {"d": 1}}
    for options, expected in (
        ({}, 1 / 3),
        ({"hits": 2}, 0.0),
        ({"yql": 'select * from article where {grammar: "all"}userInput(@query)'}, 0.0),
        ({"parameters": {"filter": "+title:none"}, "yql": "select * from article where false"}, 0.0),
    ):
        found = evaluate(service, QUERIES, judged, {"votes": {"ranking": "votes"}}, ["RR@10"], **options)
        assert found.rows()[0]["mean"] == pytest.approx(expected), options


PASSAGES = """
schema passage {
    document passage {
        field page type string {
            indexing: summary | attribute
        }
        field votes type int {
            indexing: summary | attribute
        }
    }
    rank-profile votes {
        first-phase {
            expression: attribute(votes)
        }
    }
}
"""


def test_a_document_counts_at_the_place_of_its_first_passage() -> None:
    """Passages of a, b, a, c, b: the documents are a, b, c."""
    with paperwasp.Service(PASSAGES) as service:
        pages = [{"id": str(at), "page": page, "votes": 9 - at} for at, page in enumerate("abacb")]
        assert service.feed(pages).ok == len(pages)
        found = evaluate(
            service,
            {"q1": "first", "q2": "third"},
            {"q1": ["a"], "q2": ["c"]},
            {"votes": {"ranking": "votes"}},
            ["RR@10", "P@3"],
            yql="select * from passage where true",
            id_field="page",
        )
    (measured,) = found.evaluation.measured
    assert [(each.id, each.score) for each in measured.run["q1"]] == [("a", 9.0), ("b", 8.0), ("c", 6.0)]
    assert measured.values["RR@10"].tolist() == pytest.approx([1, 1 / 3])
    assert measured.values["P@3"].tolist() == pytest.approx([1 / 3, 1 / 3])


def test_measures_are_checked_before_anything_is_asked() -> None:
    def ask(parameters: Mapping[str, object]) -> Mapping[str, Any]:
        raise AssertionError("asked")

    for measure in ("nDGC@10", "R@0", "P", "nDCG(foo=1)@10", "alpha_nDCG@10"):
        with pytest.raises(NoMeasures, match=re.escape(f"'{measure}'")):
            evaluate_rankings(ask, QUERIES, {"q1": {"a": 1}}, ["q1"], [Ranking("words")], ["AP", measure], {})


@pytest.mark.parametrize(
    ("queries", "judgments", "measures", "error", "message"),
    [
        ({}, {"q1": ["a"]}, ["AP"], BadCollection, "no query"),
        (QUERIES, {}, ["AP"], BadCollection, "no judgment"),
        (QUERIES, {"other": ["a"]}, ["AP"], BadCollection, "like 'q1', and in the judgments like 'other'"),
        (QUERIES, {"q1": {"a": "much"}}, ["AP"], BadCollection, "query 'q1': 'much' is not a number"),
        (QUERIES, {"q1": {"a": 0.9}}, ["AP"], BadCollection, "query 'q1': '0.9' is not a whole number"),
        (QUERIES, {"q1": ["a"]}, ["beauty"], NoMeasures, "beauty"),
    ],
)
def test_what_does_not_fit_is_refused(
    service: paperwasp.Service,
    queries: dict[str, str],
    judgments: dict[str, list[str]],
    measures: list[str],
    error: type[Exception],
    message: str,
) -> None:
    with pytest.raises(error, match=message):
        evaluate(service, queries, judgments, RANKINGS, measures)


def test_a_ranking_that_cannot_score_is_told() -> None:
    """As traces of its queries tell it, where those of the first queries all do."""
    schema = SCHEMA.replace("index: enable-bm25", "match: text").replace(
        "expression: bm25(title)", "expression: bm25(title) + bm25(note)"
    )
    field = "field note type string { indexing: index\nindex: enable-bm25 }\n        field votes"
    rankings = [Ranking(name, parameters) for name, parameters in RANKINGS.items()]
    with paperwasp.Service(schema.replace("field votes", field)) as service:
        service.feed(DOCUMENTS)
        found = evaluate_rankings(
            ask_service(service),
            QUERIES,
            {"q1": {"b": 1}, "q2": {"c": 1}},
            ["q1", "q2"],
            rankings,
            ["RR@10"],
            {"yql": YQL},
        )
    assert found.measured[0].notes == [
        "bm25(note) is 0 in all hits: no term of the query searches field note",
        "bm25(title) takes each match for one in a text of average length, as Vespa does: field title has no 'index: "
        "enable-bm25'",
    ]
    assert not found.measured[1].notes
    assert found.to_json()["rankings"][0]["notes"] == found.measured[0].notes
    assert "no term of the query searches field note" in means_html(found)
