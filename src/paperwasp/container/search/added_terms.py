"""Terms that parameters add to the query: `wand.*`, `boolean.*`, and places, `ranking.location` and `pos.*`."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from paperwasp.base.patterns import compile_later
from paperwasp.container.search.settings import PositionParameters, PredicateParameters, WandParameters
from paperwasp.core.clock import check_time
from paperwasp.document.types import POSITION, ArrayType
from paperwasp.errors import IllegalQuery, InvalidQuery
from paperwasp.query_languages.yql.indexes import Indexes
from paperwasp.schema.model import Schema
from paperwasp.search.operators.boolean import AndItem, OrItem, RankItem
from paperwasp.search.operators.geo import GeoBoundingBoxItem, GeoLocationItem
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.predicate import PredicateItem
from paperwasp.search.operators.weak_and import WeakAndItem
from paperwasp.search.operators.weighted import DotProductItem, WandItem
from paperwasp.search.operators.word import WordItem
from paperwasp.search.query_language import DEGREES, Annotations, Tokens, read_degrees, weighted_tokens

# Terms that parameters add to the query: `wand.*`, weighted tokens, and `boolean.*`, the attributes of predicates.
#
# Each is joined with the query by `and`; alone it is the query.
# Vespa: com.yahoo.search.querytransform.WandSearcher, BooleanSearcher and BooleanAttributeParser


_KEY: Final = compile_later(r"""\s*(?:"([^"]*)"|'([^']*)'|([^:,\s][^:,]*|)):\s*""")
_VALUE: Final = compile_later(r"[^,}\[]*(?:\[[^\]]*\][^,}\[]*)*")
_LISTED: Final = compile_later(r"\s*([^,\]\[]*(?:\[[^\]]*\][^,\]\[]*)*),?\s*")
_NEXT: Final = compile_later(r",?\s*")
_BITS: Final = compile_later(r"\[\s*\d+\s*(?:,\s*\d+\s*)*\]?", re.ASCII)
_MASK: Final = compile_later(r"0x([0-9a-fA-F]+)\s*")
_WHOLE: Final = compile_later(r"[+-]?\d{1,19}", re.ASCII)
_ALL_SUBQUERIES: Final = 2**64 - 1
_SUBQUERIES: Final = 64

Feature = tuple[str, str, int]
"""Name, value, and a bit for each subquery."""


def added_terms(wand: WandParameters, predicate: PredicateParameters, indexes: Indexes) -> list[Item]:
    """The items that the parameters add to the query. Errors: InvalidQuery, IllegalQuery."""
    added: list[Item] = []
    if wand.field is not None and wand.tokens is not None and (tokens := _tokens(wand, indexes)):
        added.append(_wand(wand, wand.field, tokens))
    if predicate.field is not None and (predicate.attributes is not None or predicate.range_attributes is not None):
        added.append(_predicate(predicate, predicate.field, indexes))
    return added


def _tokens(wand: WandParameters, indexes: Indexes) -> Tokens:
    if wand.field not in indexes:
        raise InvalidQuery(f"Field '{wand.field}' was not found")
    try:
        if not (wand.tokens or "").lstrip().startswith("{"):
            raise ValueError("expected a map that begins with '{'")
        return weighted_tokens(wand.tokens or "")
    except ValueError as error:
        raise InvalidQuery(f"'{wand.tokens}' is not a legal sparse vector string: {error}") from None


def _wand(wand: WandParameters, field: str, tokens: Tokens) -> Item:
    if wand.type == "dotProduct":
        return DotProductItem(field, tokens)
    if wand.type == "parallel":
        return WandItem(field, tokens, wand.heap_size, wand.score_threshold, wand.threshold_boost_factor)
    words = tuple(
        WordItem(field, str(token), annotations=Annotations(weight=weight, stem=False, accent_drop=False))
        for token, weight in tokens
    )
    return OrItem(words) if wand.type == "or" else WeakAndItem(words, wand.heap_size)


