"""The base type of items, the nodes of a query tree. An item's file is the one home of its operator.

Items are immutable and say what was queried, in Vespa's words. `index` is a field, a fieldset, or a pseudo-field such
as `sddocname`. Text in an item is as the user wrote it: which tokens and stems it stands for depends on the field and
is decided by planning.

All that the service does with an item is a method here, with the answer of most items; an item's class overrides what
is different, in the file that has its reading (`operators.notation`) and its execution as well:

    reading       a function registered by its name in YQL, for YQL and JSON alike
    printing      `contained` or `to_yql`
    rewriting     `canonical`, `with_indexes`, `copied`; `literal_words`, `counted_words`, `is_seen_by_rules`
    refusing      `check`, `doubts`
    planning      `plan`, `match_in`; how much that takes: `is_plain`, `lookups`
    showing       `shown`, `shown_words`

Vespa: https://docs.vespa.ai/en/reference/querying/yql.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import ClassVar, Final

from msgspec import Struct

from paperwasp.base.records import replace
from paperwasp.errors import InternalError, InvalidQuery
from paperwasp.schema.model import Field, Schema
from paperwasp.search.operators.field_match import FieldMatch
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.text import QueryPart, Target, Way
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS, Annotations

CHARACTERS_OF_LOOKUP: Final = 100
"""A text of more counts as several words that are looked up."""


class Item(Struct, frozen=True):
    """One node of a query tree."""

    copied: ClassVar[tuple[str, ...]] = ()
    """The attributes to which parsers copy a literal that decides nothing, so that another can take its place."""
    is_canonical: ClassVar[bool] = True
    """Whether it is in its canonical form whatever is in it: then `canonical` need not be asked."""
    is_joined: ClassVar[bool] = False
    """Whether it is written with `and`, `or` and `!`, so that it needs parentheses among others that are."""
    is_plain: ClassVar[bool] = False
    """Whether its planning only looks up words, and reads no postings."""
    is_seen_by_rules: ClassVar[bool] = True
    """Whether it is part of the text that semantic rules look at."""
    rule_kind: ClassVar[str] = "other"
    """The name of its kind of branch in semantic rules, if they know it."""
    without_elements: ClassVar[str] = ""
    """Its name in YQL, if it does not know in which elements it matches and cannot stand in sameElement."""

    # The tree

    def children_of(self) -> tuple[Item, ...]:
        """The items below, in the order of the query."""
        return ()

    def with_children(self, children: tuple[Item, ...]) -> Item:
        """This item over other children; one without children as it is."""
        return replace(self, children=children) if self.children_of() else self  # type: ignore[call-arg]

    def excluded(self) -> tuple[Item, ...]:
        """The last of the children, which must not be near the others."""
        return ()

    def parts_of(self) -> tuple[str | Item, ...]:
        """All that it is made of: its children; the words of a phrase, which may be texts."""
        return self.children_of()

    def with_parts(self, parts: tuple[str | Item, ...]) -> Item:
        """This item made of other parts, as many as there were."""
        return self.with_children(parts)  # type: ignore[arg-type]

    def map_parts(self, change: Callable[[Item], Item]) -> Item:
        """This item with every item that it is made of changed."""
        parts = self.parts_of()
        if not parts:
            return self
        return self.with_parts(tuple([part if isinstance(part, str) else change(part) for part in parts]))

    def walk(self) -> Iterator[Item]:
        """This item and all below it, parents first, left to right."""
        yield self
        for child in self.children_of():
            yield from child.walk()

    # Printing

    def to_yql(self) -> str:
        """The condition that reads back as this item; but without target hits inside a weakAnd with them, one takes
        those."""
        text, index = self.contained(), self.field_of()
        return f"{index} contains {text}" if index else text

    def contained(self) -> str:
        """Return the text to the right of `contains`. Raises InternalError for an item that stands for itself."""
        raise InternalError(f"{type(self).__name__} does not stand to the right of contains")

    def field_of(self) -> str:
        """The field that it is about; empty: an element of the field that it is inside of."""
        return self.children_of()[0].field_of()

    def text_of(self) -> str:
        """The text that it looks for; empty: it looks for no text, or for several."""
        return ""

    def written(self) -> str:
        """Return the item as semantic rules show and compare it."""
        return self.text_of() or self.kind_of()

    def kind_of(self) -> str:
        """Its type, as Vespa writes it in trees."""
        return type(self).__name__.removesuffix("Item").upper()

    # Rewriting and refusing

    def canonical(self) -> Item:
        """The same matches with fewer items; the same object when it is in that form already.

        Vespa: com.yahoo.prelude.query.QueryCanonicalizer
        """
        return self

    def canonical_children(self) -> list[Item]:
        """The children in their canonical forms."""
        return [child if child.is_canonical else child.canonical() for child in self.children_of()]

    def merges(self, child: Item) -> bool:
        """Whether the children of a child could as well be its own."""
        return type(child) is type(self)

    def merged_children(self) -> tuple[Item, ...]:
        """The children in their canonical forms, with those of children that merge in their place."""
        children = self.canonical_children()
        if not any(map(self.merges, children)):
            return tuple(children)
        parts = (child.children_of() if self.merges(child) else (child,) for child in children)
        return tuple(part for found in parts for part in found)

    def over(self, children: tuple[Item, ...]) -> Item:
        """This item over children in their canonical form; itself where they were."""
        return self if children == self.children_of() else self.with_children(children)

    def with_indexes(self, rename: Callable[[str], str]) -> Item:
        """The tree with other names for what it looks into."""
        return self.map_parts(lambda part: part.with_indexes(rename))

    def literal_words(self) -> Iterator[tuple[str, str]]:
        """(index, word) of each word that a field with `rank: literal` also looks for as it is."""
        for child in self.children_of():
            yield from child.literal_words()

    def counted_words(self) -> tuple[str, ...]:
        """The forms of its word whose documents a significance model counts."""
        return ()

    def check(self, name: str, schemas: Sequence[Schema]) -> None:
        """Raises IllegalQuery or InvalidQuery for what is wrong whatever the documents. `name`: the whole name of the
        field."""

    def doubts(self, space: SearchSpace) -> Iterator[str]:
        """Warnings, for a trace, of an item that may find less than its author means."""
        return iter(())

    # Planning

    def lookups(self) -> int:
        """About how many words its own planning looks up; long ones count as several."""
        return 1

    def plan(self, space: SearchSpace) -> Operator:
        """The operator that executes it. Errors: InvalidQuery for what cannot be searched; OutOfTime."""
        raise InvalidQuery(f"{type(self).__name__} is not supported yet")

    def match_in(self, field: Field, space: SearchSpace) -> FieldMatch | None:
        """The match in a field, as a part of another item; None: it matches nothing, as it has no text there.

        Raises InvalidQuery for an item that may not stand there.
        """
        raise InvalidQuery(f"{type(self).__name__} in '{field.name}' cannot be part of a phrase, near or equiv")

    @property
    def is_word(self) -> bool:
        """Whether it is forms of one word alone, each of which takes one position."""
        return False

    @property
    def length(self) -> int:
        """The number of words in a row."""
        return 1

    def weak_weight(self) -> int:
        """Its weight as a part of a weakAnd. Vespa: get_weight_from_node.cpp"""
        return 0

    def is_every_document(self, space: SearchSpace) -> bool:
        """Whether it asks for the document type that is searched, which every document of the space has."""
        return False

    # Showing

    def shown(self, target: Target) -> Iterator[QueryPart]:
        """The words and phrases that it looks for in a field: not those that only filter, only rank, or exclude."""
        for child in self.children_of():
            yield from child.shown(target)

    def shown_words(self, target: Target) -> Way:
        """The words in sequence that are marked in shown text where it matches."""
        return ()


class Composite(Item, frozen=True):
    """An item over others."""

    is_canonical = False

    children: tuple[Item, ...]

    def children_of(self) -> tuple[Item, ...]:
        return self.children


class Annotated(Item, frozen=True, kw_only=True):
    """An item with annotations: a term, or several that rank as one."""

    annotations: Annotations = DEFAULT_ANNOTATIONS

    def weak_weight(self) -> int:
        return self.annotations.weight


class TermItem(Annotated, frozen=True):
    """A leaf that looks into `index`."""

    index: str

    def field_of(self) -> str:
        return self.index

    def with_indexes(self, rename: Callable[[str], str]) -> Item:
        return replace(self, index=rename(self.index))

    def literal_words(self) -> Iterator[tuple[str, str]]:
        return iter(())

    def shown(self, target: Target) -> Iterator[QueryPart]:
        if not self.annotations.filter and target.is_named_by(self.index or target.field.name):
            words = self.shown_words(target)
            if target.has_grams_apart:
                yield from (((word,),) for word in words)
            else:
                yield (words,) if words else ()


class OneText:
    """A term that looks for one text, `word`: a base beside `TermItem`."""

    __slots__ = ()
    copied: ClassVar[tuple[str, ...]] = ("word",)
    index: str
    word: str

    def text_of(self) -> str:
        return self.word

    def literal_words(self) -> Iterator[tuple[str, str]]:
        yield self.index, self.word

    def counted_words(self) -> tuple[str, ...]:
        return (self.word,)


EntryTerm = Callable[[TermItem], Item]
_entry_terms: list[EntryTerm] = []


def entry_term(function: EntryTerm) -> EntryTerm:
    """Registers the function that makes a term whose index has a brace one on the entry of a map that it names."""
    _entry_terms[:] = [function]
    return function


def plan(item: Item, space: SearchSpace) -> Operator:
    """The operator that executes `item`. Errors: InvalidQuery for what cannot be searched; OutOfTime."""
    space.check_time()
    if space.streamed and isinstance(item, TermItem) and "{" in item.index:
        item = _entry_terms[0](item)
    return item.plan(space)


# gram.match: how the grams of a text of a query belong together, in a field that matches gram.
#
# `all`, which is the default, is an and of them; others make the composite of that name. Within a phrase, grams follow
# each other whatever it says.
# Vespa: https://docs.vespa.ai/en/querying/text-matching.html#n-gram-match


ALL_GRAMS: Final = "all"
GRAM_COMPOSITES: Final[dict[str, Callable[[tuple[TermItem, ...]], Item]]] = {}
"""`gram.match` → makes an item of the grams; the files of these items fill it."""


def grams_together(grams: tuple[TermItem, ...], space: SearchSpace) -> Operator:
    """The grams of a word in one field, as the query says."""
    return plan(GRAM_COMPOSITES[space.gram_match](grams), space)
