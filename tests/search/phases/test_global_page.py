"""The global phase on a content node against that of the container: the same page, whoever ranks."""

from __future__ import annotations

import random
from collections.abc import Iterator
from contextlib import closing

import pytest

from paperwasp.container.search.global_ranking import GlobalRanking
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import read_fields
from paperwasp.document.operations import Put
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.ranking import CompiledProfile
from paperwasp.schema import parse_schemas
from paperwasp.search.features.compile import served_profile
from paperwasp.search.query import GlobalPage
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.chance import SEED
from tests.content.nodes import TestNode, start
from tests.search.queries import query_of

EXPRESSIONS = (
    "attribute(a) - firstPhase",
    "reciprocal_rank_fusion(attribute(a), attribute(b))",
    "normalize_linear(attribute(a)) + normalize_linear(attribute(b)) * 3",
    "if (attribute(a) > 12, sqrt(attribute(b) - 10), -attribute(a))",
    "1",
)
SCHEMA = "\n".join(
    [
        "schema s {",
        "document s {",
        "field a type int { indexing: attribute | summary }",
        "field b type int { indexing: attribute | summary }",
        "}",
        *(
            f"rank-profile p{number} {{ first-phase {{ expression: attribute(b) }}\n"
            f"global-phase {{ rerank-count: 10\n expression {{ {expression} }} }}\n"
            "match-features: attribute(a) firstPhase }"
            for number, expression in enumerate(EXPRESSIONS)
        ),
        "}",
    ]
)
DOCUMENTS = 40


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestNode]:
    chance = random.Random(SEED)
    with closing(start(tmp_path_factory.mktemp("node"), None)) as node:
        schemas = parse_schemas({"schemas/s.sd": SCHEMA}).schemas
        node.node.configure(1, schemas, {}, 0)
        for number in range(DOCUMENTS):
            values = {"a": chance.randrange(20), "b": chance.randrange(20)}
            node.apply(Put(DocumentId.parse(f"id:n:s::{number}"), read_fields(schemas["s"].document, values)))
        yield node


@pytest.mark.parametrize("expression", EXPRESSIONS)
@pytest.mark.parametrize("limit", [None, 0.02, 3.0])
@pytest.mark.parametrize(("rerank_count", "hits"), [(10, 5), (10, 25), (40, 10), (1, 3), (100, 100)])
def test_the_page_is_the_same(
    node: TestNode, expression: str, limit: float | None, rerank_count: int, hits: int
) -> None:
    view, served = node.node.reader.view(), ServedSchemas()
    profile = f"p{EXPRESSIONS.index(expression)}"
    tree = parse_yql("select * from s where a > 1").tree
    asked = max(rerank_count, hits)
    general = query_of(tree, ("s",), profile, hits=asked, global_hits=rerank_count)
    served_by = served_profile(view.schemas["s"], profile)
    assert served_by is not None
    compiled = served_by.compiled
    assert isinstance(compiled, CompiledProfile) and compiled.global_phase is not None
    phase = compiled.global_phase
    answer = search(view, general, served)
    ranked = GlobalRanking(phase, rerank_count, limit).ranked(answer.hits)
    on_node = query_of(tree, ("s",), profile, hits=asked, global_hits=rerank_count, global_page=GlobalPage(hits, limit))
    page = search(view, on_node, served)
    assert not answer.is_page
    assert page.is_page
    assert page.total_count == answer.total_count - (len(answer.hits) - len(ranked))
    expected = [hit._replace(global_inputs=None) for hit in ranked[:hits]]
    assert [hit.document_id for hit in page.hits] == [hit.document_id for hit in expected]
    for ours, theirs in zip(page.hits, expected, strict=True):
        assert ours == theirs


def test_one_that_is_not_asked_for_a_page_or_ranks_nothing_gives_none(node: TestNode) -> None:
    view, served = node.node.reader.view(), ServedSchemas()
    tree = parse_yql("select * from s where a < 0").tree
    nothing = query_of(tree, ("s",), "p0", hits=5, global_hits=5, global_page=GlobalPage(5))
    assert search(view, nothing, served).hits == ()
    every = parse_yql("select * from s where true").tree
    no_phase = query_of(every, ("s",), "unranked", hits=5, global_page=GlobalPage(5))
    assert not search(view, no_phase, served).is_page
