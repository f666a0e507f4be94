"""The base of items that are patterns of values: of the strings of attributes, and as far as it goes of words.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains, #matches and #fuzzy
"""

from __future__ import annotations

from typing import ClassVar

from paperwasp.base.records import dataclass
from paperwasp.errors import InternalError, InvalidQuery
from paperwasp.schema.model import Field
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import TermItem
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.term import AttributeMatch
from paperwasp.search.operators.word import WordItem, fields_of, term_operator
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.patterns import TextPattern


@dataclass(frozen=True, slots=True)
class PatternItem(TermItem):
    """Values that have a form."""

    pattern_name: ClassVar[str]
    """As errors call it."""
    is_of_numbers: ClassVar[bool] = False
    """Whether the text, in a field of numbers, is compared with them as a number: numbers have no parts."""

    def pattern(self) -> TextPattern:
        """The pattern. Errors: InvalidQuery for one that is wrong."""
        raise InternalError(f"{type(self).__name__} has no pattern")

    def in_index(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """The match in an indexed field, which finds nothing but whole words. Raises InvalidQuery where there is none.

        Vespa: CreateBlueprintVisitor of diskindex.cpp and memory_index.cpp (visitTerm); what it refuses is refused.
        """
        what = f"{self.pattern_name.capitalize()} matching is not supported"
        if field.attribute is None:
            raise InvalidQuery(f"'{field.name}' is not an attribute field: {what}")
        raise InvalidQuery(f"'{field.name}' is an index field: {what} even when it is also an attribute")

    def plan(self, space: SearchSpace) -> Operator:
        matches = [match for field in fields_of(self.index, space) if (match := self.match_in(field, space))]
        return term_operator(space, matches, self.annotations)

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """None where the field has neither text nor strings."""
        if space.has_index(field):
            return self.in_index(field, space)
        column = space.column(field)
        if column is None:
            return None
        if not column.is_string:
            return self._in_numbers(field, column, space)
        return AttributeMatch(space, field.name, column, column.like(self.pattern(), space.check_time))

    def _in_numbers(self, field: Field, column: ColumnView, space: SearchSpace) -> FieldMatch | None:
        """Vespa: the search contexts of numeric attributes."""
        if self.is_of_numbers:
            return self.as_word().match_in(field, space)
        raise InvalidQuery(
            f"{self.pattern_name} is matched against text, and field '{field.name}' is of type {field.type}"
        )

    def as_word(self) -> WordItem:
        """Its text as a word."""
        return WordItem(self.index, self.text_of(), annotations=self.annotations)
