"""`geoLocation` and `geoBoundingBox`: positions on the earth."""

from __future__ import annotations

from math import isfinite
from typing import Final

from paperwasp.operators.arguments import ArgumentReader
from paperwasp.operators.items import GeoBoundingBoxItem, GeoLocationItem, Item
from paperwasp.operators.registry import condition
from paperwasp.patterns import compile_later
from paperwasp.query.degrees import DEGREES, read_degrees
from paperwasp.query.scope import Scope

_DISTANCE: Final = compile_later(
    r"\s*([+-]?[0-9]{0,40}(?:\.[0-9]{0,40})?(?:[eE][+-]?[0-9]{1,4})?) ?(km|miles|mi|m|deg|d)"
)


@condition("geoLocation")
def geo_location(parser: ArgumentReader, scope: Scope) -> Item:
    """`geoLocation(field, latitude, longitude, "200 km")`: within that distance; below zero: anywhere."""
    field = parser.field_or_quoted()
    start = parser.tokens.current
    first, is_latitude = _coordinate(parser, latitude=True)
    second, is_second_latitude = _coordinate(parser, latitude=False)
    if is_latitude == is_second_latitude:
        parser.tokens.fail("a place takes one latitude and one longitude", start)
    north, east = (first, second) if is_latitude else (second, first)
    return GeoLocationItem(field, north, east, _radius(parser), annotations=scope.of_term())


@condition("geoBoundingBox")
def geo_bounding_box(parser: ArgumentReader, scope: Scope) -> Item:
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
