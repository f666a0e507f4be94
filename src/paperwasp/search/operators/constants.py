"""true and false: items that match every document, and none."""

from __future__ import annotations

from collections.abc import Iterable

from paperwasp.base.records import dataclass
from paperwasp.search.operators.field_match import Bitmap
from paperwasp.search.operators.item import Composite, Item
from paperwasp.search.operators.operator import Operator, SearchSpace


class TrueOperator(Operator):
    """Every document."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self._space.accept.copy()

    def estimate(self) -> int:
        return self._space.documents

    def cost(self, limit: int) -> tuple[float, int]:
        return 0.0, limit


class FalseOperator(Operator):
    """No document."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self._space.empty()

    def cost(self, limit: int) -> tuple[float, int]:
        return 0.0, 0


@dataclass(frozen=True, slots=True)
class TrueItem(Item):
    """Matches every document."""

    is_plain = True

    def to_yql(self) -> str:
        return "true"

    def plan(self, space: SearchSpace) -> Operator:
        return TrueOperator(space)


@dataclass(frozen=True, slots=True)
class FalseItem(Item):
    """Matches no document."""

    is_plain = True

    def to_yql(self) -> str:
        return "false"

    def plan(self, space: SearchSpace) -> Operator:
        return FalseOperator(space)


def has_false(items: Iterable[Item]) -> bool:
    """Whether one of them matches no document, by itself."""
    return FalseItem in map(type, items)


def led_by_first(item: Composite) -> tuple[Item, ...] | None:
    """The canonical children of an item that matches nothing where its first child does not, with those of a first
    child of the same kind dissolved, and those that match nothing left out; None: the first matches nothing."""
    first, *others = item.canonical_children()
    if isinstance(first, FalseItem):
        return None
    if item.merges(first):
        first, *nested = first.children_of()
        others = [*nested, *others]
    return first, *(other for other in others if not isinstance(other, FalseItem))
