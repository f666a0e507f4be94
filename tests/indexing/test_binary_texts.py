"""Texts that could not be decoded are refused where they would be tokenized.

Authority: LinguisticsAnnotator.java (`isLikelyBinaryData`), ilscripts.def of Vespa: both thresholds must be exceeded.
"""

from __future__ import annotations

import pytest

from paperwasp import limits
from paperwasp.container.document.routes import DocumentRoute
from paperwasp.document.ids import DocumentId
from paperwasp.document.json_format import DocumentReader
from paperwasp.document.plain_fields import PlainFields
from paperwasp.errors import InvalidInput
from paperwasp.indexing import processor_of
from paperwasp.indexing.binary_texts import tokenized_fields
from paperwasp.schema import parse_schemas

SCHEMA = """schema d { document d {
    field text type string { indexing: index | summary }
    field texts type array<string> { indexing: index }
    field tags type weightedset<string> { indexing: index }
    field word type string { indexing: index
      match: word }
    field kind type string { indexing: attribute }
    field note type string { indexing: summary }
    field link type uri { indexing: index }
  }
  field all type string { indexing: input note . "" | index }
}"""
D = parse_schemas({"schemas/d.sd": SCHEMA}).schemas["d"]
ROUTE = DocumentRoute(
    D.document, DocumentReader(D.document), PlainFields(D.document), (), False, processor_of(D), tokenized_fields(D)
)
ID = DocumentId("n", "d", "1")
BROKEN = "\ufffd" * (limits.REPLACEMENT_CHARACTERS + 1)
TOLD = "Invalid document 'id:n:d::1': some text of length 5001 is classified as binary data as it contains 5001 Unicode"


@pytest.mark.parametrize(
    "fields", [{"text": BROKEN}, {"texts": ["a", BROKEN]}, {"tags": {BROKEN: 1}}, {"note": BROKEN}]
)
def test_too_many_replacement_characters(fields: dict[str, object]) -> None:
    with pytest.raises(InvalidInput, match=TOLD):
        ROUTE.read_put(ID, fields)
    with pytest.raises(InvalidInput, match=TOLD):
        ROUTE.read_update(ID, {name: {"assign": value} for name, value in fields.items()})


@pytest.mark.parametrize(
    "fields",
    [
        {"text": BROKEN[1:]},
        {"text": BROKEN + "a" * 3 * len(BROKEN)},
        {"texts": [BROKEN[1:], BROKEN[1:]]},
        {"word": BROKEN},
        {"kind": BROKEN},
        {"link": BROKEN},
    ],
)
def test_texts_that_are_kept(fields: dict[str, object]) -> None:
    kept = ROUTE.read_put(ID, fields)
    assert {name: kept[name] for name in fields} == fields
    assert ROUTE.read_update(ID, {name: {"assign": value} for name, value in fields.items()})
