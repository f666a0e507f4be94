"""Places on Earth as text: a latitude and a longitude, in either order, each with its direction.

    N37.416383;W122.024683     37N24.983;122W01.481     N37°24'59;W122°01'29     N63o25.105 E10o25.982

Two whole numbers, `-122024683;37416383`, are millionths of a degree, east and north.

Vespa: https://docs.vespa.ai/en/querying/geo-search.html, vespajlib com.yahoo.geo.DegreesParser
"""

from __future__ import annotations

import re
from itertools import pairwise
from typing import Final, NamedTuple

from paperwasp.base.patterns import compile_later

_NUMBER: Final = r"[0-9]{1,20}(?:\.[0-9]{0,20})?|\.[0-9]{1,20}"
_DIRECTION_FIRST: Final = compile_later(
    rf"(?P<direction>[NSEW])(?P<degrees>{_NUMBER})(?:[°o](?P<minutes>{_NUMBER})?(?:'(?P<seconds>{_NUMBER})?)?)?"
)
_DIRECTION_BETWEEN: Final = compile_later(
    rf"(?P<degrees>{_NUMBER})[°o]?(?P<direction>[NSEW])(?P<minutes>{_NUMBER})?(?:'(?P<seconds>{_NUMBER})?)?"
)
_DIRECTION_LAST: Final = compile_later(
    rf"(?P<degrees>{_NUMBER})[°o](?P<minutes>{_NUMBER})(?:'(?P<seconds>{_NUMBER})?)?(?P<direction>[NSEW])"
)
_MILLIONTHS: Final = compile_later(r"([-+]?[0-9]{1,10});([-+]?[0-9]{1,10})")
_MOST: Final = {"N": 90, "S": 90, "E": 180, "W": 180}
_MICRO: Final = 1_000_000
_LONGEST: Final = 200
_SHOWN: Final = 40


class Millionths(NamedTuple):
    """A place, in millionths of a degree: `x` east, `y` north."""

    x: int
    y: int


def parse_degrees(text: str) -> Millionths:
    """The place that `text` names; what is finer than a millionth is cut off. Errors: ValueError."""
    if found := _MILLIONTHS.fullmatch(text):
        return Millionths(int(found[1]), int(found[2]))
    parts = re.split("[; ]", text) if len(text) < _LONGEST else []
    angles = dict(_angle(part, text) for part in parts)
    if len(parts) != 2 or angles.keys() != {"x", "y"}:
        raise _refusal(text, "it needs a latitude and a longitude")
    return Millionths(int(angles["x"] * _MICRO), int(angles["y"] * _MICRO))


def _angle(part: str, text: str) -> tuple[str, float]:
    """On which axis it is, and its degrees."""
    patterns = (_DIRECTION_FIRST, _DIRECTION_BETWEEN, _DIRECTION_LAST)
    found = next((found for pattern in patterns if (found := pattern.fullmatch(part))), None)
    if found is None:
        raise _refusal(text, "each part is a direction (N, S, E, W) and degrees")
    finer = [found["degrees"], found["minutes"], found["seconds"]]
    if any("." in (above or "") and below for above, below in pairwise(finer)):
        raise _refusal(text, "what has minutes or seconds has whole numbers before them")
    size = sum(float(number or 0) / 60**power for power, number in enumerate(finer))
    direction = found["direction"]
    if size > _MOST[direction]:
        raise _refusal(text, f"{direction} is at most {_MOST[direction]} degrees")
    return "y" if direction in "NS" else "x", -size if direction in "SW" else size


def _refusal(text: str, reason: str) -> ValueError:
    return ValueError(f"Could not parse '{text[:_SHOWN]}' as geo coordinates: {reason}")
