"""Beginnings, ends and parts of strings, ranges, regular expressions, fuzzy: patterns of values of string attributes.

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains, #matches and #fuzzy
"""

from __future__ import annotations

from typing import Final

from paperwasp.attribute.patterns import (
    FuzzyPattern,
    OrderPattern,
    PartPattern,
    Place,
    RegexPattern,
    TextPattern,
    compiled,
)
from paperwasp.errors import InternalError, InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.field_match import FieldMatch
from paperwasp.operators.items import (
    FuzzyItem,
    PrefixItem,
    RegexItem,
    SubstringItem,
    SuffixItem,
    TermItem,
    TextRangeItem,
    WordItem,
)
from paperwasp.operators.term import AttributeMatch, IndexMatch
from paperwasp.operators.text import NOWHERE, part_match, sequence, text_matcher, tokens_in
from paperwasp.operators.word import fields_of, match_word, term_operator
from paperwasp.schema.model import Field

WordPartItem = PrefixItem | SuffixItem | SubstringItem
_PLACES: Final[dict[type[WordPartItem], Place]] = {
    PrefixItem: "prefix", SuffixItem: "suffix", SubstringItem: "substring",
}  # fmt: skip


def pattern_of(item: TermItem) -> TextPattern:
    """The pattern of an item. Errors: InvalidQuery for a regular expression that is wrong."""
    match item:
        case PrefixItem() | SuffixItem() | SubstringItem():
            return PartPattern(_PLACES[type(item)], item.word)
        case FuzzyItem():
            return FuzzyPattern(item.word, item.max_edits, item.prefix_length, item.prefix)
        case TextRangeItem():
            return OrderPattern(item.low, item.high, item.low_inclusive, item.high_inclusive)
        case RegexItem():
            compiled(item.expression, cased=True)
            return RegexPattern(item.expression)
    raise InternalError(f"{type(item).__name__} is not a pattern")


def _written(item: TermItem) -> str:
    """The text of an item of parts or of a regular expression."""
    match item:
        case PrefixItem() | SuffixItem() | SubstringItem():
            return item.word
        case RegexItem():
            return item.expression
    raise InternalError(f"{type(item).__name__} is not a pattern")


def match_pattern(item: TermItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """The item in one field; None where it has neither text nor strings."""
    if space.has_index(field):
        return _in_index(item, field, space)
    column = space.column(field)
    if column is None:
        return None
    if not column.is_string and not isinstance(item, FuzzyItem | TextRangeItem):
        # Numbers have no parts: the text is compared as a number, as search contexts of numeric attributes do in Vespa.
        return match_word(WordItem(item.index, _written(item), annotations=item.annotations), field, space)
    if not column.is_string:
        raise InvalidQuery(f"{_name(item)} is matched against text, and field '{field.name}' is of type {field.type}")
    return AttributeMatch(space, field.name, column, column.like(pattern_of(item), space.check_time))


def _parts_of_words(item: WordPartItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """The match of parts of words in streaming search; several tokens stand for words in sequence. A field that says
    that words match by any part of them has prefixes and suffixes match so, too.

    Vespa: utf8substringsearcher.cpp
    """
    tokens = tokens_in(item.word, item.annotations, field, space)
    place = "substring" if field.match_settings.algorithm == "substring" else _PLACES[type(item)]
    return sequence([part_match(token.term, place, field, space) for token in tokens], field, space)


def _in_index(item: TermItem, field: Field, space: SearchSpace) -> FieldMatch | None:
    """The item in an indexed field, which finds nothing but whole words: the end or a part of a word is taken for the
    word, and a regular expression for a word as it is written.

    Vespa: CreateBlueprintVisitor of diskindex.cpp and memory_index.cpp (visitTerm); what it refuses is refused.
    """
    if isinstance(item, WordPartItem) and space.streamed:
        return _parts_of_words(item, field, space)
    if isinstance(item, SuffixItem | SubstringItem):
        return match_word(WordItem(item.index, item.word, annotations=item.annotations), field, space)
    if isinstance(item, RegexItem) and not space.streamed:
        compiled(item.expression, cased=True)
        term = space.index.term_id(item.expression)
        return IndexMatch(space, field.name, term if term >= 0 else NOWHERE)
    raise _not_in_an_index(item, field)


def _not_in_an_index(item: TermItem, field: Field) -> InvalidQuery:
    what = f"{_name(item).capitalize()} matching is not supported"
    if field.attribute is None:
        return InvalidQuery(f"'{field.name}' is not an attribute field: {what}")
    return InvalidQuery(f"'{field.name}' is an index field: {what} even when it is also an attribute")


def plan_pattern(item: TermItem, space: SearchSpace) -> Operator:
    matches = [match for field in fields_of(item.index, space) if (match := match_pattern(item, field, space))]
    return term_operator(space, matches, item.annotations)


_NAMES: Final[dict[type[TermItem], str]] = {
    PrefixItem: "prefix",
    SuffixItem: "suffix",
    SubstringItem: "substring",
    RegexItem: "regular expression",
    FuzzyItem: "fuzzy",
    TextRangeItem: "lexical range",
}


def _name(item: TermItem) -> str:
    return _NAMES[type(item)]


for _kind in _NAMES:
    planner(_kind)(plan_pattern)
    text_matcher(_kind)(match_pattern)
