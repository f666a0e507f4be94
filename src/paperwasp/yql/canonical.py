"""The canonical form of a query tree: the same matches with fewer items.

Levels of the same operator are merged, operators of one item give way to it, and items that can match nothing
take what depends on them along.
Vespa: com.yahoo.prelude.query.QueryCanonicalizer describes the same rules.
Differs: a WeakAnd of one item gives way to the item, which finds all that it matches rather than the best of it.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from paperwasp.query.items import AndItem, FalseItem, Item, NotItem, OrItem, RankItem, TrueItem, WeakAndItem

_COMPOSITES = (AndItem, OrItem, WeakAndItem, RankItem, NotItem)


def canonical(item: Item) -> Item:
    """`item` in its canonical form; the same object when it is in it already."""
    if not isinstance(item, _COMPOSITES):
        return item
    children = [canonical(child) for child in item.children]
    if isinstance(item, RankItem | NotItem):
        return _led_by_first(item, children)
    return _of_equals(item, children)


def _of_equals(item: AndItem | OrItem | WeakAndItem, children: Sequence[Item]) -> Item:
    merged = tuple(_merged(item, children))
    if isinstance(item, AndItem) and any(isinstance(child, FalseItem) for child in merged):
        return FalseItem()
    if isinstance(item, OrItem):
        merged = tuple(child for child in merged if not isinstance(child, FalseItem)) or (FalseItem(),)
    if len(merged) == 1:
        return merged[0]
    return item if merged == item.children else replace(item, children=merged)


def _merged(item: AndItem | OrItem | WeakAndItem, children: Sequence[Item]) -> Iterator[Item]:
    for child in children:
        if type(child) is type(item) and _same_settings(child, item):
            yield from child.children_of()
        else:
            yield child


def _same_settings(child: Item, parent: Item) -> bool:
    if isinstance(child, WeakAndItem) and isinstance(parent, WeakAndItem):
        return child.target_hits == parent.target_hits
    return True


def _led_by_first(item: RankItem | NotItem, children: Sequence[Item]) -> Item:
    first, *others = children
    if isinstance(first, FalseItem):
        return FalseItem()
    if type(first) is type(item):
        first, *nested = first.children_of()
        others = [*nested, *others]
    others = [other for other in others if not isinstance(other, FalseItem)]
    if isinstance(item, NotItem) and any(isinstance(other, TrueItem) for other in others):
        return FalseItem()
    if not others:
        return first
    merged = (first, *others)
    return item if merged == item.children else replace(item, children=merged)
