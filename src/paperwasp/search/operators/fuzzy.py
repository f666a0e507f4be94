"""fuzzy: values of attributes of strings that are like a word.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#fuzzy, ValidateFuzzySearcher
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

from paperwasp.base.records import dataclass
from paperwasp.errors import IllegalQuery
from paperwasp.schema.data_types import is_text
from paperwasp.schema.model import Schema
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.printing import annotated, call, string
from paperwasp.search.operators.registry import leaf
from paperwasp.search.operators.value_patterns import PatternItem
from paperwasp.storage.attributes.patterns import FuzzyPattern, TextPattern

_MAX_EDITS: Final = 2


@dataclass(frozen=True, slots=True)
class FuzzyItem(PatternItem):
    """Values at most `max_edits` insertions, deletions and substitutions away; with `prefix`, values that begin
    so. The first `prefix_length` characters must be the same."""

    copied = ("word",)
    pattern_name = "fuzzy"

    word: str
    max_edits: int = _MAX_EDITS
    prefix_length: int = 0
    prefix: bool = False

    def contained(self) -> str:
        extra: dict[str, Any] = {}
        if self.max_edits != _MAX_EDITS:
            extra["maxEditDistance"] = self.max_edits
        if self.prefix_length:
            extra["prefixLength"] = self.prefix_length
        if self.prefix:
            extra["prefix"] = True
        return annotated(call("fuzzy", [string(self.word)]), self.annotations, extra)

    def text_of(self) -> str:
        return self.word

    def check(self, name: str, schemas: Sequence[Schema]) -> None:
        """A fieldset is looked at field by field where it is searched."""
        found = [field for schema in schemas if name not in schema.fieldsets and (field := schema.field_named(name))]
        if found and not any(field.attribute is not None and is_text(field.type) for field in found):
            raise IllegalQuery(f"Fuzzy items require a string attribute field, but '{name}' is not")
        if not self.word:
            raise IllegalQuery(f"fuzzy in '{name}': fuzzy query must be non-empty")

    def pattern(self) -> TextPattern:
        return FuzzyPattern(self.word, self.max_edits, self.prefix_length, self.prefix)


@leaf("fuzzy")
def read_fuzzy(parser: ArgumentReader, field: str, scope: Scope, outer: Scope) -> Item:
    """`fuzzy("word")`: values at most `maxEditDistance` edits away."""
    word = parser.copied_text("what is to be like the value")
    edits = scope.count("maxEditDistance")
    return FuzzyItem(
        field,
        scope.text(word),
        _MAX_EDITS if edits is None else edits,
        scope.count("prefixLength") or 0,
        bool(scope.get("prefix", bool)),
        annotations=scope.of_term(),
    )
