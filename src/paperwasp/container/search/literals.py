"""Ranking by fields with `rank: literal`: adds to a query its words in the index of the words as they are.

    title contains "Cars"  →  rank(title contains "Cars", title_literal contains "cars")

Vespa: LiteralBoostSearcher, which does the same.
"""

from __future__ import annotations

from collections.abc import Iterator

from paperwasp.operators.items import (
    Item,
    NotItem,
    PhraseItem,
    PrefixItem,
    RankItem,
    SameElementItem,
    SubstringItem,
    SuffixItem,
    WordItem,
)
from paperwasp.yql.indexes import Indexes


def with_literals(tree: Item, indexes: Indexes) -> Item:
    """The tree with these words behind it; itself where there are none."""
    found = tuple(_literals(tree, indexes))
    if not found:
        return tree
    return RankItem((*tree.children, *found)) if isinstance(tree, RankItem) else RankItem((tree, *found))


def _literals(item: Item, indexes: Indexes) -> Iterator[Item]:
    match item:
        case SameElementItem():
            return
        case NotItem():
            yield from _literals(item.children[0], indexes)
        case PhraseItem():
            for word in item.words:
                yield from _of_word(item.index, word, indexes) if isinstance(word, str) else _literals(word, indexes)
        case WordItem() | PrefixItem() | SuffixItem() | SubstringItem():
            yield from _of_word(item.index, item.word, indexes)
        case _:
            for child in item.children_of():
                yield from _literals(child, indexes)


def _of_word(index: str, word: str, indexes: Indexes) -> Iterator[Item]:
    if literal := indexes.reading(index).literal:
        yield WordItem(literal, word.lower())
