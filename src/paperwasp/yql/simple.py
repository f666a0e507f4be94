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
from paperwasp.parsing.text_memory import TextMemory
from paperwasp.query.items import (
    AndItem,
    Item,
    NearItem,
    NotItem,
    OrItem,
    PhraseItem,
    RankItem,
    TrueItem,
    WeakAndItem,
    WordItem,
)
from paperwasp.yql.advanced import advanced_terms
from paperwasp.yql.canonical import canonical
from paperwasp.yql.indexes import NO_INDEXES, Indexes
from paperwasp.yql.marks import marked
from paperwasp.yql.query_type import QueryType, type_of
from paperwasp.yql.simple_terms import DEFAULT_INDEX, TOKEN, Reader, is_number, too_many_items

Compose = Callable[[tuple[Item, ...]], Item]


def _all_terms(reader: Reader, compose: Compose) -> Item | None:
    """`+` and nothing in front ask for the same; `-` excludes; `(a b)` asks for one of them."""
    positives: list[Item] = []
    negatives: list[Item] = []
    while reader.skip_spaces():
        start = reader.at
        if (item := read_excluded(reader, compose)) is not None:
            negatives.append(item)
        elif (item := read_included(reader) or _term_or_group(reader)) is not None:
            positives.append(item)
        elif reader.at == start:
            reader.skip()
    return _without(compose(tuple(positives)), negatives) if positives else None


def _term_or_group(reader: Reader) -> Item | None:
    return reader.term()[0] or _group(reader)


def read_included(reader: Reader) -> Item | None:
    """An item after `+`."""
    start = reader.at
    if not reader.prefix("+"):
        return None
    item = _term_or_group(reader)
    if item is None and reader.at == start + 1:
        reader.at = start
    return item


def read_excluded(reader: Reader, compose: Compose, *, signed_numbers: bool = True) -> Item | None:
    """An item after `-`. With `signed_numbers`, `-5` without a field is a number below zero instead."""
    start = reader.at
    if not reader.prefix("-"):
        return None
    item, names_index = reader.term()
    if item is None:
        item = _group(reader)
        if item is None and reader.at == start + 1:
            reader.at = start
        return compose(item.children) if isinstance(item, OrItem) else item
    if signed_numbers and not names_index and isinstance(item, WordItem) and _is_unsigned_number(item.word):
        reader.at = start
        return None
    return item


def _is_unsigned_number(word: str) -> bool:
    return is_number(word) and not word.startswith("-")


def _without(item: Item, negatives: list[Item]) -> Item:
    return NotItem((item, *negatives)) if negatives else item


def _group(reader: Reader) -> Item | None:
    """`(…)`: terms as of type any. Parentheses inside mean nothing. Moves past a group that holds nothing."""
    if reader.in_group or not reader.text.startswith("(", reader.at):
        return None
    reader.at += 1
    reader.in_group = True
    item = _any_terms(reader)
    reader.in_group = False
    return item


def _any_terms(reader: Reader) -> Item | None:
    """`+` is required and `-` excluded; the rest are alternatives, or only rank when something is required."""
    required: list[Item] = []
    negatives: list[Item] = []
    optional: list[tuple[Item, bool]] = []
    while reader.skip_spaces():
        start = reader.at
        if reader.in_group and reader.text[start] == ")":
            reader.at += 1
            break
        if (item := read_included(reader)) is not None:
            required.append(item)
        elif (item := read_excluded(reader, AndItem, signed_numbers=False)) is not None:
            negatives.append(item)
        elif (item := reader.term()[0]) is not None:
            optional.append((item, False))
        elif (item := _group(reader)) is not None:
            optional.append((item, True))
        elif reader.at == start:
            reader.skip()
    return _combine(required, negatives, _alternatives(optional))


def _combine(required: list[Item], negatives: list[Item], optional: Item | None) -> Item | None:
    if not required:
        return None if optional is None else _without(optional, negatives)
    must = _without(AndItem(tuple(required)), negatives)
    return must if optional is None else RankItem((must, *_parts(optional)))


def _alternatives(items: list[tuple[Item, bool]]) -> Item | None:
    """One of the items; but a single term right before a group only ranks what the group finds."""
    if not items:
        return None
    if [is_group for _, is_group in items[:2]] == [False, True]:
        groups = [item for item, is_group in items if is_group]
        return RankItem((*reversed(groups), *(item for item, is_group in items if not is_group)))
    return OrItem(tuple(item for item, _ in items))


def _parts(item: Item) -> tuple[Item, ...]:
    return item.children if isinstance(item, OrItem | RankItem) else (item,)


def _web_terms(reader: Reader) -> Item | None:
    """As type all without groups, and a capital `OR` between terms asks for one of its sides."""
    alternatives: list[list[Item]] = [[]]
    negatives: list[Item] = []
    while reader.skip_spaces():
        if (item := read_excluded(reader, AndItem)) is not None:
            negatives.append(item)
            continue
        item = read_included(reader) or reader.term()[0]
        if item is None:
            reader.skip()
        elif alternatives[-1] and isinstance(item, WordItem) and item.word == "OR":
            alternatives.append([])
        else:
            alternatives[-1].append(item)
    sides = tuple(AndItem(tuple(side)) for side in alternatives if side)
    return _without(OrItem(sides), negatives) if sides else None


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
    whole = item if plain is not None else canonical(item)  # words, and one operator over them, are canonical
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
