"""Operations in Vespa's JSON: `{"put": "id:…", "fields": {…}}`, on lines, in an array, or without separators."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.operations import OPERATION_BYTES, BadInput, Item, Kind, SourceOperation, lines_of
from paperwasp.client.sources.rows import RowMapping
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput
from paperwasp.text.large_json import without_escapes

# Cuts a stream of JSON into its values without reading what is in them: an array's elements, or values in a row.
# Only strings and brackets are looked at; each value is decoded by whoever takes it.


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
        """Describe an object whose end was not found: where the decoder stumbles, or its beginning."""
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


_KINDS: Final[dict[str, Kind]] = {"put": "put", "update": "update", "remove": "remove", "id": "put"}
"""Member → operation. Visits write `id`, which is a put."""
_FIELDS_LAST: Final = compile_later(
    rb'\{\s*(?:"(?:put|update|id|condition|create)"\s*:\s*(?:"[^"\\]*(?:\\.[^"\\]*)*"|true|false)\s*,\s*)*'
    rb'"fields"\s*:\s*',
    re.DOTALL,
)
"""The text before the fields, in the order in which nearly all files have it."""
_EXPECTED: Final = 'expected an object with "put", "update" or "remove"'


def read_json(
    name: str, stream: io.BufferedReader, rows: RowMapping | None, most_bytes: int = OPERATION_BYTES
) -> Iterator[Item]:
    """Yields the operations of JSON in any of the three forms. `rows`: objects that are none are rows of a table."""
    start = stream.peek(1).lstrip()
    first_line, end_of_line, _ = start.partition(b"\n")
    if not start.startswith(b"[") and end_of_line and _is_json(first_line):
        yield from read_json_lines(name, stream, rows, most_bytes)
        return
    for value in JsonValues(name, stream, most_bytes):
        yield value if isinstance(value, BadInput) else _item(name, value, rows)


def read_json_lines(
    name: str, stream: io.BufferedReader, rows: RowMapping | None, most_bytes: int = OPERATION_BYTES
) -> Iterator[Item]:
    """Yields the operations of JSON lines; of a line that is none, what is wrong with it."""
    for number, text in lines_of(stream, most_bytes):
        if text is None:
            yield BadInput(f"{name}, line {number}: longer than {most_bytes} bytes, which no service takes")
        elif stripped := text.strip():
            yield _item(name, JsonValue(number, stripped), rows)


def read_operation(text: bytes, place: str, rows: RowMapping | None = None) -> SourceOperation:
    """The operation that an object of JSON says. Errors: InvalidInput naming the place."""
    content = orjson.loads(text)
    if not isinstance(content, dict):
        raise InvalidInput(f"{place}: {_EXPECTED}")
    named = [key for key in _KINDS if isinstance(content.get(key), str)]
    if rows is not None and not (named and content[named[0]].startswith("id:")):
        return rows.operation(content, place)
    if not named:
        hint = "" if rows else "; if it is a row of a table, say with --schema of which document type"
        raise InvalidInput(f"{place}: {_EXPECTED}{hint}")
    return _operation(content, named[0], text, place)


def _operation(content: dict[str, Any], member: str, text: bytes, place: str) -> SourceOperation:
    try:
        document_id = DocumentId.parse(content[member])
    except InvalidInput as error:
        raise InvalidInput(f"{place}: {error.message}") from None
    kind, condition, create = _KINDS[member], content.get("condition"), content.get("create", False)
    if condition is not None and not isinstance(condition, str):
        raise InvalidInput(f'{place}: "condition" must be a string')
    if create not in (True, False):
        raise InvalidInput(f'{place}: "create" must be true or false')
    if kind == "remove":
        return SourceOperation(kind, document_id, None, condition, False, place)
    if not isinstance(content.get("fields"), dict):
        raise InvalidInput(f'{place}: "fields" must be an object, with the fields of the document')
    return SourceOperation(kind, document_id, _fields_text(content, text), condition, create, place)


def _fields_text(content: dict[str, Any], text: bytes) -> bytes:
    """The fields as they were written: a service keeps the digits of a number that it takes for a text."""
    before = _FIELDS_LAST.match(text)
    if before and next(reversed(content)) == "fields" and text.count(b'"fields"') == 1:
        return text[before.end() : text.rindex(b"}")].strip()
    return member_text(text, b"fields") or orjson.dumps(content["fields"])


def _item(name: str, value: JsonValue, rows: RowMapping | None) -> Item:
    place = f"{name}, line {value.line}"
    try:
        return read_operation(value.text, place, rows)
    except orjson.JSONDecodeError as error:
        if "UTF-8" in error.msg:
            return BadInput(_say_bad_utf8(name, value))
        return BadInput(f"{name}, line {value.line + error.lineno - 1}, column {error.colno}: no JSON: {error.msg}")
    except InvalidInput as error:
        return BadInput(error.message)


def _say_bad_utf8(name: str, value: JsonValue) -> str:
    """Where the bytes are that are no UTF-8."""
    try:
        value.text.decode()
    except UnicodeDecodeError as error:
        line = value.line + value.text.count(b"\n", 0, error.start)
        column = error.start - (value.text.rfind(b"\n", 0, error.start) + 1) + 1
        return f"{name}, line {line}, byte {column}: no UTF-8 (byte 0x{value.text[error.start]:02X})"
    return f"{name}, line {value.line}: half of a surrogate pair, which no text can hold"


def _is_json(text: bytes) -> bool:
    try:
        orjson.loads(text)
    except orjson.JSONDecodeError:
        return False
    return True
