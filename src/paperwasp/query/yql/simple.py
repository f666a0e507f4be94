"""The simple query language: what people type into a search box.

Every text is a valid query: what makes no sense is skipped. The grammar has two layers: `simple_terms.Reader` knows
the terms; a syntax knows how terms are put together. Syntaxes are in one table at the end.
Vespa: https://docs.vespa.ai/en/reference/querying/simple-query-language.html and `model.type` in the query API.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Final

from paperwasp import limits
from paperwasp.errors import IllegalQuery
from paperwasp.query.yql.advanced import advanced_terms
from paperwasp.query.yql.indexes import NO_INDEXES, Indexes
from paperwasp.query.yql.marks import marked
from paperwasp.query.yql.query_type import QueryType, type_of
from paperwasp.query.yql.simple_groups import Part, built, read_side_by_side
from paperwasp.query.yql.simple_terms import DEFAULT_INDEX, Reader, too_many_items
from paperwasp.search.operators.boolean import AndItem, NotItem, OrItem, TrueItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.near import NearItem
from paperwasp.search.operators.phrase import PhraseItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.word import TOKEN, WordItem, is_number
from paperwasp.text.parsing.text_memory import TextMemory

Compose = Callable[[tuple[Item, ...]], Item]

_DEPTH: Final = 100
"""Groups within groups; deeper parentheses mean nothing."""


def _all_terms(reader: Reader, compose: Compose) -> Item | None:
    """`+` and nothing in front ask for the same; `-` excludes; `(a b)` asks for one of them."""
    positives: list[Item] = []
    negatives: list[Item] = []
    while reader.skip_spaces():
        start = reader.at
        if (item := _read_excluded(reader, compose)) is not None:
            negatives.append(item)
        elif (part := _included(reader, compose) or _term_or_group(reader, compose)) is not None:
            positives.append(built(part))
        elif reader.at == start:
            reader.skip()
    return _without(compose(tuple(positives)) if positives else None, negatives)


def _term_or_group(reader: Reader, compose: Compose | None) -> Part | None:
    return reader.term()[0] or _group(reader, compose)


def _included(reader: Reader, compose: Compose | None) -> Part | None:
    """What comes after `+`. `compose` is that of the type, None: type any."""
    start = reader.at
    if not reader.prefix("+"):
        return None
    while reader.prefix("+"):
        pass
    part = _term_or_group(reader, compose)
    if part is None:
        reader.at = start
    return part


def read_included(reader: Reader) -> Item | None:
    """An item after `+`, by the rules of type any."""
    part = _included(reader, None)
    return None if part is None else built(part)


def read_excluded(reader: Reader) -> Item | None:
    """An item after `-`, or more of them, by the rules of type any."""
    start = reader.at
    if not reader.prefix("-"):
        return None
    while reader.prefix("-"):
        pass
    item = reader.term()[0] or _excluded_group(reader, None)
    if item is None:
        reader.at = start
    return item


def _read_excluded(reader: Reader, compose: Compose) -> Item | None:
    """An item after `-`; but `-5` without a field is a number below zero."""
    start = reader.at
    if not reader.prefix("-"):
        return None
    item, names_index = reader.term()
    if item is None:
        item = _excluded_group(reader, compose)
    elif not names_index and isinstance(item, WordItem) and _is_unsigned_number(item.word):
        item = None
    if item is None:
        reader.at = start
    return item


def _excluded_group(reader: Reader, compose: Compose | None) -> Item | None:
    """A group after `-`: of several terms without signs in it, all together."""
    group = _group(reader, compose)
    item = None if group is None else built(group)
    return (compose or AndItem)(item.children) if isinstance(item, OrItem) else item


def _is_unsigned_number(word: str) -> bool:
    return is_number(word) and not word.startswith("-")


def _without(item: Item | None, negatives: list[Item]) -> Item | None:
    """What is found, but for what is excluded: of all documents where nothing else is said."""
    return NotItem((item or TrueItem(), *negatives)) if negatives else item


def _group(reader: Reader, compose: Compose | None) -> Part | None:
    """`(…)`, with parentheses in it. The cursor stays before one that holds nothing. The last may be left out."""
    start = reader.at
    if reader.depth >= _DEPTH or not reader.text.startswith("(", start) or start in reader.empty_groups:
        return None
    reader.at += 1
    reader.depth += 1
    part = _side_by_side(reader, compose)
    reader.depth -= 1
    if part is None:
        reader.empty_groups.add(start)
        reader.at = start
    elif reader.skip_spaces() and reader.text[reader.at] == ")":
        reader.at += 1
    return part


def _side_by_side(reader: Reader, compose: Compose | None) -> Part | None:
    return read_side_by_side(
        reader,
        lambda reader: _included(reader, compose),
        read_excluded if compose is None else lambda reader: _read_excluded(reader, compose),
        lambda reader: _group(reader, compose),
        is_any=compose is None,
    )


def _any_terms(reader: Reader) -> Item | None:
    part = _side_by_side(reader, None)
    return None if part is None else built(part)


def _web_terms(reader: Reader) -> Item | None:
    """As type all without groups, and a capital `OR` between terms asks for one of its sides."""
    alternatives: list[list[Item]] = [[]]
    negatives: list[Item] = []
    while reader.skip_spaces():
        if (item := _read_excluded(reader, AndItem)) is not None:
            negatives.append(item)
            continue
        part = _included(reader, AndItem) or reader.term()[0]
        item = None if part is None else built(part)
        if item is None:
            reader.skip()
        elif alternatives[-1] and isinstance(item, WordItem) and item.word == "OR":
            alternatives.append([])
        else:
            alternatives[-1].append(item)
    sides = tuple(AndItem(tuple(side)) for side in alternatives if side)
    return _without(OrItem(sides) if sides else None, negatives)


def _simple_terms(reader: Reader, composite: str) -> Item | None:
    if composite == "phrase":
        return _words(reader, composite)
    return _any_terms(reader) if composite == "or" else _all_terms(reader, _COMPOSE[composite])


def _words(reader: Reader, composite: str) -> Item | None:
    """All words of the text, whatever signs stand between them."""
    words = TOKEN.findall(reader.text)
    if len(words) < 2:
        return WordItem(reader.default_index, words[0]) if words else None
    if composite == "phrase":
        return PhraseItem(reader.default_index, tuple(words))
    return _COMPOSE[composite](tuple(WordItem(reader.default_index, word) for word in words))


_COMPOSE: Final[Mapping[str, Compose]] = MappingProxyType(
    {
        "and": AndItem,
        "or": OrItem,
        "weakAnd": WeakAndItem,
        "near": NearItem,
        "oNear": lambda children: NearItem(children, ordered=True),
    }
)
_SYNTAXES: Final[Mapping[str, Callable[[Reader, str], Item | None]]] = MappingProxyType(
    {
        "simple": _simple_terms,
        "web": lambda reader, composite: _web_terms(reader),
        "none": _words,
        "advanced": lambda reader, composite: advanced_terms(reader),
    }
)
"""Syntax → the reader of a text in it, which gets the composite. The syntax `yql` is not read here."""

_Key = tuple[str, str | QueryType, str | None, Indexes]
_KEPT: Final[TextMemory[_Key, tuple[Item | None]]] = TextMemory(
    limits.QUERY_TREES_CHARACTERS, limits.QUERY_TEXT_KEPT_CHARACTERS
)


def parse_simple(
    text: str,
    type: str | QueryType = "weakAnd",
    default_index: str | None = None,
    indexes: Indexes = NO_INDEXES,
) -> Item | None:
    """The canonical tree of a text in the simple query language; None when it holds nothing to search for.

    `default_index` is the one that the request names; None: `default`, whose words are then read as text.
    `indexes` are the names that may stand before a colon; after any other the colon is part of the word.
    Errors: IllegalQuery if the text is too long, or of the syntax `yql`.
    """
    if len(text) > limits.QUERY_TEXT_BYTES:
        raise IllegalQuery(f"The query has {len(text)} characters; at most {limits.QUERY_TEXT_BYTES}")
    key = text, type, default_index, indexes
    known = _KEPT.get(key)
    if known is None:
        known = (_tree(*key),)
        _KEPT.add(key, known, len(text))
    return known[0]


def _tree(text: str, type: str | QueryType, default_index: str | None, indexes: Indexes) -> Item | None:
    kind = type_of(type)
    if default_index is None:
        plain = _plain(text, kind, DEFAULT_INDEX)
    else:
        plain = None if indexes.reading(default_index).is_whole else _plain(text, kind, default_index)
    item = plain or _parse(text, kind, default_index, indexes)
    if item is None or isinstance(item, TrueItem):
        return None
    whole = item if plain is not None else item.canonical()  # words, and one operator over them, are canonical
    return marked(whole, {"profile": kind.profile}) if kind.profile else whole


def _plain(text: str, kind: QueryType, default_index: str) -> Item | None:
    """The tree of nothing but words, which most texts are; None: there is more in it."""
    if (
        kind.syntax != "simple"
        or kind.composite == "phrase"
        or not text.replace(" ", "").isalnum()
        or not text.isascii()
    ):
        return None
    parts = text.split()
    if len(parts) > limits.QUERY_ITEMS:
        raise too_many_items(len(parts))
    words = tuple([WordItem(default_index, word) for word in parts])
    return words[0] if len(words) == 1 else _COMPOSE[kind.composite](words)


def _parse(text: str, kind: QueryType, default_index: str | None, indexes: Indexes) -> Item | None:
    read = _SYNTAXES.get(kind.syntax)
    if read is None:
        raise IllegalQuery(f"A text of the syntax '{kind.syntax}' is not read here")
    return read(Reader(text, default_index, indexes), kind.composite)
