"""Cuts a stream of JSON into its values without reading what is in them: an array's elements, or values in a row.

Only strings and brackets are looked at; each value is decoded by whoever takes it.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from typing import Final, NamedTuple

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.opening import OPERATION_BYTES
from paperwasp.client.sources.operations import BadInput
from paperwasp.text.parsing.json_strings import without_escapes

_TOKEN: Final = compile_later(rb'["{}\[\]](?:(?<=")[^"]*")?')
"""A string, a bracket, or the quote of a string that does not end. It begins with one set of bytes, which is looked for
much faster than alternatives are."""
_SCALAR: Final = compile_later(rb'"[^"]*"|[^\s,\[\]{}"]+|[^"]')
_SPACE: Final = compile_later(rb"[ \t\r\n]*")
_COLON: Final = compile_later(rb"[ \t\r\n]*:")
_CHUNK: Final = 1 << 16
_OPENING: Final = b"{["
_QUOTE: Final = ord('"')


class JsonValue(NamedTuple):
    """The text of a value, and the line on which it begins."""

    line: int
    text: bytes


class JsonValues:
    """The values of a stream, in their order."""

    def __init__(self, name: str, stream: io.BufferedReader, most_bytes: int = OPERATION_BYTES) -> None:
        self._name = name
        self._stream = stream
        self._most_bytes = most_bytes
        self._text = b""
        self._seen = b""
        """The text without escapes, to find places in."""
        self._at = 0
        self._line = 1

    def __iter__(self) -> Iterator[JsonValue | BadInput]:
        """Yields values; where the text is broken so that nobody can tell where the next value begins, that is the
        last."""
        in_array = self._peek() == b"["
        if in_array:
            self._skip(1)
        first = True
        while (byte := self._peek()) or in_array:
            if in_array and not first and byte == b",":
                self._skip(1)
                byte = self._peek()
            elif in_array and byte == b"]":
                self._skip(1)
                yield from self._rest()
                return
            elif in_array and not first and byte:
                yield self._bad("expected ',' or ']' after an operation", is_end=True)
                return
            if not byte:
                yield self._bad("the array does not end: the file was cut off, or ']' is missing", is_end=True)
                return
            value = self._value(byte)
            yield value
            if isinstance(value, BadInput) and value.is_end:
                return
            first = False

    def _rest(self) -> Iterator[BadInput]:
        if self._peek():
            yield self._bad("there is more behind the end of the array", is_end=True)

    def _value(self, byte: bytes) -> JsonValue | BadInput:
        end = self._end_of_value() if byte in (b"{", b"[") else self._end_of_scalar()
        if isinstance(end, BadInput):
            return end
        text, line = self._text[self._at : end], self._line
        self._skip(end - self._at)
        return JsonValue(line, text)

    def _end_of_value(self) -> int | BadInput:
        """The place behind the object or array that begins here."""
        depth, at = 0, self._at
        while True:
            for token in _TOKEN.finditer(self._seen, at):
                byte = self._seen[token.start()]
                if byte == _QUOTE:
                    if len(token[0]) == 1:  # a string that goes on behind what has been read
                        at = token.start()
                        break
                elif byte in _OPENING:
                    depth += 1
                else:
                    depth -= 1
                    if not depth:
                        return token.end()
                at = token.end()
            at -= self._at
            if len(self._text) - self._at > self._most_bytes or not self._read_more():
                return self._unended()

    def _end_of_scalar(self) -> int | BadInput:
        """The place behind the string, number or word that begins here."""
        while True:
            match = _SCALAR.match(self._seen, self._at)
            if match is not None and match.end() < len(self._text):
                return match.end()
            if len(self._text) - self._at > self._most_bytes or not self._read_more():
                return match.end() if match is not None else self._unended()

    def _unended(self) -> BadInput:
        """What is wrong with an object whose end was not found: where the decoder stumbles, or its beginning."""
        if len(self._text) - self._at > self._most_bytes:
            message = f"an operation of more than {self._most_bytes} bytes, or one whose brackets do not match"
        else:
            message = "the operation that begins here does not end: a bracket or quote is missing, or all behind it"
        try:
            orjson.loads(self._text[self._at :])
        except orjson.JSONDecodeError as error:
            if "end of data" not in error.msg and "UTF-8" not in error.msg:
                self._line += error.lineno - 1
                return self._bad(f"no JSON: {error.msg}", is_end=True, column=error.colno)
        return self._bad(message, is_end=True)

    def _peek(self) -> bytes:
        """The next byte that is no white space; empty at the end."""
        while True:
            match = _SPACE.match(self._text, self._at)
            assert match is not None
            self._skip(match.end() - self._at)
            if self._at < len(self._text):
                return self._text[self._at : self._at + 1]
            if not self._read_more():
                return b""

    def _skip(self, count: int) -> None:
        self._line += self._text.count(b"\n", self._at, self._at + count)
        self._at += count

    def _read_more(self) -> bool:
        """Reads what is there, or, of a long value, as much again, so that it is looked at a few times only.

        False at the end.
        """
        held = len(self._text) - self._at
        more = self._stream.read(held) if held > _CHUNK else self._stream.read1(_CHUNK)
        self._text = self._text[self._at :] + more
        self._seen = without_escapes(self._text)
        self._at = 0
        return bool(more)

    def _bad(self, message: str, is_end: bool = False, column: int = 0) -> BadInput:
        place = f"line {self._line}, column {column}" if column else f"line {self._line}"
        end = "; what follows in this file was not read" if is_end else ""
        return BadInput(f"{self._name}, {place}: {message}{end}", is_end)


def member_text(text: bytes, name: bytes) -> bytes | None:
    """The text of the value of an object's member as it stands there; the last one of that name, as decoders take it.

    `text` is an object that a decoder has accepted. None: no such member, or its name is written with escapes.
    """
    depth, start, found = 0, -1, None
    for token in _TOKEN.finditer(without_escapes(text)):
        byte = text[token.start()]
        if byte in _OPENING:
            depth += 1
        elif byte != _QUOTE:
            depth -= 1
            if not depth and start >= 0:
                found = text[start : token.start()]
        elif depth == 1 and (value := _value_start(text, token.end())):
            if start >= 0:
                found = text[start : text.rindex(b",", 0, token.start())]
            start = value if text[token.start() + 1 : token.end() - 1] == name else -1
    return found.strip() if found is not None else None


def _value_start(text: bytes, at: int) -> int:
    """The place behind the colon that follows a name; 0 where none does, for a string that is a value."""
    match = _COLON.match(text, at)
    return match.end() if match else 0
