"""XXH3: the kernel and its twin against the vectors of xxHash (its tests/sanity_test_vectors.h)."""

from __future__ import annotations

import struct
from typing import Final

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from paperwasp.ranking.text_hash import text_bits, text_hash
from tests.oracles.xxh3 import xxh3

PRIME32: Final = 2654435761
PRIME64: Final = 11400714785074694797
VECTORS: Final = {
    0: 0x2D06800538D394C2,
    1: 0xC44BDFF4074EECDB,
    3: 0x54247382A8D6B94D,
    4: 0xE5DC74BC51848A51,
    6: 0x27B56A84CD2D7325,
    8: 0x24CCC9ACAA9F65E4,
    9: 0x14D5001C15DD3F2B,
    12: 0xA713DAF0DFBB77E7,
    16: 0x981B17D36C7498C9,
    17: 0x796F5ACD3A60F862,
    24: 0xA3FE70BF9D3510EB,
    48: 0x397DA259ECBA1F11,
    64: 0x9CB48487720EC49D,
    80: 0xBCDEFBBB2C47C90A,
    128: 0xFCFF24126754D861,
    129: 0x98F1B0A679A2CA29,
    195: 0xCD94217EE362EC3A,
    222: 0xB9163B558664D356,
    240: 0x81C3C2B67F568CCF,
    241: 0xC5A639ECD2030E5E,
    403: 0xCDEB804D65C6DEA4,
    512: 0x617E49599013CB6B,
    2048: 0xDD59E2C3A5F038E0,
    4160: 0x4F323B15321E94E1,
}
"""Of so many bytes of the buffer that the reference fills for its checks."""


def sanity_buffer(size: int) -> bytes:
    made, state = bytearray(), PRIME32
    for _ in range(size):
        made.append(state >> 56)
        state = state * PRIME64 & 0xFFFFFFFFFFFFFFFF
    return bytes(made)


@pytest.mark.parametrize("size", VECTORS)
def test_the_vectors_of_the_reference(size: int) -> None:
    data = sanity_buffer(size)
    assert xxh3(data) == VECTORS[size]
    assert _core.xxh3(data) == VECTORS[size]


@given(st.one_of(st.binary(max_size=300), st.binary(min_size=1000, max_size=2200)))
def test_the_kernel_is_its_twin(data: bytes) -> None:
    assert _core.xxh3(data) == xxh3(data)


def test_a_text_is_its_hash_read_as_a_double() -> None:
    assert text_hash("hello") == struct.unpack("<d", struct.pack("<Q", 0x9555E8555C62DCFD))[0]
    assert text_hash("") == struct.unpack("<d", struct.pack("<Q", VECTORS[0]))[0]


def test_no_text_is_infinite_or_no_number() -> None:
    """The XXH3 of this text has all bits of the exponent set: Vespa's hash2d clears the lowest of them."""
    assert xxh3(b"7194") == 0xFFF5C37F1B272EEA
    assert text_bits(["7194"]).view(np.uint64)[0] == 0xFFE5C37F1B272EEA
    assert np.isfinite(text_hash("7194"))
