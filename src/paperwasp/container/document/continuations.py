"""Continuations: where a visit is to go on, as text that needs no encoding in an address.

A continuation holds the token of the content node, the time that `now()` is in the visit, and a fingerprint of what
is visited: with it, a continuation cannot go on with another visit, whose documents it would skip.
"""

from __future__ import annotations

import base64
import binascii
import struct
from hashlib import blake2b
from typing import Final
from zlib import crc32

from msgspec import Struct

from paperwasp.errors import InvalidInput

_VERSION: Final = 1
_HEAD: Final = struct.Struct(">BQ4sB")
"""Version, time in µs, fingerprint, bytes of the node's token, which follows; then the checksum."""
_CHECKSUM: Final = struct.Struct(">I")
_MOST_CHARACTERS: Final = 256


class Continuation(Struct, frozen=True):
    """A place in a visit. `token` is the content node's; empty: the start."""

    now_us: int
    fingerprint: bytes
    token: bytes = b""

    def __str__(self) -> str:
        body = _HEAD.pack(_VERSION, self.now_us, self.fingerprint, len(self.token)) + self.token
        return base64.b32encode(body + _CHECKSUM.pack(crc32(body))).decode().rstrip("=")

    @classmethod
    def parse(cls, text: str) -> Continuation:
        """Errors: InvalidInput for text that no visit gave."""
        try:
            if len(text) > _MOST_CHARACTERS:
                raise ValueError
            data = base64.b32decode(text + "=" * (-len(text) % 8))
            version, now_us, fingerprint, length = _HEAD.unpack_from(data)
            end = _HEAD.size + length
            if version != _VERSION or data[end:] != _CHECKSUM.pack(crc32(data[:end])):
                raise ValueError
        except (ValueError, binascii.Error, struct.error):
            raise InvalidInput(f"Failed parsing '{text[:_MOST_CHARACTERS]}': no visit gave this continuation") from None
        return cls(now_us, fingerprint, data[_HEAD.size : end])


def fingerprint(*parts: object) -> bytes:
    """A hash of what is visited: four bytes."""
    return blake2b(repr(parts).encode("utf-8", "surrogatepass"), digest_size=4).digest()
