"""Bounds of explanations: how many hits have one, and what becomes of them when time or room is short."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paperwasp import limits
from paperwasp.core.clock import OutOfTime
from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.literal import parse_tensor
from paperwasp.errors import TooLarge
from paperwasp.ranking.tensor_run import TensorNode, batch
from paperwasp.schema import parse_schemas
from paperwasp.search.features.block import Block
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.query import Hit
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from paperwasp.search.show import explaining
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

PLACE = """schema place {
  document place {
    field number type int { indexing: attribute }
    field at type tensor<float>(x[2]) { indexing: attribute }
  }
  rank-profile numbers { first-phase { expression: attribute(number) * 2 } }
  rank-profile tensors { first-phase { expression: sum(attribute(at) * attribute(at)) } }
}"""
COUNT = limits.EXPLAINED_HITS + 20


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    with started(tmp_path_factory.mktemp("places"), parse_schemas({"schemas/place.sd": PLACE}).schemas) as node:
        at = parse_tensor("tensor<float>(x[2]):[1, 2]")
        node.apply(*[Put(DocumentId("n", "place", str(n)), {"number": n, "at": at}) for n in range(COUNT)])
        yield node


def explained(node: TestNode, profile: str, hits: int = COUNT) -> list[Hit]:
    request = query_of(TrueItem(), rank_profile=profile, hits=hits, trace_level=1, explain_level=1)
    return list(search(node.node.reader.view(), request, ServedSchemas()).hits)


def test_the_first_hits_are_explained(node: TestNode) -> None:
    hits = explained(node, "numbers")
    for hit in hits[: limits.EXPLAINED_HITS]:
        assert hit.explanation is not None
        assert hit.explanation.phases[0]["tree"]["value"] == hit.relevance
    for hit in hits[limits.EXPLAINED_HITS :]:
        assert hit.explanation is not None
        assert hit.explanation.note == "only the first 100 hits are explained"


def test_without_time_there_are_hits_all_the_same(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    def over(*_: object) -> None:
        raise OutOfTime

    monkeypatch.setattr(explaining, "rendered", over)
    for hit in explained(node, "numbers", 3):
        assert hit.explanation is not None
        assert hit.explanation.note == "there was no time left to explain the hit"


def test_what_is_too_large_alone_is_told_to_be(node: TestNode, monkeypatch: pytest.MonkeyPatch) -> None:
    """The sum of the product was worked without the product; blocks of many hits are parted."""

    def limited(node: TensorNode, block: Block) -> TensorBatch:
        if block.hits > 2 or node.key[0] == "join":
            raise TooLarge("a tensor of 10 cells; at most 9")
        return batch(node, block)

    monkeypatch.setattr(explaining, "batch", limited)
    hits = explained(node, "tensors", 5)
    assert len(hits) == 5
    for hit in hits:
        assert hit.explanation is not None
        tree = hit.explanation.phases[0]["tree"]
        assert tree["value"] == hit.relevance == 5.0
        assert tree["children"][0]["value"] == "too large to be shown: a tensor of 10 cells; at most 9"
        assert tree["children"][0]["children"][0]["value"] == "tensor<float>(x[2]):[1.0,2.0]"
