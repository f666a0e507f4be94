"""Ranking by fields with `rank: literal`: adds to a query its words in the index of the words as they are.

    title contains "Cars"  →  rank(title contains "Cars", title_literal contains "cars")

Vespa: LiteralBoostSearcher, which does the same.
"""

from __future__ import annotations

from paperwasp.query.yql.indexes import Indexes
from paperwasp.search.operators.boolean import RankItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.word import WordItem


def with_literals(tree: Item, indexes: Indexes) -> Item:
    """The tree with these words behind it; itself where there are none."""
    words = ((indexes.reading(index).literal, word) for index, word in tree.literal_words())
    found = tuple(WordItem(literal, word.lower()) for literal, word in words if literal)
    if not found:
        return tree
    return RankItem((*tree.children, *found)) if isinstance(tree, RankItem) else RankItem((tree, *found))
