"""LZ4 blocks, beside the plain twin and the reference implementation."""

from __future__ import annotations

import lz4.block
import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp.core import _core
from tests.oracles import lz4_block

_WORDS = st.lists(st.sampled_from([b"a", b"blue", b"kind of ", b'"title":"', b"\x00\xff", b"xyzxyz"]), max_size=400)
_VECTORS = st.lists(st.floats(-10, 10, width=32), max_size=60).map(lambda cells: str(cells).encode())
_DATA = _WORDS.map(b"".join) | st.binary(max_size=600) | _VECTORS
"""With and without repetitions, some longer than a token's four bits can say."""


def reference_block(data: bytes) -> bytes:
    block: bytes = lz4.block.compress(data, store_size=False)
    return block


@given(_DATA)
def test_what_is_compressed_is_what_others_read(data: bytes) -> None:
    block = _core.lz4_compress(data)
    assert lz4.block.decompress(block, uncompressed_size=len(data)) == data
    assert lz4_block.lz4_decompress(block, len(data)) == _core.lz4_decompress(block, len(data)) == data


@given(_DATA)
def test_what_others_compress_is_read(data: bytes) -> None:
    block = reference_block(data)
    assert lz4_block.lz4_decompress(block, len(data)) == _core.lz4_decompress(block, len(data)) == data


@pytest.mark.parametrize("size", [1 << 16, (1 << 16) + 100, 300_000])
def test_matches_farther_back_than_a_distance_can_say_are_literals(size: int) -> None:
    data = b"the beginning that comes again" + bytes(range(256)) * (size // 256) + b"the beginning that comes again"
    block = _core.lz4_compress(data)
    assert lz4.block.decompress(block, uncompressed_size=len(data)) == data
    assert len(block) < len(data) // 100


def test_text_without_repetitions_grows_by_no_more_than_its_lengths() -> None:
    data = bytes(range(256))
    assert len(_core.lz4_compress(data)) == len(data) + 2  # a token, and one byte of length: 15 + 241


def test_digits_that_are_equal_by_chance_are_literals() -> None:
    digits = b"271828 314159 161803 271829 299792 "  # five equal digits are no match; six and what is behind them are
    assert len(_core.lz4_compress(digits)) == len(digits) + 2
    assert len(_core.lz4_compress(digits + digits)) < len(digits) * 3 // 2


@given(_DATA, st.integers(0, 700), st.data())
def test_damage_is_seen_as_the_plain_twin_sees_it(data: bytes, size: int, draw: st.DataObject) -> None:
    block = bytearray(_core.lz4_compress(data))
    for place in draw.draw(st.lists(st.integers(0, len(block) - 1), max_size=3)):
        block[place] = draw.draw(st.integers(0, 255))
    cut = bytes(block[: draw.draw(st.integers(0, len(block)))])
    for wanted in (len(data), size):
        expected = lz4_block.lz4_decompress(cut, wanted)
        if wanted <= 255 * len(cut):
            assert _core.lz4_decompress(cut, wanted) == expected
        else:
            assert _core.lz4_decompress(cut, wanted) is expected is None


@given(st.binary(max_size=64), st.integers(0, 400))
def test_any_bytes_are_read_as_the_plain_twin_reads_them(block: bytes, size: int) -> None:
    expected = lz4_block.lz4_decompress(block, size)
    assert _core.lz4_decompress(block, size) == (expected if size <= 255 * len(block) else None)


def test_more_than_a_block_can_make_is_refused_without_making_room() -> None:
    assert _core.lz4_decompress(b"\x1fa\x01\x00" + b"\xff" * 8, 1 << 40) is None
