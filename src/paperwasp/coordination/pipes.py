"""Parcels of bytes through a pipe: each behind its length."""

from __future__ import annotations

from io import RawIOBase
from struct import Struct
from typing import Final

LENGTH: Final = Struct("<Q")
"""The head of each parcel: the number of its bytes."""
_PIECE_BYTES: Final = 1 << 20


def write_all(pipe: RawIOBase, data: bytes) -> None:
    """Writes all to a pipe without a buffer. Errors: OSError."""
    left = memoryview(data)
    while left:
        left = left[pipe.write(left) :]


def read_parcel(pipe: RawIOBase) -> bytes | None:
    """The next parcel of a pipe; None: it has ended."""
    head = _read_exactly(pipe, LENGTH.size)
    return None if head is None else _read_exactly(pipe, LENGTH.unpack(head)[0])


def _read_exactly(pipe: RawIOBase, size_bytes: int) -> bytes | None:
    pieces, left = [], size_bytes
    while left:
        piece = pipe.read(min(left, _PIECE_BYTES))
        if not piece:
            return None
        pieces.append(piece)
        left -= len(piece)
    return b"".join(pieces)
