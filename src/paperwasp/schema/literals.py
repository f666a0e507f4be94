"""`rank: literal`: beside the index of a text, one of its words as they are, for ranking alone.

A string field `title` of the document makes the field `title_literal`, neither stemmed nor rid of accents, whose rank
type is `empty` and whose weight is that of `title` and 100 more. Queries for words in `title` rank by it too.
Vespa: the same, by its processor of literal boosts; its reference no longer tells of it.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from paperwasp.document.types import STRING
from paperwasp.schema.data_types import TypeScope
from paperwasp.schema.fields import resolve_field
from paperwasp.schema.model import Field
from paperwasp.schema.problems import Problems
from paperwasp.schema.syntax import parse_schema_text

LITERAL_SUFFIX: Final = "_literal"
_WEIGHT: Final = 100
_TEXT: Final = """schema made {
  field %(name)s_literal type string {
    indexing: input %(name)s | tokenize | index
    stemming: none
    normalizing: none
    rank-type: empty
    weight: %(weight)d
  }
}"""


def has_literal(field: Field) -> bool:
    """Whether another field is made of its words as they are."""
    return field.rank_literal and field.in_document and field.type == STRING and field.imported is None


def literal_field(field: Field, scope: TypeScope, problems: Problems) -> Field | None:
    """The field that is made of the words of another."""
    text = _TEXT % {"name": field.name, "weight": field.weight + _WEIGHT}
    node = next(parse_schema_text(text, "").all("field"))
    resolved = resolve_field(node, scope, "none", (), problems, in_document=False)
    return None if resolved is None else replace(resolved[0], position=field.position)
