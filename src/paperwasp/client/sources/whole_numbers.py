"""Whole numbers that a table holds as floats, as `1901.0`, since another value of their column is missing.

Fields of whole numbers refuse them, so they become whole again where the field is of such a type. A float at or above
the limit of its type may have lost digits when it was made, so it stays what it is, and the service refuses it.
"""

from __future__ import annotations

from collections.abc import Callable
from math import copysign
from typing import Any, Final

from paperwasp.base.patterns import compile_later
from paperwasp.document.ids import DocumentId

TypeOf = Callable[[DocumentId, str], str | None]
"""The type of a field of a document; "" where it is none of whole numbers, None where nobody knows."""

WHOLE_TYPES: Final = ("byte", "int", "long")
EXACT: Final = 2**53
"""Below it, each whole number has a double of its own."""
EXACT_SINGLE: Final = 2**24
"""The same of floats of 32 bits."""
_WRITTEN: Final = compile_later(r"([+-]?[0-9]{1,16})\.0+")


def is_like_whole(value: Any) -> bool:
    """Whether a value is a float, or the text of one, that is a whole number and has all its digits."""
    if isinstance(value, str):
        return value.endswith("0") and whole_of_text(value) is not None
    if isinstance(value, float):
        return value.is_integer() and -EXACT < value < EXACT
    is_single = getattr(getattr(value, "dtype", None), "kind", "") == "f" and not getattr(value, "ndim", 0)
    return is_single and bool(-EXACT_SINGLE < value < EXACT_SINGLE) and value.is_integer()


def whole_of_text(text: str) -> int | None:
    """The number of a text like `1901.0`; None where it is none, or may have lost digits."""
    match = _WRITTEN.fullmatch(text)
    found = int(match[1]) if match else EXACT
    return found if -EXACT < found < EXACT else None


def made_whole(value: Any, field_type: str | None) -> Any:
    """A value that is like a whole number, as a field of that type takes it.

    Where the type is not known, numbers become whole, which fields of floats take as well; texts do not.
    """
    is_text = isinstance(value, str)
    if field_type in WHOLE_TYPES:
        return whole_of_text(value) if is_text else int(value)
    if field_type is not None or is_text or (value == 0 and copysign(1.0, value) < 0):
        return value
    return int(value)
