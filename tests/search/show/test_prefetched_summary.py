"""The summary class of single attributes, which Vespa's schemas have without saying so."""

from __future__ import annotations

from unittest.mock import patch

from paperwasp.schema import parse_schemas
from paperwasp.storage.documents.document_store import DocumentStore
from tests.search.show.test_document_summaries import node, shown

THING = """
schema thing {
  document thing {
    field title type string { indexing: index | summary | attribute
      bolding: on }
    field teaser type string { indexing: attribute | summary }
    field shade type string { indexing: attribute }
    field sizes type array<int> { indexing: attribute | summary }
    field weights type weightedset<string> { indexing: attribute }
    field count type int { indexing: attribute | summary }
    field vector type tensor<float>(x[2]) { indexing: attribute }
    field picture type raw { indexing: attribute }
    field when type predicate { indexing: attribute
      index { arity: 2 } }
    field place type position { indexing: attribute }
    field note type string { indexing: summary }
  }
  document-summary cut { summary teaser { dynamic } }
  document-summary other { summary note {} }
}
"""


def test_single_attributes_are_a_summary_of_their_own() -> None:
    """ImplicitSummaries.java in Vespa's config-model: of attributes with one value, also those that say no summary,
    but those whose words are marked."""
    schema = parse_schemas({"schemas/thing.sd": THING.strip()}).schemas["thing"]
    assert list(schema.summaries["attributeprefetch"].fields) == ["shade", "count", "vector", "picture"]
    assert "shade" not in schema.summaries["default"].fields
    own = THING.replace("document-summary other", "document-summary attributeprefetch")
    named = parse_schemas({"schemas/thing.sd": own.strip()}).schemas["thing"].summaries["attributeprefetch"]
    assert list(named.fields) == ["note", "shade", "count", "vector", "picture"]


def test_the_summary_of_single_attributes_is_read_from_memory() -> None:
    with node() as album, patch.object(DocumentStore, "multi_get", side_effect=AssertionError):
        fields = shown(album, summary="attributeprefetch")
    assert fields | {"vector": 0} == {"year": 1959, "genre": "Modal Jazz", "vector": 0}
