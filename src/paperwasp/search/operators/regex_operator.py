"""matches: values of attributes in which a regular expression is found; an indexed field has it looked up as a word.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#matches
"""

from __future__ import annotations

from collections.abc import Iterator

from paperwasp.base.records import dataclass
from paperwasp.schema.model import Field
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.operator import SearchSpace
from paperwasp.search.operators.printing import annotated, string
from paperwasp.search.operators.registry import comparison
from paperwasp.search.operators.term import IndexMatch
from paperwasp.search.operators.text import NOWHERE
from paperwasp.search.operators.value_patterns import PatternItem
from paperwasp.search.operators.word import WordItem
from paperwasp.storage.attributes.patterns import RegexPattern, TextPattern, compiled


@dataclass(frozen=True, slots=True)
class RegexItem(PatternItem):
    """Values in which the regular expression (RE2's syntax) is found."""

    copied = ("expression",)
    pattern_name = "regular expression"
    is_of_numbers = True

    expression: str

    def to_yql(self) -> str:
        return f"{self.index} matches {annotated(string(self.expression), self.annotations)}"

    def pattern(self) -> TextPattern:
        compiled(self.expression, cased=True)
        return RegexPattern(self.expression)

    def as_word(self) -> WordItem:
        return WordItem(self.index, self.expression, annotations=self.annotations)

    def in_index(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """The expression as a word as it is written."""
        if space.streamed:
            return PatternItem.in_index(self, field, space)
        compiled(self.expression, cased=True)
        term = space.index.term_id(self.expression)
        return IndexMatch(space, field.name, term if term >= 0 else NOWHERE)

    def doubts(self, space: SearchSpace) -> Iterator[str]:
        for field in () if space.streamed else space.schema.fields_named(self.index):
            if space.has_index(field):
                yield f"matches takes the expression for a word of field {field.name}, which has an index"


@comparison("matches")
def read_matches(parser: ArgumentReader, field: str, scope: Scope) -> Item:
    """`field matches "expression"`, which may be annotated."""
    tokens = parser.tokens
    with tokens.nested():
        scope = parser.annotated(scope)
        if tokens.accept("("):
            item = read_matches(parser, field, scope)
            tokens.expect(")")
            return item
    return RegexItem(field, parser.copied_text("a regular expression"), annotations=scope.of_term())
