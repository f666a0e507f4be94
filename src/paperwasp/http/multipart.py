"""Bodies of type `multipart/form-data`: named parts, each with a type and its bytes.

Differs from RFC 7578 in what nobody sends: no nested multiparts, no transfer encodings.
"""

from __future__ import annotations

import re
from typing import Final

from msgspec import Struct

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput

_BOUNDARY: Final = compile_later(r';\s*boundary=(?:"([^"]{1,70})"|([^\s;"]{1,70}))', re.IGNORECASE)
_NAME: Final = compile_later(r';\s*name=(?:"((?:[^"\\]|\\.)*)"|([^\s;"]+))', re.IGNORECASE)
_END_OF_HEADERS: Final = b"\r\n\r\n"


class Part(Struct, frozen=True):
    """One field of the form."""

    name: str
    content_type: str
    content: bytes


def parse_multipart(content_type: str, body: bytes) -> dict[str, Part]:
    """The parts by name; of several with one name the last wins. Errors: InvalidInput for what is no such body."""
    found = _BOUNDARY.search(content_type)
    if found is None:
        raise InvalidInput("The Content-Type multipart/form-data has no boundary")
    delimiter = b"\r\n--" + (found[1] or found[2]).encode("latin-1", "replace")
    pieces = (b"\r\n" + body).split(delimiter, limits.MULTIPART_PARTS + 2)
    if len(pieces) > limits.MULTIPART_PARTS + 2:
        raise InvalidInput(f"The form has more than {limits.MULTIPART_PARTS} parts")
    if len(pieces) < 2 or not pieces[-1].startswith(b"--"):
        raise InvalidInput("The form does not end with its boundary")
    parts = (_part(piece) for piece in pieces[1:-1])
    return {part.name: part for part in parts}


def _part(piece: bytes) -> Part:
    """One part, from behind its boundary. Errors: InvalidInput."""
    start = piece.find(b"\r\n", 0, limits.MULTIPART_HEADER_BYTES)
    end = piece.find(_END_OF_HEADERS, start, limits.MULTIPART_HEADER_BYTES) if start >= 0 else -1
    if end < 0 or piece[:start].strip():
        raise InvalidInput("A part of the form does not begin with its headers")
    headers: dict[str, str] = {}
    for line in piece[start + 2 : end].decode("utf-8", "replace").split("\r\n"):
        name, _, value = line.partition(":")
        headers[name.strip().lower()] = value.strip()
    named = _NAME.search(headers.get("content-disposition", ""))
    if named is None:
        raise InvalidInput("A part of the form has no name")
    name = named[1].replace("\\", "") if named[1] is not None else named[2]
    media_type = headers.get("content-type", "").partition(";")[0].strip().lower()
    return Part(name, media_type, piece[end + len(_END_OF_HEADERS) :])
