"""The names of fields in a query tree, changed to those that the schemas have.

Vespa: getCanonicName of IndexFacts.java, for a name that YQL has in quotes.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paperwasp.operators.items import Item, PhraseItem, SameElementItem, TermItem
from paperwasp.yql.user_items import UserTextItem


def renamed(item: Item, names: Mapping[str, str]) -> Item:
    """The tree with other names for the fields that `names` has."""
    match item:
        case PhraseItem():
            words = tuple(word if isinstance(word, str) else renamed(word, names) for word in item.words)
            return replace(item, index=names.get(item.index, item.index), words=words)
        case TermItem():
            return replace(item, index=names.get(item.index, item.index))
        case UserTextItem():
            return replace(item, default_index=names.get(item.default_index, item.default_index))
        case SameElementItem():
            below = _below(item.index, names)
            children = tuple(renamed(child, below) for child in item.children)
            return replace(item, index=names.get(item.index, item.index), children=children)
    return item.with_children(tuple(renamed(child, names) for child in item.children_of()))


def _below(field: str, names: Mapping[str, str]) -> dict[str, str]:
    """The names of what is in the elements of a field, without the name of that field."""
    start = f"{field}."
    return {old[len(start) :]: new[len(start) :] for old, new in names.items() if old.startswith(start)}
