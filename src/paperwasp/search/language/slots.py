"""Slots: literals of a statement that know their number, so that others can take their place in its tree.

`yql.lifting` has statements read with slots, and fills them.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final


class SlotText(str):
    """A text that knows which literal, or which parameter, it is the value of."""

    slot: int


class SlotInteger(int):
    """As SlotText, an integer."""

    slot: int


class SlotFraction(float):
    """As SlotText, a number with a fraction."""

    slot: int


Slot = SlotText | SlotInteger | SlotFraction
NO_SLOTS: Final[Mapping[int | str, Slot]] = MappingProxyType({})


def slot_of(value: str | int | float, number: int) -> Slot:
    """The value as one that knows its number."""
    made: Slot
    if isinstance(value, str):
        made = SlotText(value)
    else:
        made = SlotInteger(value) if isinstance(value, int) else SlotFraction(value)
    made.slot = number
    return made
