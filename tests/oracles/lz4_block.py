"""The plain twin of core/documents/lz4.cpp's decompressor, which says what it computes.

Specification: https://github.com/lz4/lz4/blob/dev/doc/lz4_Block_format.md
"""

from __future__ import annotations


class _Damaged(Exception):
    """The block is none, or another one."""


def lz4_decompress(block: bytes, size: int) -> bytes | None:
    """The `size` bytes of an LZ4 block; None where it is damaged or makes another number of them."""
    try:
        plain = _decompressed(block)
    except (IndexError, _Damaged):
        return None
    return plain if len(plain) == size else None


def _decompressed(block: bytes) -> bytes:
    plain, at = bytearray(), 0
    while True:
        token = block[at]
        literals, at = _length(block, at + 1, token >> 4)
        if at + literals > len(block):
            raise _Damaged
        plain += block[at : at + literals]
        at += literals
        if at == len(block):
            return bytes(plain)
        distance = block[at] | block[at + 1] << 8
        match, at = _length(block, at + 2, token & 15)
        if not 0 < distance <= len(plain):
            raise _Damaged
        for _ in range(match + 4):
            plain.append(plain[-distance])


def _length(block: bytes, at: int, length: int) -> tuple[int, int]:
    """A length that begins with the four bits in a token, and where it ends."""
    if length == 15:
        while True:
            length += block[at]
            at += 1
            if block[at - 1] != 255:
                break
    return length, at
