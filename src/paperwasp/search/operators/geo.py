"""geoLocation and geoBoundingBox: documents with a position in a circle or in a rectangle of degrees.

Vespa: https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

from functools import cached_property
from math import isfinite
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.item import Item, TermItem
from paperwasp.search.operators.notation import Argument, ArgumentReader, annotated, call, condition
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.operators.term import bits_of
from paperwasp.search.operators.word import fields_of
from paperwasp.search.yql_syntax import DEGREES, AnnotationScope, read_degrees
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.distances import Area
from paperwasp.storage.attributes.elements import positions_in
from paperwasp.storage.attributes.imported import ImportedView
from paperwasp.storage.attributes.position import PositionView

_DISTANCE: Final = compile_later(
    r"\s*([+-]?[0-9]{0,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?) ?(km|miles|mi|m|deg|d)"
)


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


class _AreaItem(TermItem, frozen=True):
    """Positions in an area."""

    def area(self) -> Area:
        """Errors: InvalidQuery for what is no area."""
        raise NotImplementedError

    def plan(self, space: SearchSpace) -> Operator:
        area = self.area()
        matches: list[FieldMatch] = []
        for field in fields_of(self.index, space):
            column = space.columns.get(field.name)
            inner = column.innermost if isinstance(column, ImportedView) else column
            if field.attribute is None or not isinstance(inner, PositionView) or column is None:
                raise InvalidQuery(f"Field '{field.name}' of type {field.type} is not an attribute with positions")
            matches.append(PositionMatch(space, field.name, column, area))
        return TermOperator(space, matches, self.annotations)


class GeoLocationItem(_AreaItem, frozen=True):
    """Positions within `radius_degrees` of a place; below zero: anywhere, and ranking sees the distance."""

    without_elements = "geoLocation"

    latitude: float
    longitude: float
    radius_degrees: float = -1.0
    aspect: int | None = None
    """How much a distance along a parallel counts, in parts of 2^32; 0: all of it; None: the cosine of the latitude."""

    def to_yql(self) -> str:
        place = (self.index, repr(self.latitude), repr(self.longitude), f'"{self.radius_degrees!r} deg"')
        return annotated(call("geoLocation", place), self.annotations)

    def area(self) -> Area:
        return Area.circle(self.latitude, self.longitude, self.radius_degrees, self.aspect)


class GeoBoundingBoxItem(_AreaItem, frozen=True):
    """Positions in a rectangle of degrees."""

    is_seen_by_rules = False
    without_elements = "geoBoundingBox"

    south: float
    west: float
    north: float
    east: float

    def to_yql(self) -> str:
        corners = map(repr, (self.south, self.west, self.north, self.east))
        return annotated(call("geoBoundingBox", (self.index, *corners)), self.annotations)

    def area(self) -> Area:
        if self.west > self.east or self.south > self.north:
            raise InvalidQuery(f"geoBoundingBox in '{self.index}': cannot have w > e, or s > n")
        return Area.rectangle(self.south, self.west, self.north, self.east)


def _positions(column: ColumnView) -> PositionView:
    """The column of the positions, of the parents where they are imported."""
    inner = column.innermost if isinstance(column, ImportedView) else column
    assert isinstance(inner, PositionView)
    return inner


@condition("geoLocation", Argument.NAME, Argument.LITERAL)
def read_geo_location(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`geoLocation(field, latitude, longitude, "200 km")`: within that distance; below zero: anywhere."""
    field = parser.field_or_quoted()
    start = parser.tokens.current
    first, is_latitude = _coordinate(parser, latitude=True)
    second, is_second_latitude = _coordinate(parser, latitude=False)
    if is_latitude == is_second_latitude:
        parser.tokens.fail("a place takes one latitude and one longitude", start)
    north, east = (first, second) if is_latitude else (second, first)
    return GeoLocationItem(field, north, east, _radius(parser), annotations=scope.of_term())


@condition("geoBoundingBox", Argument.NAME, Argument.LITERAL)
def read_geo_bounding_box(parser: ArgumentReader, scope: AnnotationScope) -> Item:
    """`geoBoundingBox(field, south, west, north, east)`, in degrees."""
    field = parser.field_or_quoted()
    corners = [_coordinate(parser, latitude=latitude)[0] for latitude in (True, False, True, False)]
    return GeoBoundingBoxItem(field, *corners, annotations=scope.of_term())


def _coordinate(parser: ArgumentReader, *, latitude: bool) -> tuple[float, bool]:
    """`, 63.5` or `, "N63.5"`; and whether it is a latitude, which a letter may say in place of the order."""
    tokens = parser.tokens
    tokens.expect(",")
    start = tokens.current
    sign = -1 if tokens.accept("-") else 1
    value = parser.value()
    if type(value) in (int, float):
        degrees = float(sign * value)
    elif isinstance(value, str) and (found := read_degrees(value)) is not None:
        degrees, direction = found
        latitude = direction in "NS" if direction else latitude
    else:
        tokens.fail(f"expected degrees, such as 63.5 or 'N63.5', found {value!r}", start)
    bound = 90 if latitude else 180
    if not -bound <= degrees <= bound:
        tokens.fail(f"{degrees} is not between -{bound} and {bound} degrees", start)
    return degrees, latitude


def _radius(parser: ArgumentReader) -> float:
    """`, "200 km"` in degrees; -1 for any distance."""
    tokens = parser.tokens
    tokens.expect(",")
    start = tokens.current
    text = parser.text("a distance")
    match = _DISTANCE.fullmatch(text)
    try:
        degrees = float(match.group(1)) * DEGREES[match.group(2)] if match else None
    except ValueError:
        degrees = None
    if degrees is None or not isfinite(degrees):
        tokens.fail(f"'{text}' is not a distance: a number with one of the units {', '.join(DEGREES)}", start)
    return degrees if degrees >= 0 else -1.0
