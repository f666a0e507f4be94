"""Beginnings, ends and parts of strings, regular expressions, and fuzzy: patterns of the values of string attributes.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains, #matches and #fuzzy
"""

from __future__ import annotations

from paperwasp.attribute.patterns import FuzzyPattern, PartPattern, RegexPattern, TextPattern, compiled
from paperwasp.errors import InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.term import AttributeMatch, FieldMatch
from paperwasp.operators.text import text_matcher
from paperwasp.operators.word import fields_of, term_operator
from paperwasp.query import FuzzyItem, PrefixItem, RegexItem, SubstringItem, SuffixItem, TermItem
from paperwasp.schema.model import Field

PatternItem = PrefixItem | SuffixItem | SubstringItem | RegexItem | FuzzyItem


def pattern_of(item: PatternItem) -> TextPattern:
    """What the item asks of a string. Errors: InvalidQuery for an expression that is none."""
    match item:
        case PrefixItem():
            return PartPattern("prefix", item.word)
        case SuffixItem():
            return PartPattern("suffix", item.word)
        case SubstringItem():
            return PartPattern("substring", item.word)
        case FuzzyItem():
            return FuzzyPattern(item.word, item.max_edits, item.prefix_length, item.prefix)
    compiled(item.expression, cased=True)
    return RegexPattern(item.expression)


@text_matcher(PrefixItem)
@text_matcher(SuffixItem)
@text_matcher(SubstringItem)
@text_matcher(RegexItem)
@text_matcher(FuzzyItem)
def match_pattern(item: PatternItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """The item in one field; None where it has neither text nor strings."""
    if space.has_index(field):
        raise InvalidQuery(f"{_name(item)} in the indexed field '{field.name}' is not supported yet")
    column = space.column(field)
    if column is None:
        return None
    if not column.is_string:
        raise InvalidQuery(f"{_name(item)} is matched against text, and field '{field.name}' is of type {field.type}")
    return AttributeMatch(space, field.name, column, column.like(pattern_of(item)))


@planner(PrefixItem)
@planner(SuffixItem)
@planner(SubstringItem)
@planner(RegexItem)
@planner(FuzzyItem)
def plan_pattern(item: PatternItem, space: SearchSpace) -> Operator:
    matches = [match for field in fields_of(item.index, space) if (match := match_pattern(item, field, space))]
    return term_operator(space, matches, item.annotations)


def _name(item: TermItem) -> str:
    return "matches" if isinstance(item, RegexItem) else type(item).__name__.removesuffix("Item").lower()
