"""The plain twin of core/siphash.cpp: SipHash-2-4 with the key 00 01 … 0f, which is what Guava gives without another.

The algorithm: https://www.aumasson.jp/siphash/siphash.pdf, whose test vectors have the same key.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = 0xFFFFFFFFFFFFFFFF
_KEY: Final = (0x0706050403020100, 0x0F0E0D0C0B0A0908)
_START: Final = (
    _KEY[0] ^ 0x736F6D6570736575,
    _KEY[1] ^ 0x646F72616E646F6D,
    _KEY[0] ^ 0x6C7967656E657261,
    _KEY[1] ^ 0x7465646279746573,
)


def siphash(data: bytes) -> int:
    """64 bits, without a sign."""
    v0, v1, v2, v3 = _START
    whole = len(data) & ~7
    words = [int.from_bytes(data[start : start + 8], "little") for start in range(0, whole, 8)]
    words.append(int.from_bytes(data[whole:], "little") | (len(data) & 0xFF) << 56)
    # One loop, written out, since a call for every round takes three times as long. The last word is that of the end.
    for rounds, word in [*((2, word) for word in words), (4, 0)]:
        v2 ^= 0xFF if rounds == 4 else 0
        v3 ^= word
        for _ in range(rounds):
            v0 = (v0 + v1) & _MASK
            v2 = (v2 + v3) & _MASK
            v1 = ((v1 << 13 | v1 >> 51) & _MASK) ^ v0
            v3 = ((v3 << 16 | v3 >> 48) & _MASK) ^ v2
            v0 = (v0 << 32 | v0 >> 32) & _MASK
            v2 = (v2 + v1) & _MASK
            v0 = (v0 + v3) & _MASK
            v1 = ((v1 << 17 | v1 >> 47) & _MASK) ^ v2
            v3 = ((v3 << 21 | v3 >> 43) & _MASK) ^ v0
            v2 = (v2 << 32 | v2 >> 32) & _MASK
        v0 ^= word
    return v0 ^ v1 ^ v2 ^ v3
