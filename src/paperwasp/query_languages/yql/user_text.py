"""Text from a user inside a YQL query, which completes its tree; and the terms that parameters put beside it.

YQL is parsed once and remembered; the text changes with every request. So the parser leaves an item in its place
(`user_items`), and `complete` puts the parsed text there.
Vespa: https://docs.vespa.ai/en/reference/querying/yql.html#userquery
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, NamedTuple
from unicodedata import normalize

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.errors import IllegalQuery, InvalidQuery, LanguageError
from paperwasp.query_languages.yql.indexes import NO_INDEXES, Indexes
from paperwasp.query_languages.yql.query_type import QUERY_TYPES, QueryType, type_of
from paperwasp.query_languages.yql.simple import marked, parse_simple, read_excluded, read_included
from paperwasp.query_languages.yql.simple_terms import TermReader, too_many_items
from paperwasp.query_languages.yql.statement import parse_yql
from paperwasp.query_languages.yql.user_items import NOT_PARSED, Grammar, NonEmptyItem, UserQueryItem, UserTextItem
from paperwasp.search.operators.boolean import AndItem, NotItem, RankItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS

__all__ = ["UserQueryItem", "UserText", "UserTextItem", "complete"]

_ON_PARSED_TEXT: Final = frozenset(
    {"ranked", "filter", "stem", "normalize_case", "accent_drop", "use_position_data", "label", "language"}
)
"""The annotations that hold for the terms of a text whose grammar is neither `raw` nor `segment`."""


class UserText(NamedTuple):
    """The parameters of a request about the text of its user. A tuple, since one is made for every query."""

    query: str | None = None
    type: str | QueryType = "weakAnd"
    default_index: str | None = None
    """The one that the request names; None: `default`, whose words are then read as text."""
    indexes: Indexes = NO_INDEXES
    """The names that may stand before a colon."""
    parameters: Mapping[str, str] | None = None
    filter: str = ""
    """`model.filter`, which goes with `query`."""
    is_yql_default: bool = False
    """True where `type` holds for `userInput` too, unless that says another: `model.type.isYqlDefault`."""
    max_items: int = limits.QUERY_ITEMS
    """The most items that the whole query may have."""


def complete(tree: Item, user: UserText) -> Item | None:
    """Return the canonical tree with all user text parsed and in its place; None where nothing is left.

    Errors: IllegalQuery when more than `user.max_items` items are left; LanguageError for a text that may not be
    empty and is.
    """
    whole = _complete(tree, user)
    if whole is None:
        return None
    whole = whole.canonical()
    count = number_of_items(whole)
    if count > user.max_items:
        raise too_many_items(count, user.max_items)
    return whole


def number_of_items(item: Item) -> int:
    """Count the items of a tree, its root among them."""
    children = item.children_of()
    return 1 + sum([1 if type(child) is WordItem else number_of_items(child) for child in children])


def _complete(item: Item, user: UserText) -> Item | None:
    if isinstance(item, UserQueryItem):
        query = None
        if user.query is not None:
            query = _read(user.query, type_of(user.type), user.default_index, user.indexes, user)
        return filtered(query, user.filter, user.default_index, user.indexes) if user.filter else query
    if isinstance(item, UserTextItem):
        return _parse(item, user)
    if isinstance(item, NonEmptyItem):
        return _not_empty(item, user)
    children = item.children_of()
    if not children:
        return item
    return _with_children(item, children, [_complete(child, user) for child in children])


def _with_children(item: Item, before: tuple[Item, ...], after: list[Item | None]) -> Item | None:
    if all(new is old for new, old in zip(after, before, strict=True)):
        return item
    if isinstance(item, NotItem) and after[0] is None:
        after[0] = TrueItem()
    left = tuple(child for child in after if child is not None)
    return item.with_children(left) if left else None


def _not_empty(item: NonEmptyItem, user: UserText) -> Item:
    (child,) = item.children
    for part in child.walk():
        if isinstance(part, UserQueryItem | UserTextItem) and _complete(part, user) is None:
            raise LanguageError("Got NullItem inside nonEmpty().", item.position)
    whole = _complete(child, user)
    assert whole is not None
    for part in whole.walk():
        if (isinstance(part, WordItem) and not part.word) or (isinstance(part, PhraseItem) and not all(part.words)):
            raise LanguageError("searching for an empty string inside nonEmpty()", item.position)
    return whole


def _read(text: str, kind: QueryType, default_index: str | None, indexes: Indexes, user: UserText) -> Item | None:
    if kind.syntax != "yql":
        return parse_simple(text, kind, default_index, indexes)
    tree = parse_yql(text, user.parameters or {}).tree
    if any(isinstance(item, UserQueryItem | UserTextItem) for item in tree.walk()):
        raise LanguageError("A query of the type yql cannot have text of a user in it")
    return tree


def _parse(item: UserTextItem, user: UserText) -> Item | None:
    text = item.text if item.parameter is None else (user.parameters or {}).get(item.parameter)
    if text is None:
        raise LanguageError(f"Input '{item.parameter}' is not set", item.position)
    if item.nfkc:
        text = normalize("NFKC", text)
    if item.grammar.name in NOT_PARSED:
        return _one_word(text, item)
    indexes = user.indexes if item.fields_allowed else NO_INDEXES
    parsed = _read(text, type_of_text(item, user), item.default_index, indexes, user)
    if parsed is None and item.allow_empty:
        return None
    if parsed is None:
        raise LanguageError(f"Parsing '{text}' only resulted in NullItem.", item.position)
    parsed = _with_settings(parsed, item)
    annotations = item.annotations
    if annotations == DEFAULT_ANNOTATIONS:
        return parsed
    return marked(parsed, {name: value for name, value in annotations.given().items() if name in _ON_PARSED_TEXT})


def _one_word(text: str, item: UserTextItem) -> Item | None:
    """Return the word of a text as it is (`raw`), or of which its field makes tokens (`segment`)."""
    if not text and item.allow_empty:
        return None
    annotations = item.annotations
    if item.grammar.name == "raw":
        annotations = replace(annotations, implicit_transforms=False)
    return WordItem(item.default_index, text, annotations=annotations)


def type_of_text(item: UserTextItem, user: UserText) -> QueryType:
    """Return the type by which the text of an item is read. Errors: LanguageError where its parts contradict."""
    said: Grammar = item.grammar
    if said.name:
        base = QUERY_TYPES[said.name]
    elif not item.fields_allowed:
        base = QUERY_TYPES["linguistics"]
    else:
        base = type_of(user.type) if user.is_yql_default else QUERY_TYPES["weakAnd"]
    try:
        return base.having(said.composite, said.tokenization, said.syntax, said.profile)
    except IllegalQuery as error:
        raise LanguageError(error.message, item.position) from None


def _with_settings(parsed: Item, item: UserTextItem) -> Item:
    if isinstance(parsed, WeakAndItem) and item.target_hits:
        return replace(parsed, target_hits=item.target_hits)
    if isinstance(parsed, NearItem) and item.distance is not None:
        return replace(parsed, distance=item.distance)
    return parsed


# The parameters `model.filter` and `recall`


class Filter(Struct, frozen=True):
    """The terms of `model.filter` or `recall`, each marked as one that the user did not write.

    `+term` must match, `-term` must not, and a term without a sign only ranks: they never find more than the query.
    Vespa: `model.filter` and `recall` in https://docs.vespa.ai/en/reference/api/query.html
    """

    required: tuple[Item, ...] = ()
    excluded: tuple[Item, ...] = ()
    ranking: tuple[Item, ...] = ()

    def applied_to(self, tree: Item) -> Item:
        """Return the canonical tree of the documents that `tree` finds and the filter lets through."""
        if self.required:
            tree = AndItem((tree, *self.required))
        if self.excluded:
            tree = NotItem((tree, *self.excluded))
        if self.ranking:
            tree = RankItem((tree, *self.ranking))
        return tree.canonical()


def parse_filter(text: str, default_index: str | None = None, indexes: Indexes = NO_INDEXES) -> Filter:
    """Read a filter: simple query language of type `any`, whose terms have the annotation `filter`, and rank."""
    reader = TermReader(text, default_index, indexes)
    required: list[Item] = []
    forbidden: list[Item] = []
    ranking: list[Item] = []
    while reader.skip_spaces():
        start = reader.at
        if (item := read_included(reader)) is not None:
            required.append(item)
        elif (item := read_excluded(reader)) is not None:
            forbidden.append(item)
        elif (item := reader.term()[0]) is not None:
            ranking.append(item)
        elif reader.at == start:
            reader.skip()
    return Filter(_filters(required), _filters(forbidden), _filters(ranking))


def _filters(items: list[Item], **more: object) -> tuple[Item, ...]:
    return tuple(marked(item, {"filter": True, **more}) for item in items)


def filtered(
    tree: Item | None, text: str, default_index: str | None = None, indexes: Indexes = NO_INDEXES
) -> Item | None:
    """Add the filter in `text` to the tree of a query; without a tree, return that of the filter."""
    if tree is not None:
        return parse_filter(text, default_index, indexes).applied_to(tree)
    alone = parse_simple(text, "any", default_index, indexes)
    return None if alone is None else marked(alone, {"filter": True})


def parse_recall(text: str, default_index: str | None = None, indexes: Indexes = NO_INDEXES) -> Filter:
    """Read a filter of terms that do not rank. Errors: InvalidQuery for a term without a sign, or no term."""
    found = parse_filter(text, default_index, indexes)
    if found.ranking:
        raise InvalidQuery("Recall contains at least one rank item.")
    if not found.required and not found.excluded:
        raise InvalidQuery("Failed to parse recall parameter.")
    return Filter(_filters([*found.required], ranked=False), _filters([*found.excluded], ranked=False))
