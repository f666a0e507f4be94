"""Areas of the earth, and the positions of a column that are in them.

A circle is as round as Vespa's: distances along a parallel are shortened by the cosine of the latitude of its centre,
and the rest is flat; it does not go around the back of the earth.

Vespa: https://docs.vespa.ai/en/querying/geo-search.html
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.storage.attributes.array import ArrayView
from paperwasp.storage.attributes.column import Bitmap, Elements, Lids, empty_bitmap
from paperwasp.storage.attributes.distances import EARTH_RADIUS_KM
from paperwasp.storage.attributes.numeric import NumericView
from paperwasp.storage.attributes.position import PositionView
from paperwasp.storage.attributes.rows import places_of

MILLIONTHS: Final = 1_000_000
"""The parts of a degree in which positions are kept."""
ANYWHERE: Final = 2**64 - 1
"""The square of a radius that leaves out nothing."""
_KM_OF_A_MILLIONTH: Final = math.pi / 180.0 / MILLIONTHS * EARTH_RADIUS_KM
_LEAST, _MOST = -(2**31), 2**31 - 1
_UNSET: Final = np.iinfo(np.int64).min
_WHOLE_ASPECT: Final = 2**32 - 1
_NO_ROWS: Final = np.zeros(0, np.uint64)


@dataclass(frozen=True, slots=True)
class Area:
    """A box, a circle, or what is in both; in millionths of degrees."""

    box: tuple[int, int, int, int] = (_LEAST, _LEAST, _MOST, _MOST)
    """West, south, east, north; all four belong to it."""
    center: tuple[int, int] = (0, 0)
    """x (east) and y (north)."""
    square: int = ANYWHERE
    """The square of the radius."""
    aspect: int = 0
    """How much a distance along a parallel counts, in parts of 2^32; 0: all of it."""

    @classmethod
    def circle(cls, latitude: float, longitude: float, radius_degrees: float, aspect: int | None = None) -> Area:
        """Around a place. A radius below zero: anywhere. No aspect: that of the latitude."""
        y = _millionths(latitude)
        if aspect is None:
            aspect = int(math.cos(math.radians(y / MILLIONTHS)) * _WHOLE_ASPECT) if abs(y) < 90 * MILLIONTHS else 0
        radius = min(_millionths(radius_degrees), _WHOLE_ASPECT)
        return cls(
            center=(_millionths(longitude), y), square=ANYWHERE if radius_degrees < 0 else radius**2, aspect=aspect
        )

    @classmethod
    def rectangle(cls, south: float, west: float, north: float, east: float) -> Area:
        """Between two parallels and two meridians."""
        west, south, east, north = (math.floor(side * MILLIONTHS + 0.5) for side in (west, south, east, north))
        return cls((west, south, east, north))

    @property
    def has_center(self) -> bool:
        """Whether it is around a place."""
        return self.box == (_LEAST, _LEAST, _MOST, _MOST)

    def bitmap(self, view: PositionView, limit: int) -> Bitmap:
        """The rows below `limit` with a position in the area."""
        bitmap = empty_bitmap(limit)
        numbers, rows = _parts(view)
        single = rows is None
        _core.places_in(
            numbers[:limit] if single else numbers, _NO_ROWS if rows is None else rows[:limit],
            np.array(self.box, np.int32), *self.center, self.aspect, self.square, single, bitmap,
        )  # fmt: skip
        return bitmap

    def elements(self, view: PositionView, lids: Lids) -> Elements:
        """The positions of rows that are in the area."""
        numbers, lengths = numbers_of(view, lids)
        found = self._among(numbers)
        owners = np.repeat(np.arange(len(lids)), lengths)[found]
        ends = np.cumsum(lengths)
        within = (np.arange(len(numbers)) - np.repeat(ends - lengths, lengths))[found]
        weights = np.ones(len(within), np.int32)
        return Elements(np.bincount(owners, minlength=len(lids)), within, weights, numbers[found])

    def flat_km(self, positions: NDArray[np.int32]) -> NDArray[np.float64]:
        """From positions, (n, 2) of x and y, to the centre, as the circle measures it."""
        apart = np.abs(positions.astype(np.int64) - np.array(self.center, np.int64)).astype(np.uint64)
        if self.aspect:
            apart[:, 0] = apart[:, 0] * np.uint64(self.aspect) >> np.uint64(32)
        square = apart[:, 0] * apart[:, 0] + apart[:, 1] * apart[:, 1]
        kilometres: NDArray[np.float64] = np.sqrt(square.astype(np.float64)) * _KM_OF_A_MILLIONTH
        return kilometres

    def _among(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Which of some positions are in the area."""
        bitmap = np.empty((len(numbers) + 63) // 64, np.uint64)
        _core.places_in(
            np.ascontiguousarray(numbers), _NO_ROWS, np.array(self.box, np.int32), *self.center, self.aspect,
            self.square, True, bitmap,
        )  # fmt: skip
        return np.unpackbits(bitmap.view(np.uint8), bitorder="little", count=len(numbers)).astype(np.bool_)


def great_circle_km(positions: NDArray[np.int32], center: tuple[int, int]) -> NDArray[np.float64]:
    """From positions, (n, 2) of x and y, to a place."""
    longitude, latitude = np.radians(positions.astype(np.float64) / MILLIONTHS).T
    x, y = math.radians(center[0] / MILLIONTHS), math.radians(center[1] / MILLIONTHS)
    up, along = np.sin((latitude - y) / 2), np.sin((longitude - x) / 2)
    haversine = up * up + np.cos(latitude) * math.cos(y) * along * along
    kilometres: NDArray[np.float64] = 2 * EARTH_RADIUS_KM * np.arcsin(np.sqrt(np.clip(haversine, 0.0, 1.0)))
    return kilometres


def numbers_of(view: PositionView, lids: Lids) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The numbers of all positions of rows, one row after another; and how many each has."""
    numbers, rows = _parts(view)
    if rows is not None:
        places, lengths = places_of(rows[lids])
        return numbers[places], lengths
    found = numbers[lids]
    there = found != _UNSET
    return found[there], there.astype(np.int64)


def _parts(view: PositionView) -> tuple[NDArray[np.int64], NDArray[np.uint64] | None]:
    """The numbers of a column and, where it is one of arrays, the rows that they are in."""
    if isinstance(view.numbers, ArrayView):
        return view.numbers.values, view.numbers.rows
    assert isinstance(view.numbers, NumericView)
    return view.numbers.values, None


def _millionths(degrees: float) -> int:
    """Towards zero, as in Vespa, but for what floating point takes from a whole number."""
    return int(degrees * MILLIONTHS + math.copysign(1e-6, degrees))
