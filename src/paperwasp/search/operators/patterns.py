"""Patterns of values: fuzzy, matches, ranges of strings, prefix, suffix and substring."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final

from paperwasp.errors import IllegalQuery, InternalError, InvalidQuery
from paperwasp.schema.data_types import is_text
from paperwasp.schema.model import Field, Schema
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.item import Item, OneText, TermItem
from paperwasp.search.operators.notation import ArgumentReader, annotated, bounds, call, comparison, leaf, string
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.term import AttributeMatch, IndexMatch
from paperwasp.search.operators.text import NOWHERE, QueryWord, Target, Way, part_match, sequence, tokens_in
from paperwasp.search.operators.word import WordItem, fields_of, term_operator
from paperwasp.search.yql_syntax import AnnotationScope
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.patterns import (
    FuzzyPattern,
    OrderPattern,
    PartPattern,
    Place,
    RegexPattern,
    TextPattern,
    compiled,
)

# The base of items that are patterns of values: of the strings of attributes, and as far as it goes of words.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#contains, #matches and #fuzzy


class PatternItem(TermItem, frozen=True):
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


# fuzzy: values of attributes of strings that are like a word.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#fuzzy, ValidateFuzzySearcher


_MAX_EDITS: Final = 2


class FuzzyItem(PatternItem, frozen=True):
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
def read_fuzzy(parser: ArgumentReader, field: str, scope: AnnotationScope, outer: AnnotationScope) -> Item:
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


# matches: values of attributes in which a regular expression is found; an indexed field has it looked up as a word.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#matches


class RegexItem(PatternItem, frozen=True):
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
def read_matches(parser: ArgumentReader, field: str, scope: AnnotationScope) -> Item:
    """`field matches "expression"`, which may be annotated."""
    tokens = parser.tokens
    with tokens.nested():
        scope = parser.annotated(scope)
        if tokens.accept("("):
            item = read_matches(parser, field, scope)
            tokens.expect(")")
            return item
    return RegexItem(field, parser.copied_text("a regular expression"), annotations=scope.of_term())


# range and comparisons of strings: values of attributes between two bounds in the order of their characters.
#
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#range


class TextRangeItem(PatternItem, frozen=True):
    """Texts between two bounds in the order of their characters; None is open."""

    copied = ("low", "high")
    pattern_name = "lexical range"

    low: str | None
    high: str | None
    low_inclusive: bool = True
    high_inclusive: bool = True

    def to_yql(self) -> str:
        low = "-Infinity" if self.low is None else string(self.low)
        high = "Infinity" if self.high is None else string(self.high)
        extra = bounds(self.low_inclusive or self.low is None, self.high_inclusive or self.high is None)
        return annotated(call("range", (self.index, low, high)), self.annotations, extra)

    def pattern(self) -> TextPattern:
        return OrderPattern(self.low, self.high, self.low_inclusive, self.high_inclusive)


def text_range(
    field: str, ends: tuple[str | None, str | None], inclusive: tuple[bool, bool], scope: AnnotationScope
) -> TextRangeItem:
    """A range of strings between two bounds, either of which may be open."""
    if scope.hit_limit():
        scope.fail("a range of strings has no hitLimit")
    return TextRangeItem(field, *ends, *inclusive, annotations=scope.of_term())


# prefix, suffix and substring: words, or values of attributes, that begin with a text, end with it or have it in them.
#
# In an indexed field, which finds nothing but whole words, the end or a part of a word is taken for the word.
# Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#prefix


class WordPartItem(OneText, PatternItem, frozen=True):
    """Words, or values, that have the text at one place."""

    is_of_numbers = True
    place: ClassVar[Place]
    """Also its annotation in YQL, and its name in errors."""

    word: str

    def contained(self) -> str:
        return annotated(string(self.word), self.annotations, {self.place: True})

    def pattern(self) -> TextPattern:
        return PartPattern(self.place, self.word)

    def in_index(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        return self._in_streamed(field, space) if space.streamed else self.as_word().match_in(field, space)

    def _in_streamed(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """Parts of words in streaming search; several tokens stand for words in sequence. A field that says that words
        match by any part of them has prefixes and suffixes match so, too.

        Vespa: utf8substringsearcher.cpp
        """
        tokens = tokens_in(self.word, self.annotations, field, space)
        place = "substring" if field.match_settings.algorithm == "substring" else self.place
        return sequence([part_match(token.term, place, field, space) for token in tokens], field, space)

    def begin_with(self, target: Target, *, within: bool) -> Way:
        """The part of words to show that begin with the text, or have it in them."""
        words = target.words(self.annotations, self.word)
        return tuple(QueryWord(word.terms, prefix=True, within=within or word.within) for word in words)


class PrefixItem(WordPartItem, frozen=True):
    """Words, or values, that begin with the text."""

    place = pattern_name = "prefix"

    def in_index(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        return self._in_streamed(field, space) if space.streamed else PatternItem.in_index(self, field, space)

    def shown_words(self, target: Target) -> Way:
        return self.begin_with(target, within=False)


class SuffixItem(WordPartItem, frozen=True):
    """Words, or values, that end with the text."""

    place = pattern_name = "suffix"


class SubstringItem(WordPartItem, frozen=True):
    """Words, or values, that have the text in them."""

    place = pattern_name = "substring"

    def shown_words(self, target: Target) -> Way:
        return self.begin_with(target, within=True)


_KINDS: Final[Mapping[str, Callable[..., TermItem]]] = {
    kind.place: kind for kind in (PrefixItem, SuffixItem, SubstringItem)
}


def word_of(field: str, text: str, scope: AnnotationScope) -> TermItem:
    """The term for a text in a field: a word, or with an annotation the start, the end or a part of one."""
    if not scope.values:
        return WordItem(field, text)
    kinds = [kind for name, kind in _KINDS.items() if scope.get(name, bool)]
    if len(kinds) > 1:
        scope.fail("Only one of prefix, substring and suffix can be set.")
    return (kinds[0] if kinds else WordItem)(field, scope.text(text), annotations=scope.of_term())
