"""The canonical form of a query tree: the same matches with fewer items.

Levels of the same operator are merged, operators of one item give way to it, and items that can match nothing
take what depends on them along.
Vespa: com.yahoo.prelude.query.QueryCanonicalizer describes the same rules.
Differs: a WeakAnd of one item gives way to the item, which finds all that it matches rather than the best of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from paperwasp.operators.items import (
    AndItem,
    DotProductItem,
    EquivItem,
    FalseItem,
    InItem,
    Item,
    LabeledItem,
    NearItem,
    NotItem,
    OrItem,
    RankItem,
    SameElementItem,
    TrueItem,
    WandItem,
    WeakAndItem,
    WeightedSetItem,
)


def canonical(item: Item) -> Item:
    """`item` in its canonical form; the same object when it is in it already."""
    rule = _RULES.get(type(item))
    return item if rule is None else rule(item)


def _children(item: Item) -> list[Item]:
    return [canonical(child) if type(child) in _RULES else child for child in item.children_of()]


def _of_equals(item: AndItem | OrItem | WeakAndItem) -> Item:
    children = _children(item)
    merged = tuple(_merge_children(item, children) if type(item) in map(type, children) else children)
    if isinstance(item, AndItem) and _has_false(merged):
        return FalseItem()
    if isinstance(item, OrItem):
        merged = tuple([child for child in merged if type(child) is not FalseItem]) or (FalseItem(),)
    if len(merged) == 1:
        return merged[0]
    return _over(item, merged)


def _merge_children(item: AndItem | OrItem | WeakAndItem, children: Sequence[Item]) -> Iterator[Item]:
    for child in children:
        if type(child) is type(item) and _same_settings(child, item):
            yield from child.children_of()
        else:
            yield child


def _same_settings(child: Item, parent: Item) -> bool:
    if isinstance(child, WeakAndItem) and isinstance(parent, WeakAndItem):
        return child.target_hits == parent.target_hits
    return True


def _led_by_first(item: RankItem | NotItem) -> Item:
    first, *others = _children(item)
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
    return _over(item, (first, *others))


def _canonical_labeled(item: LabeledItem) -> Item:
    children = tuple(_children(item))
    return FalseItem() if _has_false(children) else _over(item, children)


def _near(item: NearItem) -> Item:
    """`near` of one word, which nothing has to be near to, is that word."""
    children = tuple(_children(item))
    if _has_false(children[: len(item.children)]):
        return FalseItem()
    return children[0] if len(children) == 1 else _over(item, children)


def _equiv(item: EquivItem) -> Item:
    terms = tuple(_children(item))
    return terms[0] if len(terms) == 1 else _over(item, terms)


def _same_element(item: SameElementItem) -> Item:
    """An `and` among the conditions is dissolved: all conditions hold for the element anyway."""
    children: list[Item] = []
    for child in _children(item):
        children += child.children_of() if isinstance(child, AndItem) else (child,)
    return FalseItem() if _has_false(children) else _over(item, tuple(children))


def _one_of_values(item: InItem) -> Item:
    return item if item.values else FalseItem()


def _one_of_tokens(item: WeightedSetItem | DotProductItem | WandItem) -> Item:
    return item if item.tokens else FalseItem()


def _has_false(items: Sequence[Item]) -> bool:
    return FalseItem in map(type, items)


def _over(item: Item, children: tuple[Item, ...]) -> Item:
    if children == item.children_of():
        return item
    return item.with_children(children)


_RULES: Final[Mapping[type[Item], Callable[[Any], Item]]] = {
    AndItem: _of_equals,
    OrItem: _of_equals,
    WeakAndItem: _of_equals,
    RankItem: _led_by_first,
    NotItem: _led_by_first,
    LabeledItem: _canonical_labeled,
    NearItem: _near,
    EquivItem: _equiv,
    SameElementItem: _same_element,
    InItem: _one_of_values,
    WeightedSetItem: _one_of_tokens,
    DotProductItem: _one_of_tokens,
    WandItem: _one_of_tokens,
}
"""Item type → makes its canonical form. Items of other types are canonical as they are."""
