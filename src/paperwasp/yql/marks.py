"""Annotations set on a whole tree at once: on every term of a filter, of a user's text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from paperwasp.operators.items import EquivItem, Item, PhraseItem, TermItem


def marked(item: Item, given: Mapping[str, object]) -> Item:
    """`item` with the annotations `given`, by the names of `Annotations`, on each term in it."""
    if not given:
        return item
    if isinstance(item, PhraseItem):
        words = tuple(word if isinstance(word, str) else marked(word, given) for word in item.words)
        item = replace(item, words=words)
    if isinstance(item, TermItem | EquivItem):
        item = replace(item, annotations=replace(item.annotations, **given))  # type: ignore[arg-type]
    children = item.children_of()
    return item.with_children(tuple(marked(child, given) for child in children)) if children else item
