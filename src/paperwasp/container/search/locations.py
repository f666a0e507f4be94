"""Locations of a whole request: `ranking.location`, in millionths of degrees, and `pos.*`, as people write places.

`attribute:(2,X,Y,RADIUS,0,1,0,ASPECT)` is a circle, `attribute:[2,X1,Y1,X2,Y2]` a rectangle, and both may be given.
X is the longitude, Y the latitude; a radius of -1 limits nothing. `pos.*` says the same and only counts without it.
Vespa: https://docs.vespa.ai/en/reference/api/query.html#geographical-searches
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.container.search.settings import PositionParameters
from paperwasp.document.types import POSITION, ArrayType
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.schema.model import Schema
from paperwasp.search.operators.boolean import AndItem, RankItem
from paperwasp.search.operators.geo import GeoBoundingBoxItem, GeoLocationItem
from paperwasp.search.operators.item import Item
from paperwasp.search.yql_syntax import DEGREES, read_degrees

_NUMBER: Final = r"\s*(-?\d{1,10})\s*"
_CIRCLE: Final = compile_later(
    rf"\(\s*2\s*,{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}(?:,\s*(CalcLatLon|\d{{1,10}})\s*)?\)",
    re.ASCII | re.IGNORECASE,
)
_RECTANGLE: Final = compile_later(rf"\[\s*2\s*,{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\]", re.ASCII)
_ATTRIBUTE: Final = compile_later(r"\s*(?:([A-Za-z_][\w.]*)?\s*:)?", re.ASCII)
_UNITS: Final = ("km", "m", "mi")
"""The units of `pos.radius`, in the order in which they are looked for at its end."""
_DEFAULT_RADIUS: Final = 50 * DEGREES["km"]
_JAVA_NUMBER: Final = compile_later(r"\s*[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?[fFdD]?\s*", re.ASCII)
_JAVA_INTEGER: Final = compile_later(r"[+-]?\d{1,10}", re.ASCII)
_MILLION: Final = 1_000_000
_MOST: Final = 2**31 - 1
_MAX_ASPECT: Final = 2**32 - 1
_SIDES: Final = "nsew"


class Location(Struct, frozen=True):
    """A circle, a rectangle, or what is in both, in millionths of degrees."""

    attribute: str = ""
    circle: tuple[int, int, int] | None = None
    """x, y and radius; a radius below zero limits nothing."""
    aspect: int | None = 0
    """How much a distance along a parallel counts in the circle: see GeoLocationItem."""
    rectangle: tuple[int, int, int, int] | None = None
    """West, south, east, north."""

    def applied_to(self, root: Item, schemas: Iterable[Schema]) -> Item:
        """The query limited to the place, or, where the place limits nothing, ranked by the distance to it.

        Errors: InvalidQuery where no attribute is named and there are no positions.
        """
        index = self.attribute or _default_position(schemas)
        if self.rectangle:
            west, south, east, north = (side / _MILLION for side in self.rectangle)
            root = AndItem((root, GeoBoundingBoxItem(index, south, west, north, east)))
        if self.circle:
            x, y, radius = self.circle
            degrees = radius / _MILLION if radius >= 0 else -1.0
            place = GeoLocationItem(index, y / _MILLION, x / _MILLION, degrees, self.aspect)
            root = AndItem((root, place)) if radius >= 0 else RankItem((root, place))
        return root


def read_location(text: str) -> Location:
    """The place that `ranking.location` says. Errors: IllegalQuery."""
    attribute = _ATTRIBUTE.match(text)
    assert attribute is not None
    rest = text[attribute.end() :].strip()
    circle, rectangle = _CIRCLE.search(rest), _RECTANGLE.search(rest)
    if not rest or _RECTANGLE.sub("", _CIRCLE.sub("", rest, 1), 1).strip():
        raise _not_set(text, "Illegal location syntax")
    aspect: int | None = 0
    if circle and circle[7]:
        aspect = int(circle[7]) if circle[7].isdigit() else None
        if aspect is not None and aspect > _MAX_ASPECT:
            raise _not_set(text, f"Aspect {aspect} for location parameter must be less than 4294967296 (2^32)")
    sides = tuple(int(side) for side in rectangle.groups()) if rectangle else None
    if sides and (sides[0] > sides[2] or sides[1] > sides[3]):
        raise _not_set(text, "cannot have w > e, or s > n")
    return Location(
        attribute=attribute[1] or "",
        circle=(int(circle[1]), int(circle[2]), int(circle[3])) if circle else None,
        aspect=aspect,
        rectangle=sides,  # type: ignore[arg-type]
    )


def _not_set(text: str, problem: str) -> IllegalQuery:
    return IllegalQuery(f"Could not set 'ranking.location' to '{text}': {problem}")


def read_position(given: PositionParameters) -> Location:
    """The place that `pos.*` says. Errors: InvalidQuery.

    Vespa: com.yahoo.prelude.searcher.PosSearcher
    """
    try:
        if given.ll is not None and given.xy is not None:
            raise ValueError("Cannot handle both lat/long and xy coords at the same time")
        circle, aspect = None, None
        if given.ll is not None:
            circle = (*_geo_center(given.ll), _radius(given.radius))
        elif given.xy is not None:
            circle, aspect = (*_center(given.xy), _radius(given.radius)), 0
        box = None if given.bb is None else _box(given.bb)
    except ValueError as error:
        raise InvalidQuery(f"Error in pos parameters: {error}") from None
    return Location(given.attribute, circle, aspect, box)


def _geo_center(text: str) -> tuple[int, int]:
    try:
        found = dict(_coordinates(text))
        for name in ("latitude", "longitude"):
            if name not in found:
                raise ValueError(f"missing {name}")
    except ValueError as error:
        raise ValueError(f"Unable to parse lat/long string '{text}': {error}") from None
    return int(found["longitude"] * _MILLION), int(found["latitude"] * _MILLION)


def _coordinates(text: str) -> Iterator[tuple[str, float]]:
    """`latitude` and `longitude` of `N63.4;E10.4`, in any order, each with its direction, with `;` or a blank between.

    Vespa: com.yahoo.geo.DegreesParser
    """
    seen: set[str] = set()
    parts = re.split("[; ]", text)
    for part in parts[:-1] if len(parts) > 1 and not parts[-1] else parts:
        found = read_degrees(part) if part[:1] not in ("+", "-") else None
        if found is None and not re.search("[NSEW]", part):
            raise ValueError("end of field without any compass direction seen")
        if found is None:
            raise ValueError(f"'{part}' is not a number of degrees with a direction")
        degrees, direction = found
        if not direction:
            raise ValueError("end of field without any compass direction seen")
        name, letters, bound = ("latitude", "N or S", 90) if direction in "NS" else ("longitude", "E or W", 180)
        if name in seen:
            raise ValueError(f"found {name} ({letters}) twice")
        if not -bound <= degrees <= bound:
            raise ValueError(f"out of range [-{bound},+{bound}]: {degrees}")
        seen.add(name)
        yield name, degrees


def _center(text: str) -> tuple[int, int]:
    x, separator, y = text.partition(";")
    if not separator or not x:
        raise ValueError(f"pos.xy must be in the format 'digits;digits' but was: '{text}'")
    return _integer(x), _integer(y)


def _radius(text: str | None) -> int:
    """In millionths of degrees; without a unit they are that."""
    if text is None:
        return int(_DEFAULT_RADIUS * _MILLION)
    for unit in _UNITS:
        if text.endswith(unit):
            number = text[: -len(unit)]
            if not _JAVA_NUMBER.fullmatch(number):
                raise ValueError(f'For input string: "{number}"' if number.strip() else "empty String")
            radius = float(number.strip().rstrip("fFdD")) * DEGREES[unit] * _MILLION
            return -1 if radius < 0 else int(min(radius, _MOST))
    return max(_integer(text), -1)


def _integer(text: str) -> int:
    if not _JAVA_INTEGER.fullmatch(text) or not -_MOST - 1 <= int(text) <= _MOST:
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def _box(text: str) -> tuple[int, int, int, int]:
    """West, south, east and north of `n=63.5,s=63.4,e=10.5,w=10.4`, in any order.

    Vespa: com.yahoo.geo.BoundingBoxParser, Location.setBoundingBox
    """
    limits: dict[str, float] = {}
    side, start = "", 0
    for at, character in enumerate(f"{text},"):
        if not side and character.lower() in _SIDES:
            side, start = character.lower(), 0
        elif character in "=:" and side:
            start = at + 1
        elif character in ", " and side and start:
            limits[side] = _limit(side, text[start:at], limits)
            side = ""
    if len(limits) < len(_SIDES):
        there = " ".join(f"{side}={str(side in limits).lower()}" for side in _SIDES)
        raise ValueError(f"Missing bounding box limits, {there}")
    west, south, east, north = (math.floor(max(-_MOST, min(limits[side] * _MILLION, _MOST)) + 0.5) for side in "wsen")
    if west > east:
        raise ValueError("cannot have w > e")
    if south > north:
        raise ValueError("cannot have s > n")
    return west, south, east, north


def _limit(side: str, text: str, known: dict[str, float]) -> float:
    if not _JAVA_NUMBER.fullmatch(text):
        raise ValueError(f"Could not parse {side} limit '{text}' as a number")
    if side in known:
        raise ValueError(f"multiple limits for '{side}' boundary")
    return float(text.strip().rstrip("fFdD"))


def _default_position(schemas: Iterable[Schema]) -> str:
    """The last field with positions: of several Vespa takes that one too (SearchDefinition.addCommand,
    DefaultPositionSearcher)."""
    found = [
        field.name
        for schema in schemas
        for field in schema.fields.values()
        if (field.type.element if isinstance(field.type, ArrayType) else field.type) == POSITION and field.attribute
    ]
    if not found:
        raise InvalidQuery("The query has a location, and no document type that is searched has an attribute of places")
    return found[-1]
