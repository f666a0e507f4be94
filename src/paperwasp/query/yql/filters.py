"""The parameters `model.filter` and `recall`: terms beside the query, in its signs.

`+term` must match, `-term` must not, and a term without a sign only ranks. They never find more than the query does.
Vespa: `model.filter` and `recall` in https://docs.vespa.ai/en/reference/api/query.html
"""

from __future__ import annotations

from paperwasp.base.records import dataclass
from paperwasp.errors import InvalidQuery
from paperwasp.query.yql.indexes import NO_INDEXES, Indexes
from paperwasp.query.yql.marks import marked
from paperwasp.query.yql.simple import parse_simple, read_excluded, read_included
from paperwasp.query.yql.simple_terms import Reader
from paperwasp.search.operators.boolean import AndItem, NotItem, RankItem
from paperwasp.search.operators.item import Item


@dataclass(frozen=True, slots=True)
class Filter:
    """The terms of a filter, each marked as one that the user did not write."""

    required: tuple[Item, ...] = ()
    excluded: tuple[Item, ...] = ()
    ranking: tuple[Item, ...] = ()

    def applied_to(self, tree: Item) -> Item:
        """The canonical tree of what `tree` finds and the filter lets through."""
        if self.required:
            tree = AndItem((tree, *self.required))
        if self.excluded:
            tree = NotItem((tree, *self.excluded))
        if self.ranking:
            tree = RankItem((tree, *self.ranking))
        return tree.canonical()


def parse_filter(text: str, default_index: str | None = None, indexes: Indexes = NO_INDEXES) -> Filter:
    """The filter in `text`: simple query language of type `any`. Its terms have the annotation `filter`, and rank."""
    reader = Reader(text, default_index, indexes)
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
    """The tree of a query with the filter in `text`; of a query with nothing to search for, that of the filter."""
    if tree is not None:
        return parse_filter(text, default_index, indexes).applied_to(tree)
    alone = parse_simple(text, "any", default_index, indexes)
    return None if alone is None else marked(alone, {"filter": True})


def parse_recall(text: str, default_index: str | None = None, indexes: Indexes = NO_INDEXES) -> Filter:
    """As `parse_filter`, of terms that do not rank. Errors: InvalidQuery for a term without a sign, or no term."""
    found = parse_filter(text, default_index, indexes)
    if found.ranking:
        raise InvalidQuery("Recall contains at least one rank item.")
    if not found.required and not found.excluded:
        raise InvalidQuery("Failed to parse recall parameter.")
    return Filter(_filters([*found.required], ranked=False), _filters([*found.excluded], ranked=False))
