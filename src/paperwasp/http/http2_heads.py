"""The heads of answers over HTTP/2, as blocks of header fields that are good for every connection."""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from paperwasp.core.http.http2 import http2_header_block
from paperwasp.http import http1

CONTINUE: Final = http2_header_block(100, [])
_LATIN: Final = "latin-1"


def answer_head(status: int, content_type: str, fields: Mapping[str, str]) -> bytes:
    """The header fields of an answer. Errors: ValueError where one may not be sent."""
    block = _start(status, content_type) + _date_block(http1.date_value())
    if fields:
        extra = [(name.lower().encode(_LATIN), value.encode(_LATIN)) for name, value in fields.items()]
        block += http2_header_block(0, extra)
    return block


def length_field(status: int, length_bytes: int) -> bytes:
    """The header field of a length, where an answer of that status has one."""
    if status in http1.BODILESS:
        return b""
    return http2_header_block(0, [(b"content-length", b"%d" % length_bytes)])


@lru_cache(maxsize=256)
def _start(status: int, content_type: str) -> bytes:
    fields = [(b"content-type", content_type.encode(_LATIN)), (b"server", b"paperwasp")]
    return http2_header_block(status, fields)


@lru_cache(maxsize=1)
def _date_block(date: bytes) -> bytes:
    return http2_header_block(0, [(b"date", date)])
