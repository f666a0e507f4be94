"""The memory that groups, their aggregates, hits and sketches may take, and the texts that functions make."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from paperwasp.errors import InvalidQuery
from paperwasp.limits import grouping as limits

_HIT_BYTES: Final = 1024
"""About the memory of a hit with its fields."""
_MEMBERS: Final[dict[type, tuple[str, ...]]] = {}
"""By type: the names of its members."""


def held_bytes(value: Any) -> int:
    """Return the memory of a partial result, or a part of one: its arrays, without the tables that columns share."""
    held, left = 0, [value]
    while left:
        part = left.pop()
        kind = type(part)
        if kind is np.ndarray:
            held += part.size * _HIT_BYTES if part.dtype.hasobject else part.nbytes
        elif kind is tuple:
            left.extend(part)
        else:
            names = _MEMBERS.get(kind)
            if names is None:
                names = _MEMBERS[kind] = getattr(kind, "__struct_fields__", ())
            if names:
                left.extend([getattr(part, name) for name in names])
    return held


def check_memory(size_bytes: int) -> None:
    """Errors: InvalidQuery where groups of this size are more than a query may have."""
    if size_bytes > limits.MEMORY_BYTES:
        raise InvalidQuery(
            f"grouping takes more than {limits.MEMORY_BYTES} bytes of memory: "
            "use filter(), max(), precision() or fewer values"
        )


class TextMemory:
    """How much text functions have made, each different one once for each function."""

    __slots__ = ("size_bytes",)

    def __init__(self) -> None:
        self.size_bytes = 0

    def take(self, size_bytes: int) -> None:
        """Errors: InvalidQuery where there would be more than a query may have."""
        self.check(size_bytes)
        self.size_bytes += size_bytes

    def check(self, size_bytes: int) -> None:
        """Errors: InvalidQuery where this many bytes more are too many."""
        if self.size_bytes + size_bytes > limits.TEXT_BYTES:
            raise InvalidQuery(
                f"grouping makes more than {limits.TEXT_BYTES} bytes of text: use fewer or shorter values"
            )