def _predicate(given: PredicateParameters, field: str, indexes: Indexes) -> Item:
    try:
        if field not in indexes:
            raise ValueError("there is no such field")
        ranges = tuple((name, _long(value), bits) for name, value, bits in _features(given.range_attributes))
        return PredicateItem(field, tuple(_features(given.attributes)), ranges)
    except ValueError as error:
        raise IllegalQuery(f"Failed boolean search on field '{field}': {error}") from None


def _long(text: str) -> int:
    if not _WHOLE.fullmatch(text) or not -(2**63) <= int(text) < 2**63:
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def _features(text: str | None) -> Iterator[Feature]:
    """The features in `{name: value, other: [a, b:0x3, c:[0, 2]]}`. Errors: ValueError, OutOfTime."""
    if not text:
        return
    at = len(text) - len(text.lstrip())
    if text[at : at + 1] != "{":
        raise ValueError(f"'{text}' is not a legal sparse vector string: Expected '{{' at position {at}")
    at += 1
    while text[at : at + 1] != "}":
        check_time()
        key = _KEY.match(text, at)
        if key is None:
            raise ValueError(f"'{text}' is not a legal sparse vector string: Expected a key followed by ':'")
        name, at = next(part for part in key.groups() if part is not None), key.end()
        if text[at : at + 1] == "[":
            at += 1
            while text[at : at + 1] not in ("]", ""):
                one = _LISTED.match(text, at)
                assert one is not None
                if one.end() == at:
                    raise ValueError(f"'{text}' has a list that cannot be read at position {at}")
                yield _feature(name, one[1])
                at = one.end()
            at += 1
        else:
            value = _VALUE.match(text, at)
            assert value is not None
            yield _feature(name, value[0])
            at = value.end()
        if at >= len(text):
            raise ValueError(f"'{text}' is not a legal sparse vector string: Expected '}}' at its end")
        at = _NEXT.match(text, at).end()  # type: ignore[union-attr]
    if at != len(text) - 1:
        raise ValueError(f"Expected end of string at position {at + 1}")


def _feature(name: str, text: str) -> Feature:
    value, colon, bits = text.partition(":")
    return name, value, _subqueries(bits) if colon else _ALL_SUBQUERIES


def _subqueries(text: str) -> int:
    """The bits that `0x12` or `[1, 4]` names. Errors: ValueError."""
    mask = _MASK.fullmatch(text)
    if mask is not None:
        return int(mask[1], 16) & _ALL_SUBQUERIES
    if not _BITS.fullmatch(text.strip()):
        raise ValueError(f"'{text}' does not name subqueries: write 0x3 or [0, 1]")
    bits = [int(bit) for bit in text.strip(" []").split(",")]
    if max(bits) >= _SUBQUERIES:
        raise ValueError("Subquery index must be in the range 0-63")
    return sum(1 << bit for bit in set(bits))


# Places of a request as a whole: `ranking.location`, in millionths of degrees, and `pos.*`, as people write places.
#
# `attribute:(2,X,Y,RADIUS,0,1,0,ASPECT)` is a circle, `attribute:[2,X1,Y1,X2,Y2]` a rectangle, and both may be given.
# X is the longitude, Y the latitude; a radius of -1 limits nothing. `pos.*` says the same and only counts without it.
# Vespa: https://docs.vespa.ai/en/reference/api/query.html#geographical-searches


_NUMBER: Final = r"\s*(-?\d{1,10})\s*"
_CIRCLE: Final = compile_later(
    rf"\(\s*2\s*,{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}(?:,\s*(CalcLatLon|\d{{1,10}})\s*)?\)",
    re.ASCII | re.IGNORECASE,
)
_RECTANGLE: Final = compile_later(rf"\[\s*2\s*,{_NUMBER},{_NUMBER},{_NUMBER},{_NUMBER}\]", re.ASCII)
_ATTRIBUTE: Final = compile_later(r"\s*(?:([A-Za-z_][\w.]*)?\s*:)?", re.ASCII)
_UNITS: Final = ("km", "m", "mi")
"""Those of `pos.radius`, in the order in which they are looked for at its end."""
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
