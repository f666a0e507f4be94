"""Rankings of a service in this process, as a notebook measures them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

import paperwasp
from paperwasp.errors import InvalidInput
from paperwasp.relevance import evaluate
from paperwasp.relevance.collection import BadCollection
from paperwasp.relevance.measuring import NoMeasures
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


@pytest.mark.parametrize(
    ("queries", "judgments", "measures", "error", "message"),
    [
        ({}, {"q1": ["a"]}, ["AP"], BadCollection, "no query"),
        (QUERIES, {}, ["AP"], BadCollection, "no judgment"),
        (QUERIES, {"other": ["a"]}, ["AP"], BadCollection, "like 'q1', and in the judgments like 'other'"),
        (QUERIES, {"q1": {"a": "much"}}, ["AP"], BadCollection, "query 'q1': 'much' is not a number"),
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
