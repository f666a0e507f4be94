"""Document ids and the global ids made from them.

`id:<namespace>:<document type>:[n=<number>|g=<group>]:<user-specified>`

A global id is 12 bytes: four of location (the number, or an MD5 of group or user-specified part), so that documents
with the same number or group lie together, and eight of the MD5 of the whole id.

Vespa: https://docs.vespa.ai/en/documents.html#document-ids
"""

from __future__ import annotations

import re

from msgspec import Struct
from msgspec.structs import force_setattr

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.core import _core
from paperwasp.errors import InvalidInput

_ID = compile_later(r"id:([^:]+):([^:]+):((?:n=([0-9]{1,20}))|(?:g=([^:]+)))?:(.+)", re.DOTALL)
_MAX_NUMBER = 2**64 - 1


class DocumentId(Struct, frozen=True):
    """One document's identity. `number` and `group` exclude each other. Errors: InvalidInput for one without a last
    part, or with what is no text; what has no type either stands for no document."""

    namespace: str
    document_type: str
    user_specified: str
    number: int | None = None
    group: str | None = None
    text: str = ""
    gid: bytes = b""

    def __post_init__(self) -> None:
        if self.number is not None:
            modifier, location = f"n={self.number}", ""
        elif self.group is not None:
            modifier, location = f"g={self.group}", self.group
        else:
            modifier, location = "", self.user_specified
        text = f"id:{self.namespace}:{self.document_type}:{modifier}:{self.user_specified}"
        if not self.user_specified and self.document_type:
            raise InvalidInput(f"Unparseable id '{text}': the part behind the last ':' is empty")
        if not text.isascii():
            _check_characters(text)
        gid = _core.global_id(location, text)
        force_setattr(self, "text", text)
        force_setattr(self, "gid", gid if self.number is None else self.number.to_bytes(8, "little")[:4] + gid[4:])

    @classmethod
    def parse(cls, text: str) -> DocumentId:
        """Reads `id:…`; raises InvalidInput that says what is wrong with it."""
        match = _ID.fullmatch(text)
        if match is None:
            raise InvalidInput(f"Unparseable id '{text}': expected id:<namespace>:<document type>:[n=..|g=..]:<id>")
        namespace, document_type, _, number, group, user_specified = match.groups()
        if number is not None and int(number) > _MAX_NUMBER:
            raise InvalidInput(f"Unparseable id '{text}': n= must be an unsigned 64-bit number")
        return cls(namespace, document_type, user_specified, int(number) if number else None, group)

    def __str__(self) -> str:
        return self.text


def partition_of(gid: bytes) -> int:
    """The partition of a global id: the low bits of its first byte."""
    return gid[0] & (limits.PARTITIONS - 1)


def _check_characters(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        shown = text.encode(errors="backslashreplace").decode()
        raise InvalidInput(f"Unparseable id '{shown}': half of a surrogate pair is no character") from None
