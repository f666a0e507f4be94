"""The plain twin of core/attributes/places.cpp: its oracle and its documentation."""

from __future__ import annotations

from paperwasp.storage.attributes.distances import ANYWHERE


def has_place(
    x: int, y: int, box: tuple[int, int, int, int], center: tuple[int, int], aspect: int, square: int
) -> bool:
    """Whether a position is in the box (west, south, east, north) and in the circle."""
    west, south, east, north = box
    across, up = abs(x - center[0]), abs(y - center[1])
    if aspect:
        across = across * aspect >> 32
    within = square == ANYWHERE or across * across + up * up <= square
    return west <= x <= east and south <= y <= north and within
