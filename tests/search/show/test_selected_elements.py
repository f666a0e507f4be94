"""Elements that a summary feature names: https://docs.vespa.ai/en/reference/schemas/schemas.html#select-elements-by"""

from __future__ import annotations

from pathlib import Path

import orjson
import pytest

from paperwasp.document.ids import DocumentId
from paperwasp.document.operations import Put
from paperwasp.schema import parse_schemas
from paperwasp.search.operators.word import WordItem
from paperwasp.search.search import search
from paperwasp.search.served import ServedSchemas
from tests.content.nodes import started
from tests.search.queries import query_of

SCHEMA = """
schema note {
  document note {
    field lines type array<string> {
      indexing: index | summary
      index: enable-bm25
    }
    field places type array<int> { indexing: attribute | summary }
  }
  document-summary best {
    summary lines { select-elements-by: elementwise(bm25(lines),i,double) }
  }
  document-summary told {
    omit-summary-features
    summary lines { select-elements-by: told }
    summary places { select-elements-by: told }
  }
  rank-profile words {
    summary-features { elementwise(bm25(lines),i,double) }
  }
  rank-profile told {
    function told() { expression: tensor(i{}):{"0":1, "02":1, "2x":1, "other":1, "7":1} }
    summary-features: told
  }
  rank-profile numbers {
    function told() { expression: 2 }
    summary-features: told
  }
}
"""
CASES = [
    ("words", "best", {"lines": ["red fox", "the red"]}),
    ("default", "best", {}),
    ("told", "best", {}),
    # 0, 2 (from 02), 2 (from 2x), 0 (from other), 7: beyond the last
    ("told", "told", {"lines": ["red fox", "red fox", "the red", "the red"], "places": [7, 7, 9, 9]}),
    ("numbers", "told", {}),
    ("words", "told", {}),
]


@pytest.mark.parametrize(("profile", "summary", "shown"), CASES)
def test_elements_are_those_that_the_feature_names(
    tmp_path: Path, profile: str, summary: str, shown: dict[str, object]
) -> None:
    schemas = dict(parse_schemas({"schemas/note.sd": SCHEMA}).schemas)
    with started(tmp_path, schemas) as node:
        fields = {"lines": ["red fox", "a dog", "the red"], "places": [7, 8, 9]}
        node.apply(Put(DocumentId("n", "note", "1"), fields))
        request = query_of(WordItem("lines", "red"), rank_profile=profile, summary=summary)
        [hit] = search(node.node.reader.view(), request, ServedSchemas()).hits
        assert orjson.loads(hit.fields) == shown
