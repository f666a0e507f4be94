"""JSON as people write long queries: strings may be in single quotes, and have line breaks in them.

Vespa: the bodies of queries, which it reads with these two liberties and no others.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any, Final

from paperwasp.base.patterns import compile_later
from paperwasp.text.large_json import without_escapes

_PIECE: Final = compile_later(rb"""'[^']*'|"[^"]*"|[^'"]+""")
_BACKSLASHES: Final = rb"\\"


def lenient_json(text: bytes, parse_float: Callable[[str], object] = float) -> Any:
    """The value. `parse_float`: what a number with a fraction or an exponent becomes. Errors: ValueError."""
    try:
        content = json.loads(b"".join(_in_double_quotes(text)), strict=False, parse_float=parse_float)
        json.dumps(content, ensure_ascii=False).encode()
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    except UnicodeEncodeError:
        raise ValueError("a \\u escape stands for half a character") from None
    return content


def _in_double_quotes(text: bytes) -> Iterator[bytes]:
    """The text with all its strings in double quotes, piece by piece."""
    at, seen = 0, without_escapes(text)
    while at < len(text):
        match = _PIECE.match(seen, at)
        if match is None:
            raise ValueError(f"a string that begins at byte {at} has no end")
        piece = text[at : match.end()]
        at = match.end()
        yield b'"%b"' % _requote(piece[1:-1]) if piece.startswith(b"'") else piece


def _requote(content: bytes) -> bytes:
    """Rewrites texts in single quotes for double quotes: single quotes need no backslash there, and double quotes do.

    Between pairs of backslashes, a backslash belongs to what follows it.
    """
    parts = content.split(_BACKSLASHES)
    return _BACKSLASHES.join(part.replace(b"\\'", b"'").replace(b'\\"', b'"').replace(b'"', b'\\"') for part in parts)
