"""gzip in both directions: negotiation, members, limits, streams that arrive in time."""

from __future__ import annotations

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from paperwasp import limits
from paperwasp.errors import InvalidInput, TooLarge
from paperwasp.http.compression import (
    accepts_gzip,
    compressed,
    compressed_stream,
    gunzip,
    inflated,
    inflated_at_once,
    is_compressible,
)


@given(st.lists(st.binary(max_size=2000), max_size=5))
def test_what_is_compressed_inflates_to_the_same(parts: list[bytes]) -> None:
    body = b"".join(gzip.compress(part) for part in parts)
    assert gunzip(body, 20_000) == b"".join(parts)
    assert gzip.decompress(asyncio.run(compressed(b"".join(parts)))) == b"".join(parts)


@given(st.binary(max_size=300))
def test_any_bytes_inflate_or_are_refused(body: bytes) -> None:
    for data in (body, gzip.compress(b"text" * 10)[: len(body)] + body, gzip.compress(b"x")[:12] + body):
        try:
            gunzip(data, 1000)
        except (InvalidInput, TooLarge) as error:
            assert error.message


def test_large_bodies_are_the_same_outside_the_loop() -> None:
    body = bytes(range(256)) * 4096
    squeezed = asyncio.run(compressed(body))
    assert gzip.decompress(squeezed) == body
    assert asyncio.run(inflated(gzip.compress(body, 0), "gzip", len(body), asyncio.Lock())) == body


def test_only_one_small_whole_gzip_member_is_inflated_at_once() -> None:
    text = b"text" * 10
    for name in ("gzip", "x-gzip"):
        assert inflated_at_once(gzip.compress(text), name, 40) == text
    two = gzip.compress(b"one") + gzip.compress(b"two")
    large = gzip.compress(bytes(limits.HTTP_SMALL_GUNZIP_BYTES + 1))
    for body, coding, limit_bytes in (
        (gzip.compress(text), "gzip", 39),
        (gzip.compress(text)[:-1], "gzip", 100),
        (gzip.compress(text), "gzip, identity", 100),
        (zlib.compress(text), "deflate", 100),
        (text, "identity", 100),
        (two, "gzip", 100),
        (large, "gzip", 10**6),
    ):
        assert inflated_at_once(body, coding, limit_bytes) is None


def test_codings_are_undone_in_the_order_opposite_to_the_header() -> None:
    twice = gzip.compress(gzip.compress(b"text"))
    assert asyncio.run(inflated(twice, "gzip, identity, GZIP", 100, asyncio.Lock())) == b"text"
    assert asyncio.run(inflated(b"", "gzip", 100, asyncio.Lock())) == b""
    with pytest.raises(InvalidInput, match="deflate"):
        asyncio.run(inflated(zlib.compress(b"text"), "deflate", 100, asyncio.Lock()))
    with pytest.raises(TooLarge, match="at least 1001 bytes, limit 1000 bytes"):
        asyncio.run(inflated(gzip.compress(gzip.compress(bytes(10**6))), "gzip,gzip", 1000, asyncio.Lock()))


@pytest.mark.parametrize(
    ("header", "wanted"),
    [
        ("gzip", True),
        ("zstd,gzip,deflate,br", True),
        ("GZIP;q=0.1", True),
        ("x-gzip", True),
        ("*", True),
        ("gzip;q=0", False),
        ("gzip;q=0, *", False),
        ("", False),
        ("br", False),
        ("identity", False),
        ("gzip;q=0.5, identity", False),
        ("gzip, identity;q=0", True),
        ("*;q=0.5, identity;q=0.5", True),
        ("gzip;q=x", False),
    ],
)
def test_who_gets_gzip(header: str, wanted: bool) -> None:
    assert accepts_gzip(header) == wanted


def test_only_text_is_compressed() -> None:
    types = ["application/json", "application/json;charset=utf-8", "application/jsonl; charset=UTF-8", "text/html"]
    assert all(map(is_compressible, types))
    assert not any(map(is_compressible, ["application/zip", "application/octet-stream", "image/png"]))


def test_each_chunk_of_a_stream_can_be_read_when_it_arrives() -> None:
    async def lines() -> AsyncIterator[bytes]:
        for number in range(3):
            yield b"line %d\n" % number
        yield b""
        yield bytes(300_000)

    async def test() -> None:
        inflater = zlib.decompressobj(31)
        read = [inflater.decompress(chunk) async for chunk in compressed_stream(lines())]
        assert read == [b"line 0\n", b"line 1\n", b"line 2\n", bytes(300_000), b""]
        assert inflater.eof

    asyncio.run(test())


def test_small_bodies_are_inflated_whole_or_not_at_all() -> None:
    one = gzip.compress(b"text")
    for body in (b"", one + one, one + gzip.compress(b"other"), gzip.compress(b"") + one, one + gzip.compress(b"")):
        assert gunzip(body, 100) == (gzip.decompress(body) if body else b"")
    for broken in (one[:-1], one + b"x", one[:-8] + bytes(4) + one[-4:], one[:10]):
        with pytest.raises(InvalidInput):
            gunzip(broken, 100)
    with pytest.raises(TooLarge):
        gunzip(one, 3)
