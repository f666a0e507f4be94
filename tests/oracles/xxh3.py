"""The plain twin of core/xxh3.cpp: XXH3, 64 bits, without a seed and with its default secret.

The algorithm: https://github.com/Cyan4973/xxHash, whose test vectors the tests compare with.
"""

from __future__ import annotations

from typing import Final

_MASK: Final = 0xFFFFFFFFFFFFFFFF
_LOW: Final = 0xFFFFFFFF
_P32: Final = (0x9E3779B1, 0x85EBCA77, 0xC2B2AE3D)
_P64: Final = (0x9E3779B185EBCA87, 0xC2B2AE3D27D4EB4F, 0x165667B19E3779F9, 0x85EBCA77C2B2AE63, 0x27D4EB2F165667C5)
_MIX: Final = (0x165667919E3779F9, 0x9FB21C651E98DF25)
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221"
    "b8084674f743248ee03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8"
    "a8fa763fe39c343ff9dcbbc7c70b4f1d8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb"
    "170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)


def xxh3(data: bytes) -> int:
    """64 bits, without a sign."""
    if len(data) <= 16:
        return _hash_short(data)
    return _hash_middle(data) if len(data) <= 240 else _hash_long(data)


def _word(data: bytes, at: int, size: int = 8) -> int:
    return int.from_bytes(data[at : at + size], "little")


def _secret(at: int) -> int:
    return _word(_SECRET, at)


def _rotated(word: int, bits: int) -> int:
    return (word << bits | word >> (64 - bits)) & _MASK


def _folded_product(a: int, b: int) -> int:
    product = a * b
    return product & _MASK ^ product >> 64


def _avalanche(value: int) -> int:
    value &= _MASK
    value = (value ^ value >> 37) * _MIX[0] & _MASK
    return value ^ value >> 32


def _older_avalanche(value: int) -> int:
    value = (value ^ value >> 33) * _P64[1] & _MASK
    value = (value ^ value >> 29) * _P64[2] & _MASK
    return value ^ value >> 32


def _mixed(data: bytes, at: int, secret: int) -> int:
    return _folded_product(_word(data, at) ^ _secret(secret), _word(data, at + 8) ^ _secret(secret + 8))


def _hash_short(data: bytes) -> int:
    size = len(data)
    if size == 0:
        return _older_avalanche(_secret(56) ^ _secret(64))
    if size <= 3:
        joined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        return _older_avalanche(joined ^ _word(_SECRET, 0, 4) ^ _word(_SECRET, 4, 4))
    if size <= 8:
        value = _word(data, size - 4, 4) + (_word(data, 0, 4) << 32) ^ _secret(8) ^ _secret(16)
        value = (value ^ _rotated(value, 49) ^ _rotated(value, 24)) * _MIX[1] & _MASK
        value = (value ^ (value >> 35) + size) * _MIX[1] & _MASK
        return value ^ value >> 28
    low = _word(data, 0) ^ _secret(24) ^ _secret(32)
    high = _word(data, size - 8) ^ _secret(40) ^ _secret(48)
    turned = int.from_bytes(low.to_bytes(8, "little"), "big")
    return _avalanche(size + turned + high + _folded_product(low, high))


def _hash_middle(data: bytes) -> int:
    """17 to 240 bytes."""
    size = len(data)
    value = size * _P64[0]
    if size <= 128:
        for i in range((size - 1) // 32 + 1):
            value += _mixed(data, 16 * i, 32 * i) + _mixed(data, size - 16 * (i + 1), 32 * i + 16)
        return _avalanche(value)
    value = _avalanche(value + sum(_mixed(data, 16 * i, 16 * i) for i in range(8)))
    value += sum(_mixed(data, 16 * i, 16 * (i - 8) + 3) for i in range(8, size // 16))
    return _avalanche(value + _mixed(data, size - 16, 136 - 17))


def _hash_long(data: bytes) -> int:
    """More than 240 bytes: stripes of 64, of which 16 are a block."""
    size = len(data)
    lanes = [_P32[2], _P64[0], _P64[1], _P64[2], _P64[3], _P32[1], _P64[4], _P32[0]]
    for stripe in range((size - 1) // 64):
        _add_stripe(lanes, data, 64 * stripe, 8 * (stripe % 16))
        if stripe % 16 == 15:
            lanes = [(lane ^ lane >> 47 ^ _secret(128 + 8 * i)) * _P32[0] & _MASK for i, lane in enumerate(lanes)]
    _add_stripe(lanes, data, size - 64, 121)
    value = size * _P64[0]
    for i in range(4):
        value += _folded_product(lanes[2 * i] ^ _secret(11 + 16 * i), lanes[2 * i + 1] ^ _secret(19 + 16 * i))
    return _avalanche(value)


def _add_stripe(lanes: list[int], data: bytes, at: int, secret: int) -> None:
    for i in range(8):
        word = _word(data, at + 8 * i)
        key = word ^ _secret(secret + 8 * i)
        lanes[i ^ 1] = lanes[i ^ 1] + word & _MASK
        lanes[i] = lanes[i] + (key & _LOW) * (key >> 32) & _MASK
