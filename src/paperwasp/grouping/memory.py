"""The memory that groups, their aggregates, hits and sketches may take."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from typing import Any, Final

import numpy as np

from paperwasp import grouping_limits as limits
from paperwasp.errors import InvalidQuery

_HIT_BYTES: Final = 1024
"""What a hit with its fields takes, about."""


def held_bytes(value: Any) -> int:
    """What a partial result, or a part of one, takes in memory: its arrays, without the tables that columns share."""
    if isinstance(value, np.ndarray):
        return value.size * _HIT_BYTES if value.dtype == np.object_ else value.nbytes
    if isinstance(value, tuple):
        return sum(map(held_bytes, value))
    if is_dataclass(value):
        return sum(held_bytes(getattr(value, field.name)) for field in fields(value))
    return 0


def check_memory(size_bytes: int) -> None:
    """Errors: InvalidQuery where groups of this size are more than a query may have."""
    if size_bytes > limits.MEMORY_BYTES:
        raise InvalidQuery(
            f"grouping takes more than {limits.MEMORY_BYTES} bytes of memory: "
            "use filter(), max(), precision() or fewer values"
        )
