"""Short ways of vector queries against the general ones: a nearestNeighbor alone, and features that are kept.

A query that is traced, and one whose rank profile keeps nothing, go the general way.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import numpy as np
import pytest

import paperwasp.search.features.bm25 as bm25_module
import paperwasp.search.ready_profile as ready_profile
from paperwasp.base.records import replace
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put, Remove
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.ranking import CompiledProfile
from paperwasp.schema import parse_schemas
from paperwasp.search.features.compile import served_profile
from paperwasp.search.phases import rank
from paperwasp.search.phases.scoring import FeatureNotes, KnownFeatures, reused_features
from paperwasp.search.query import GlobalPage, SearchResponse
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.queries import query_of

METRICS = ("euclidean", "dotproduct")
SCHEMA = "\n".join(
    [
        "schema s { document s {",
        "field title type string { indexing: index\n index: enable-bm25\n stemming: none }",
        *(
            f"field {metric} type tensor<float>(x[2]) {{ indexing: attribute | index\n"
            f"attribute {{ distance-metric: {metric} }} }}"
            for metric in METRICS
        ),
        "}",
        *(
            f"rank-profile {metric} {{ inputs {{ query(q) tensor<float>(x[2]) }}\n"
            f"first-phase {{ expression: closeness(field,{metric}) }}\n"
            f"match-features: closeness(field,{metric}) distance(field,{metric}) }}\n"
            f"rank-profile both_{metric} {{ inputs {{ query(q) tensor<float>(x[2]) }}\n"
            f"first-phase {{ expression: bm25(title) + closeness(field,{metric}) }}\n"
            "global-phase { rerank-count: 30\n"
            f"expression: reciprocal_rank_fusion(bm25(title), closeness(field,{metric})) }}\n"
            f"match-features: bm25(title) closeness(field,{metric}) firstPhase }}"
            for metric in METRICS
        ),
        "}",
    ]
)
DOCUMENTS = 400
WORDS = ("red", "green", "blue", "black")


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    """Documents whose vectors are often the same, some without one, some gone."""
    chance = random.Random(SEED)
    with closing(start(tmp_path_factory.mktemp("node"), None)) as node:
        schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
        node.node.configure(1, schemas, {}, 0)
        for number in range(DOCUMENTS):
            values: dict[str, Any] = {"title": " ".join(chance.choices(WORDS, k=chance.randrange(1, 6)))}
            if chance.random() < 0.9:
                values |= {metric: [chance.randrange(-9, 10), chance.randrange(-9, 10)] for metric in METRICS}
            node.apply(Put(DocumentId.parse(f"id:n:s::{number}"), read_fields(schemas["s"].document, values)))
        for number in range(0, DOCUMENTS, 7):
            node.apply(Remove(DocumentId.parse(f"id:n:s::{number}")))
        yield node


def _asked(node: TestNode, where: str, profile: str, **named: Any) -> SearchResponse:
    tree = parse_yql(f"select * from s where {where}").tree
    inputs = {"q": parse_tensor("tensor<float>(x[2]):[2,-3]")}
    return search(node.node.reader.view(), query_of(tree, ("s",), profile, inputs=inputs, **named), ServedSchemas())


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("notes", ["", ", approximate: false", ", distanceThreshold: 4.5"])
@pytest.mark.parametrize(("target", "hits", "offset"), [(1, 1, 0), (20, 10, 0), (20, 50, 5), (1000, 30, 200)])
def test_a_nearest_neighbor_alone_answers_as_the_general_way(
    node: TestNode, monkeypatch: pytest.MonkeyPatch, metric: str, notes: str, target: int, hits: int, offset: int
) -> None:
    where = f"{{targetHits: {target}{notes}}}nearestNeighbor({metric}, q)"
    general = _asked(node, where, metric, hits=hits, offset=offset, trace_level=1)
    monkeypatch.setattr(rank, "exhaustive", None)  # the short way does not score blocks
    short = _asked(node, where, metric, hits=hits, offset=offset)
    assert short == replace(general, trace=None, summary_ns=short.summary_ns)
    assert short.total_count >= min(target, 1)


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("words", ["title contains 'red'", "weakAnd(title contains 'red', title contains 'blue')"])
@pytest.mark.parametrize("on_node", [True, False])
def test_kept_features_are_those_that_are_computed_again(
    node: TestNode, monkeypatch: pytest.MonkeyPatch, metric: str, words: str, on_node: bool
) -> None:
    where = f"{words} or ({{targetHits: 40}}nearestNeighbor({metric}, q))"
    named = {"hits": 30, "global_hits": 30, "global_page": GlobalPage(10) if on_node else None}
    served = served_profile(node.node.reader.view().schemas["s"], f"both_{metric}")
    assert served is not None and isinstance(served.compiled, CompiledProfile)
    assert reused_features(served.compiled) == {"bm25(title)", f"closeness(field,{metric})"}
    kept = _asked(node, where, f"both_{metric}", **named)
    monkeypatch.setattr(ready_profile, "reused_features", lambda _: frozenset[str]())
    computed = _asked(node, where, f"both_{metric}", **named)
    assert len(kept.hits) == (10 if on_node else 30)
    assert kept == replace(computed, summary_ns=kept.summary_ns)


@pytest.mark.parametrize(
    "where",
    [
        "title contains 'red'",
        "weakAnd(title contains 'red', title contains 'blue') or ({targetHits: 40}nearestNeighbor(euclidean, q))",
        "({targetHits: 40}nearestNeighbor(euclidean, q)) or (title contains 'red' and title contains 'black')",
        "title contains 'green' or (title contains 'red' and title contains 'black') or "
        "({targetHits: 40}nearestNeighbor(euclidean, q))",
        "rank({targetHits: 40}nearestNeighbor(euclidean, q), title contains 'red', title contains 'none')",
        "title contains phrase('red', 'blue') or title contains 'black'",
        "title contains ({significance: 0.3}'red') or title contains ({label: 'x'}'blue') or title contains 'none'",
        "true",
    ],
)
def test_bm25_of_words_by_a_kernel_is_that_of_each_term(
    node: TestNode, monkeypatch: pytest.MonkeyPatch, where: str
) -> None:
    """Words that count everywhere, words that count within an operator, and both: the same sums, to the last bit."""
    named = {"hits": 400, "global_hits": 30, "global_page": GlobalPage(400)}
    words_of, found = bm25_module._words_of, list[bool]()

    def noted(*given: Any) -> Any:
        words = words_of(*given)
        found.append(words is not None)
        return words

    monkeypatch.setattr(bm25_module, "_words_of", noted)
    by_kernel = _asked(node, where, "both_euclidean", **named)
    monkeypatch.setattr(bm25_module, "_words_of", lambda *_: None)
    by_term = _asked(node, where, "both_euclidean", **named)
    assert by_kernel == replace(by_term, summary_ns=by_kernel.summary_ns)
    assert len(by_kernel.hits) > 20
    is_mixed = "green" in where or "phrase" in where or where == "true"
    assert any(found) != is_mixed


def test_features_are_known_of_hits_that_all_are() -> None:
    known = KnownFeatures(np.array([2, 5, 9], np.uint32), {"f": np.array([0.2, 0.5, 0.9])})
    assert {name: values.tolist() for name, values in known.of(np.array([2, 9], np.uint32)).items()} == {
        "f": [0.2, 0.9]
    }
    assert known.of(np.array([2, 3], np.uint32)) == {}
    assert known.of(np.array([10], np.uint32)) == {}
    assert known.of(np.array([], np.uint32)) == {}
    assert FeatureNotes(frozenset(["f"])).known().of(np.array([2], np.uint32)) == {}
