"""Finding the strings of a JSON text without decoding it."""

from __future__ import annotations


def without_escapes(text: bytes) -> bytes:
    """A text of the same length in which every quote begins or ends a string, to look for places in.

    Escaped quotes and backslashes are blanks there. A string is `"[^"]*"` then, which is found without memory; an
    expression that steps over escapes keeps 120 bytes for each of them.
    """
    if b"\\" not in text:
        return text
    return text.replace(rb"\\", b"  ").replace(rb"\"", b"  ").replace(rb"\'", b"  ")
