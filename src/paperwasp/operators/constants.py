"""true and false."""

from __future__ import annotations

from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.field_match import Bitmap
from paperwasp.operators.items import FalseItem, TrueItem


class TrueOperator(Operator):
    """Every document."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self._space.accept.copy()

    def estimate(self) -> int:
        return self._space.documents


class FalseOperator(Operator):
    """No document."""

    def __init__(self, space: SearchSpace) -> None:
        self._space = space

    def bitmap(self, within: Bitmap | None = None) -> Bitmap:
        return self._space.empty()


@planner(TrueItem)
def plan_true(_: TrueItem, space: SearchSpace) -> Operator:
    return TrueOperator(space)


@planner(FalseItem)
def plan_false(_: FalseItem, space: SearchSpace) -> Operator:
    return FalseOperator(space)
