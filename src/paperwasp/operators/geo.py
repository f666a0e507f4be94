"""geoLocation and geoBoundingBox: documents with a position in a circle or in a rectangle of degrees.

Vespa: https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from paperwasp.attribute import ColumnView
from paperwasp.attribute.areas import Area
from paperwasp.attribute.elements import positions_in
from paperwasp.attribute.imported import ImportedView
from paperwasp.attribute.position import PositionView
from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, TermOperator, planner
from paperwasp.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.operators.items import GeoBoundingBoxItem, GeoLocationItem, TermItem
from paperwasp.operators.term import bits_of
from paperwasp.operators.word import fields_of


class PositionMatch(FieldMatch):
    """Positions of a field in an area."""

    def __init__(self, space: SearchSpace, field: str, column: ColumnView, area: Area) -> None:
        self.field = field
        self.area = area
        self._space = space
        self._column = column

    @cached_property
    def _bitmap(self) -> Bitmap:
        column, limit = self._column, self._space.limit
        if isinstance(column, ImportedView):
            inner = _positions(column)
            return column.over_innermost(self.area.bitmap(inner, inner.limit), limit)
        return self.area.bitmap(_positions(column), limit)

    def add_to(self, bitmap: Bitmap) -> None:
        bitmap |= self._bitmap

    def frequency(self) -> int:
        return _core.bitmap_count(self._bitmap, self._space.accept)

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return bits_of(self._bitmap, lids).astype(np.int32)

    def raw_scores(self, lids: Lids) -> NDArray[np.float64]:
        """1 / (1 + the distance in km of the nearest position) where a position is in the area; 1 in a box.

        Vespa: locationiterators.cpp (`doUnpack`): from the flat distance in which a circle is round.
        """
        there = bits_of(self._bitmap, lids)
        if not self.area.has_center:
            return there.astype(np.float64)
        counts, positions = positions_in(self._column, lids)
        kilometres = np.full(len(lids), np.inf)
        if len(positions):
            has = counts > 0
            kilometres[has] = np.minimum.reduceat(self.area.flat_km(positions), (np.cumsum(counts) - counts)[has])
        return np.where(there, 1.0 / (1.0 + kilometres), 0.0)

    def elements(self, lids: Lids) -> Occurrences:
        view, rows, is_there = self._rows(lids)
        found = self.area.elements(view, rows)
        counts = np.zeros(len(lids), np.int64)
        counts[is_there] = found.counts
        return np.concatenate([[0], np.cumsum(counts)]).astype(np.uint32), found.numbers.astype(np.uint32)

    def _rows(self, lids: Lids) -> tuple[PositionView, Lids, NDArray[np.bool_]]:
        """The positions, and the rows of documents in them; of those documents that have a row."""
        if isinstance(self._column, ImportedView):
            rows, is_there = self._column.rows(lids)
            return _positions(self._column), rows[is_there], is_there
        return _positions(self._column), lids, np.ones(len(lids), np.bool_)


@planner(GeoLocationItem)
def plan_geo_location(item: GeoLocationItem, space: SearchSpace) -> Operator:
    return _plan(item, Area.circle(item.latitude, item.longitude, item.radius_degrees, item.aspect), space)


@planner(GeoBoundingBoxItem)
def plan_geo_bounding_box(item: GeoBoundingBoxItem, space: SearchSpace) -> Operator:
    if item.west > item.east or item.south > item.north:
        raise InvalidQuery(f"geoBoundingBox in '{item.index}': cannot have w > e, or s > n")
    return _plan(item, Area.rectangle(item.south, item.west, item.north, item.east), space)


def _plan(item: TermItem, area: Area, space: SearchSpace) -> Operator:
    matches: list[FieldMatch] = []
    for field in fields_of(item.index, space):
        column = space.columns.get(field.name)
        inner = column.innermost if isinstance(column, ImportedView) else column
        if field.attribute is None or not isinstance(inner, PositionView) or column is None:
            raise InvalidQuery(f"Field '{field.name}' of type {field.type} is not an attribute with positions")
        matches.append(PositionMatch(space, field.name, column, area))
    return TermOperator(space, matches, item.annotations)


def _positions(column: ColumnView) -> PositionView:
    """The column of the positions, of the parents where they are imported."""
    inner = column.innermost if isinstance(column, ImportedView) else column
    assert isinstance(inner, PositionView)
    return inner
