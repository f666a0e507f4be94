"""`ranking.location`: a place in millionths of degrees, as Vespa writes it for its content nodes.

`attribute:(2,X,Y,RADIUS,0,1,0,CalcLatLon)` is a circle, `attribute:[2,X1,Y1,X2,Y2]` a rectangle, and both may be given.
X is the longitude, Y the latitude; a radius of -1 limits nothing.
Vespa: https://docs.vespa.ai/en/reference/api/query.html#ranking.location
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Final

from paperwasp.document.types import POSITION, ArrayType
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.query.items import AndItem, GeoBoundingBoxItem, GeoLocationItem, Item, RankItem
from paperwasp.schema.model import Schema

_NUMBER: Final = r"\s*(-?\d{1,10})\s*"
_CIRCLE: Final = re.compile(
    rf"\(\s*2\s*,{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}(?:,\s*(?:CalcLatLon|\d{{1,10}})\s*)?\)",
    re.ASCII | re.IGNORECASE,
)
_RECTANGLE: Final = re.compile(rf"\[\s*2\s*,{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\]", re.ASCII)
_ATTRIBUTE: Final = re.compile(r"\s*(?:([A-Za-z_][\w.]*)?\s*:)?", re.ASCII)
_DEGREE: Final = 1e-6


def located(root: Item, text: str, schemas: Iterable[Schema]) -> Item:
    """The query limited to the place, or, where the place limits nothing, ranked by the distance to it.

    Errors: IllegalQuery for the text; InvalidQuery where no attribute of positions is named and there is not one.
    """
    attribute = _ATTRIBUTE.match(text)
    assert attribute is not None
    rest = text[attribute.end() :].strip()
    circle, rectangle = _CIRCLE.search(rest), _RECTANGLE.search(rest)
    if not rest or _RECTANGLE.sub("", _CIRCLE.sub("", rest, 1), 1).strip():
        raise IllegalQuery(f"Could not set 'ranking.location' to '{text}': Illegal location syntax")
    index = attribute[1] or _only_position(schemas)
    if rectangle:
        west, south, east, north = (int(part) * _DEGREE for part in rectangle.groups())
        if west > east or south > north:
            raise IllegalQuery(f"Could not set 'ranking.location' to '{text}': cannot have w > e, or s > n")
        root = AndItem((root, GeoBoundingBoxItem(index, south, west, north, east)))
    if circle:
        x, y, radius = (int(part) for part in circle.groups()[:3])
        place = GeoLocationItem(index, y * _DEGREE, x * _DEGREE, radius * _DEGREE if radius >= 0 else -1.0)
        root = AndItem((root, place)) if radius >= 0 else RankItem((root, place))
    return root


def _only_position(schemas: Iterable[Schema]) -> str:
    found = {
        field.name
        for schema in schemas
        for field in schema.fields.values()
        if (field.type.element if isinstance(field.type, ArrayType) else field.type) == POSITION and field.attribute
    }
    if len(found) != 1:
        known = f"name one of {', '.join(sorted(found))}" if found else "there is none"
        raise InvalidQuery(f"'ranking.location' names no attribute with positions: {known}")
    return found.pop()
