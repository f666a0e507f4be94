"""Ranking as pyvespa's users ask for it: tensors of queries in every form, phases, evaluators, collected features.

The expected scores are worked by hand.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from vespa.application import Vespa
from vespa.evaluation import VespaEvaluator, VespaFeatureCollector
from vespa.exceptions import VespaError
from vespa.io import VespaQueryResponse
from vespa.package import (
    ApplicationPackage,
    Document,
    Field,
    FieldSet,
    Function,
    GlobalPhaseRanking,
    RankProfile,
    Schema,
)

from tests import web
from tests.service.running import RunningService, running_service

pytestmark = pytest.mark.clients
COLUMN = ["attribute", "summary"]
DOCUMENTS = [
    {"title": "blue train", "vector": [1, 0], "tokens": {"0": [1, 0], "1": [0, 2]}, "bits": {"0": "01FE"}},
    {"title": "blue blue moon", "vector": [0, 1], "tokens": {"0": [3, 0]}, "bits": {"0": [1, -2]}},
    {"title": "giant steps", "vector": [1, 1], "tokens": {"blocks": {"0": [1, 1]}}, "bits": {}},
]
EVERYTHING = 'select * from doc where rank(true, title contains "blue")'


def package() -> ApplicationPackage:
    fields = [
        Field("id", "string", COLUMN, match=["word"], rank="filter"),
        Field("title", "string", ["index", "summary"], index="enable-bm25"),
        Field("vector", "tensor<float>(x[2])", COLUMN),
        Field("tokens", "tensor<float>(dt{},x[2])", COLUMN),
        Field("bits", "tensor<int8>(dt{},b[2])", COLUMN),
    ]
    max_sim = "sum(reduce(sum(query(qt) * attribute(tokens), x), max, dt), qt)"
    same_bits = "sum(sum(query(bits) == attribute(bits), b), dt)"
    profiles = [
        RankProfile("text", first_phase="bm25(title)", match_features=["bm25(title)"]),
        RankProfile(
            "near",
            inputs=[("query(q)", "tensor<float>(x[2])")],
            functions=[Function("product", "sum(query(q) * attribute(vector))")],
            first_phase="product",
        ),
        RankProfile(
            "fused",
            inherits="near",
            first_phase="bm25(title)",
            global_phase=GlobalPhaseRanking("reciprocal_rank_fusion(bm25(title), product)", rerank_count=10),
        ),
        RankProfile("late", inputs=[("query(qt)", "tensor<float>(qt{},x[2])")], first_phase=max_sim),
        RankProfile("bits", inputs=[("query(bits)", "tensor<int8>(dt{},b[2])")], first_phase=same_bits),
    ]
    schema = Schema("doc", Document(fields), fieldsets=[FieldSet("default", ["title"])], rank_profiles=profiles)
    return ApplicationPackage("ranking", schema=[schema])


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    with running_service(tmp_path_factory.mktemp("ranking") / "data") as running:
        answer = web.post(
            running.config_url + "/application/v2/tenant/default/prepareandactivate",
            content=package().to_zip().getvalue(),
            headers={"Content-Type": "application/zip"},
            timeout=30,
        )
        assert answer.status_code == 200, answer.text
        yield running


@pytest.fixture(scope="module")
def vespa(service: RunningService) -> Vespa:
    host, _, port = service.url.rpartition(":")
    connected = Vespa(url=host, port=int(port))
    connected.wait_for_application_up(max_wait=30)
    for number, fields in enumerate(DOCUMENTS, 1):
        fed = connected.feed_data_point("doc", f"d{number}", {"id": f"d{number}", **fields})
        assert fed.is_successful(), fed.json
    return connected


def relevances(vespa: Vespa, ranking: str, **inputs: Any) -> dict[str, float]:
    """By id, the best first."""
    body = {"yql": EVERYTHING, "ranking": ranking, **{f"input.query({name})": value for name, value in inputs.items()}}
    found = vespa.query(body=body)
    assert isinstance(found, VespaQueryResponse)
    return {hit["fields"]["id"]: hit["relevance"] for hit in found.hits}


@pytest.mark.parametrize(
    "q",
    [
        [2, 3],
        "[2,3]",
        "tensor<float>(x[2]):[2,3]",
        "{{x:0}:2,{x:1}:3}",
        "4000000040400000",
        {"values": [2, 3]},
        {"type": "tensor<float>(x[2])", "values": [2, 3]},
        {"values": "4000000040400000"},
        {"cells": [{"address": {"x": "0"}, "value": 2}, {"address": {"x": "1"}, "value": 3}]},
    ],
    ids=str,
)
def test_a_vector_of_a_query_in_every_form(vespa: Vespa, q: object) -> None:
    assert relevances(vespa, "near", q=q) == {"d3": 5.0, "d2": 3.0, "d1": 2.0}


@pytest.mark.parametrize(
    "qt",
    [
        {"0": [1, 0], "1": [0, 2]},
        json.dumps({"0": [1, 0], "1": [0, 2]}),
        "{0:[1,0],1:[0,2]}",
        {"blocks": {"0": [1, 0], "1": [0, 2]}},
        {"blocks": [{"address": {"qt": "0"}, "values": [1, 0]}, {"address": {"qt": "1"}, "values": [0, 2]}]},
    ],
    ids=str,
)
def test_late_interaction_with_vectors_in_every_form(vespa: Vespa, qt: object) -> None:
    assert relevances(vespa, "late", qt=qt) == {"d1": 5.0, "d2": 3.0, "d3": 3.0}


@pytest.mark.parametrize("bits", [{"0": [1, -2]}, {"0": "01FE"}, "{0:01fe}"], ids=str)
def test_bytes_of_a_query_as_hex(vespa: Vespa, bits: object) -> None:
    assert relevances(vespa, "bits", bits=bits) == {"d1": 2.0, "d2": 2.0, "d3": 0.0}


def test_ranks_are_fused_in_the_global_phase(vespa: Vespa) -> None:
    found = relevances(vespa, "fused", q=[2, 3])
    assert list(found) == ["d2", "d3", "d1"]
    assert list(found.values()) == pytest.approx([1 / 61 + 1 / 62, 1 / 63 + 1 / 61, 1 / 62 + 1 / 63])


def test_a_tensor_of_another_type_is_refused_with_both(vespa: Vespa) -> None:
    with pytest.raises(VespaError, match=r"expected 2 value\(s\), found 3 \(it is to be a tensor<float>\(x\[2\]\)\)"):
        relevances(vespa, "near", q=[1, 2, 3])


Relevant = dict[str, set[str] | dict[str, float]]
"""Query → the ids of the documents that it is to find."""


def asking(ranking: str) -> Callable[..., dict[str, Any]]:
    return lambda text, hits: {
        "yql": f'select * from doc where userInput("{text}")',
        "hits": hits,
        "ranking": ranking,
    }


def test_an_evaluator_measures_a_profile(vespa: Vespa) -> None:
    relevant: Relevant = {"q1": {"d2"}, "q2": {"d3"}}
    found = VespaEvaluator(
        queries={"q1": "blue", "q2": "giant"},
        relevant_docs=relevant,
        vespa_query_fn=asking("text"),
        app=vespa,
        id_field="id",
        write_csv=False,
    )()
    assert (found["accuracy@1"], found["mrr@10"], found["ndcg@10"]) == (1.0, 1.0, 1.0)


def test_features_are_collected_of_what_is_relevant_and_of_others(vespa: Vespa) -> None:
    relevant: Relevant = {"q1": {"d1"}}
    collected = VespaFeatureCollector(
        queries={"q1": "blue"},
        relevant_docs=relevant,
        vespa_query_fn=asking("text"),
        app=vespa,
        id_field="id",
        random_hits_strategy="ratio",
        random_hits_value=1.0,
        collect_rankfeatures=True,
        write_csv=False,
    ).collect()
    rows = {row["doc_id"]: row for row in collected["results"]}
    assert {id: row["relevance_label"] for id, row in rows.items()} == {"d1": 1.0, "d2": 0.0}
    for row in rows.values():
        assert row["match_bm25(title)"] == row["rank_bm25(title)"] == row["relevance_score"] > 0
