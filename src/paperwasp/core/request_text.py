"""The plain twin of `request_text.cpp`: what its functions find, by the readers of the standard library."""

from __future__ import annotations

import json
import re
from urllib.parse import unquote_to_bytes

_VALUE = re.compile(r"(?:^|&)query=([^&]*)")
_NAMELESS = re.compile(r"(?:^|&)query(?=&|$)")
_BROKEN = re.compile("%(?![0-9a-fA-F]{2})")
_PLAIN = re.compile(rb"[ -~]+")


def cut_query_string(query: str) -> tuple[str, str] | None:
    """(the rest, the text) of a query string with one plain text; else None."""
    found = list(_VALUE.finditer(query))
    if len(found) != 1 or _NAMELESS.search(query) or _BROKEN.search(found[0][1]):
        return None
    text = unquote_to_bytes(found[0][1].replace("+", " "))
    if not _PLAIN.fullmatch(text):
        return None
    return query[: found[0].start(1)] + query[found[0].end(1) :], text.decode()


def cut_json(body: bytes) -> tuple[bytes, str] | None:
    """(the rest, the text) of a whole JSON object, written without spaces, with one plain text; else None."""
    members = json.loads(body, object_pairs_hook=list)
    texts = [value for name, value in members if name == "query"]
    if len(texts) != 1 or not isinstance(texts[0], str) or any(b"\\" in _written(name) for name, _ in members):
        return None
    text = texts[0]
    if not _PLAIN.fullmatch(text.encode()) or set(text) & set('"\\'):
        return None
    before, after = body.split(b'"query":"' + text.encode() + b'"', 1)
    return before + b'"query":""' + after, text


def _written(name: str) -> bytes:
    return json.dumps(name).encode()
