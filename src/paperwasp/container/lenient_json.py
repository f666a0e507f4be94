"""JSON as people write long queries: strings may be in single quotes, and have line breaks in them.

Vespa: the bodies of queries, which it reads with these two liberties and no others.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, Final

from paperwasp.patterns import compile_later

_STRING: Final = compile_later(rb"""'((?:[^'\\]++|\\.)*+)'|"(?:[^"\\]++|\\.)*+"|[^'"]++""", re.DOTALL)
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
    at = 0
    while at < len(text):
        match = _STRING.match(text, at)
        if match is None:
            raise ValueError(f"a string that begins at byte {at} has no end")
        at = match.end()
        own = match[1]
        yield match[0] if own is None else b'"%b"' % _requote(own)


def _requote(content: bytes) -> bytes:
    """Rewrites texts in single quotes for double quotes: single quotes need no backslash there, and double quotes do.

    Between pairs of backslashes, a backslash belongs to what follows it.
    """
    parts = content.split(_BACKSLASHES)
    return _BACKSLASHES.join(part.replace(b"\\'", b"'").replace(b'\\"', b'"').replace(b'"', b'\\"') for part in parts)
