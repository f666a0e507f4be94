"""Compressed bodies: gzip in requests, inflated within a limit, and in answers, for clients that take it.

isal, because it compresses JSON of documents at about 310 MB/s where zlib's fastest level makes 70, to the same size,
and inflates twice as fast: the command line's client asks for gzip even on the machine itself, and a visit must not
wait for it.

deflate, for the small bodies of a feed: isal and zlib let go of the interpreter's lock while they inflate, and to have
it back takes longer than inflating when the writer is at work. Measured with the Vespa CLI's feed: 16 % more documents.

Vespa: Jetty inflates gzip alone, and compresses with gzip alone.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from functools import lru_cache
from typing import Final
from zlib import crc32

from deflate import DeflateError, gzip_decompress
from isal import isal_zlib

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.errors import InvalidInput, TooLarge
from paperwasp.http.cbor import quality
from paperwasp.http.messages import Answer, Request, Response

_VARIES: Final = "Accept-Encoding"
_LEVEL: Final = 1
_GZIP: Final = 31
"""zlib's window bits for a gzip header."""
_MEMBER: Final = b"\x1f\x8b\x08"
"""How each member of a gzip body begins."""
_NAMES: Final = frozenset(("gzip", "x-gzip"))
_COMPRESSED_TYPES: Final = ("application/json", "application/cbor", "text/")
"""How media types begin that are worth it; lines of JSON are of the first kind."""


def is_compressible(content_type: str) -> bool:
    return content_type.startswith(_COMPRESSED_TYPES)


@lru_cache(maxsize=256)
def accepts_gzip(accept_encoding: str) -> bool:
    """Whether an Accept-Encoding header ranks gzip at least as high as the bytes as they are."""
    codings: dict[str, float] = {}
    for part in accept_encoding.split(","):
        name, *options = part.split(";")
        codings[name.strip().lower()] = quality(options)
    named = [codings[name] for name in _NAMES if name in codings]
    gzip = max(named) if named else codings.get("*", 0.0)
    return gzip > 0 and gzip >= codings.get("identity", 0.0)


async def compressed(body: bytes) -> bytes:
    """`body` as gzip; a large one is compressed outside the event loop."""
    if len(body) > limits.HTTP_INLINE_GZIP_BYTES:
        return await asyncio.to_thread(compress, body)
    return compress(body)


def compress(body: bytes) -> bytes:
    """`body` as gzip, compressed here and now."""
    return isal_zlib.compress(body, _LEVEL, _GZIP)


async def compressed_stream(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    """The chunks as one gzip stream, each of them readable as soon as it arrives."""
    compressor = isal_zlib.compressobj(_LEVEL, isal_zlib.DEFLATED, _GZIP)

    def squeeze(chunk: bytes) -> bytes:
        return compressor.compress(chunk) + compressor.flush(isal_zlib.Z_SYNC_FLUSH)

    async for chunk in chunks:
        if len(chunk) > limits.HTTP_INLINE_GZIP_BYTES:
            yield await asyncio.to_thread(squeeze, chunk)
        elif chunk:
            yield squeeze(chunk)
    yield compressor.flush()


def inflated_at_once(body: bytes, content_encoding: str, limit_bytes: int) -> bytes | None:
    """A small body of one gzip member without its coding; None: it is for `inflated` to do, or to refuse."""
    return _member_inflated(body, limit_bytes) if content_encoding in _NAMES else None


async def inflated(body: bytes, content_encoding: str, limit_bytes: int, one_large: asyncio.Lock) -> bytes:
    """The body without its codings, in the order opposite to the header's. What does not say that it is small, and is,
    is inflated outside the event loop by who has the lock. Errors: InvalidInput, TooLarge."""
    for coding in reversed(content_encoding.split(",")):
        name = coding.strip().lower()
        if name in _NAMES and body:
            small = _member_inflated(body, limit_bytes)
            if small is None:
                async with one_large:
                    body = await asyncio.to_thread(gunzip, body, limit_bytes)
            else:
                body = small
        elif name not in _NAMES and name not in ("identity", ""):
            raise InvalidInput(f"Content-Encoding '{content_encoding}' is not supported, only gzip is")
    return body


def gunzip(data: bytes, limit_bytes: int) -> bytes:
    """Inflates a gzip body of any number of members, never holding more than the limit.

    Errors: InvalidInput, TooLarge.
    """
    if (small := _member_inflated(data, limit_bytes)) is not None:
        return small
    parts: list[bytes] = []
    size_bytes = 0
    while data:
        inflater = isal_zlib.decompressobj(_GZIP)
        try:
            part = inflater.decompress(data, limit_bytes - size_bytes + 1)
        except isal_zlib.error as error:  # type: ignore[misc]  # its stub has an instance
            raise InvalidInput(f"The body is not gzip, though Content-Encoding says so: {error}") from None
        size_bytes += len(part)
        if size_bytes > limit_bytes:
            raise too_large(size_bytes, limit_bytes)
        if not inflater.eof:
            raise InvalidInput("The gzip body ends too early")
        parts.append(part)
        data = inflater.unused_data
    return b"".join(parts)


def _member_inflated(data: bytes, limit_bytes: int) -> bytes | None:
    """A small body of one member, which ends with checksum and size of what is in it; None for any other.

    What may begin a second member is looked for, since what stands behind the first one is not read.
    """
    size_bytes = int.from_bytes(data[-4:], "little")
    if size_bytes > min(limits.HTTP_SMALL_GUNZIP_BYTES, limit_bytes) or data.find(_MEMBER, 1) >= 0:
        return None
    try:
        whole = gzip_decompress(data, size_bytes + 1)
    except (DeflateError, ValueError):
        return None
    is_whole = len(whole) == size_bytes and crc32(whole) == int.from_bytes(data[-8:-4], "little")
    return bytes(whole) if is_whole else None


def too_large(size_bytes: int, limit_bytes: int) -> TooLarge:
    """A body is larger than the limit; `size_bytes` of it have been seen or announced."""
    return TooLarge(
        f"Request content size is larger than the limit: at least {size_bytes} bytes, limit {limit_bytes} bytes"
    )


def takes_gzip(request: Request, answer: Answer) -> bool:
    """Whether the answer is of a kind that is compressed, and its client takes it so."""
    accepted = request.headers.get("accept-encoding")
    return accepted is not None and accepts_gzip(accepted) and is_compressible(answer.content_type)


def is_compressed(request: Request, answer: Response) -> bool:
    """Whether this answer is to be compressed."""
    return len(answer.body) >= limits.HTTP_COMPRESSED_LEAST_BYTES and takes_gzip(request, answer)


def gzipped(headers: Mapping[str, str]) -> dict[str, str]:
    """The header fields of an answer that is compressed."""
    varies = headers.get("Vary", _VARIES)
    return {
        **headers,
        "Content-Encoding": "gzip",
        "Vary": varies if varies in ("*", _VARIES) else f"{varies}, {_VARIES}",
    }


def as_gzip(answer: Response, body: bytes) -> Response:
    """The answer with its compressed body."""
    return replace(answer, body=body, headers=gzipped(answer.headers))
