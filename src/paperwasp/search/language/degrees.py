"""Degrees of latitude and longitude in texts, and distances in degrees.

Vespa: com.yahoo.geo.OneDegreeParser, com.yahoo.geo.DistanceParser
"""

from __future__ import annotations

from math import pi
from typing import Final

from paperwasp.base.patterns import compile_later

_METERS_PER_DEGREE: Final = pi * 6_356_752.0 / 180.0
"""By the polar radius, as in Vespa."""
DEGREES: Final = {
    "km": 1000.0 / _METERS_PER_DEGREE,
    "m": 1.0 / _METERS_PER_DEGREE,
    "miles": 1609.344 / _METERS_PER_DEGREE,
    "mi": 1609.344 / _METERS_PER_DEGREE,
    "deg": 1.0,
    "d": 1.0,
}
"""Unit of distance → how many degrees one of it is."""
_COORDINATE: Final = compile_later(
    r"(?P<sign>[+-]?)(?P<before>[NSEW]?)(?P<degrees>[0-9]{1,40}(?:\.[0-9]{0,40})?|\.[0-9]{1,40})(?:[°o]|(?P<between>[NSEW]))?"
    r"(?:(?P<minutes>[0-9]{1,40}(?:\.[0-9]{0,40})?)(?:'(?P<seconds>[0-9]{1,40}(?:\.[0-9]{0,40})?)?)?)?(?P<behind>[NSEW]?)"
)


def read_degrees(text: str) -> tuple[float, str] | None:
    """The degrees in `63.5`, `N63.5`, `63N25.1` or `N63°25'47`, and the direction that is named in it, if any."""
    match = _COORDINATE.fullmatch(text)
    if match is None:
        return None
    directions = match["before"] + (match["between"] or "") + match["behind"]
    if len(directions) > 1 or (match["minutes"] and "." in match["degrees"]):
        return None
    degrees = float(match["degrees"]) + float(match["minutes"] or 0) / 60 + float(match["seconds"] or 0) / 3600
    below = directions in ("S", "W") if directions else match["sign"] == "-"
    return -degrees if below else degrees, directions
