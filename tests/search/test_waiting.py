"""debugWait and debugAttributeWait: hits are waited for one by one, and what was waited for in time is the answer."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.errors import Timeout
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.boolean import TrueItem
from paperwasp.search.query import SearchResponse
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import TestNode, started
from tests.search.queries import query_of

SCHEMA = """
schema s {
  document s {
    field seconds type double { indexing: attribute }
    field steps type array<double> { indexing: attribute }
  }
  rank-profile given { first-phase { expression: debugWait(0.002, 0) } }
  rank-profile busy { first-phase { expression: debugWait(0.002, 1).out } }
  rank-profile read { first-phase { expression: debugAttributeWait(seconds, 0) } }
  rank-profile element { first-phase { expression: debugAttributeWait(steps, 1) } }
}
"""
SCHEMAS = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
LONG_SECONDS = 1000.0
WAITS: list[dict[str, object]] = [
    {"seconds": 0.003, "steps": [0.001, LONG_SECONDS]},
    {},
    {"seconds": LONG_SECONDS, "steps": [0.002]},
    {"seconds": 0.001, "steps": []},
]


@pytest.fixture
def node(tmp_path: Path) -> Iterator[TestNode]:
    with started(tmp_path, SCHEMAS) as node:
        for number, fields in enumerate(WAITS):
            node.apply(Put(DocumentId.parse(f"id:n:s::{number}"), fields))
        yield node


def found(node: TestNode, profile: str, seconds: float = 0.0, soft_timeout: bool = True) -> SearchResponse:
    deadline_ns = time.monotonic_ns() + int(seconds * 1e9) if seconds else 0
    request = query_of(TrueItem(), rank_profile=profile, deadline_ns=deadline_ns, soft_timeout=soft_timeout)
    return search(node.node.reader.view(), request, ServedSchemas())


@pytest.mark.parametrize("profile", ["given", "busy"])
def test_a_hit_scores_what_was_waited_for_it(node: TestNode, profile: str) -> None:
    assert all(hit.relevance >= 0.002 for hit in found(node, profile).hits)


def test_the_first_element_says_how_long(node: TestNode) -> None:
    waited = {hit.document_id[-1]: hit.relevance for hit in found(node, "element").hits}
    assert waited["0"] >= 0.001 and waited["2"] >= 0.002
    assert waited.keys() == {"0", "1", "2", "3"}


def test_hits_that_were_waited_for_in_time_are_the_answer(node: TestNode) -> None:
    response = found(node, "read", seconds=1.5)
    assert {hit.document_id[-1] for hit in response.hits} == {"0", "1"}
    assert response.degraded == {"timeout"} and response.coverage == 0.5


def test_without_a_soft_timeout_there_is_no_answer(node: TestNode) -> None:
    with pytest.raises(Timeout):
        found(node, "read", seconds=0.2, soft_timeout=False)
