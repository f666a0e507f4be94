"""The plain twin of core/documents/global_id.cpp. Its oracle and its documentation.

Source: https://docs.vespa.ai/en/documents.html#document-ids
"""

from __future__ import annotations

from hashlib import md5


def global_id(location: str, id: str) -> bytes:
    """Twelve bytes: bytes 0-3 of the MD5 of the location, then bytes 4-11 of that of the id. Lone surrogates are
    encoded as UTF-8 encodes other characters."""
    return _md5(location)[:4] + _md5(id)[4:12]


def _md5(text: str) -> bytes:
    return md5(text.encode("utf-8", "surrogatepass"), usedforsecurity=False).digest()
