"""Operations in Vespa's JSON: `{"put": "id:…", "fields": {…}}`, on lines, in an array, or without separators."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.client.sources.json_values import JsonValue, JsonValues, member_text
from paperwasp.client.sources.opening import OPERATION_BYTES, lines_of
from paperwasp.client.sources.operations import BadInput, Item, Kind, SourceOperation
from paperwasp.client.sources.rows import RowMapping
from paperwasp.document.ids import DocumentId
from paperwasp.errors import InvalidInput

_KINDS: Final[dict[str, Kind]] = {"put": "put", "update": "update", "remove": "remove", "id": "put"}
"""Member → operation. Visits write `id`, which is a put."""
_FIELDS_LAST: Final = compile_later(
    rb'\{\s*(?:"(?:put|update|id|condition|create)"\s*:\s*(?:"[^"\\]*(?:\\.[^"\\]*)*"|true|false)\s*,\s*)*'
    rb'"fields"\s*:\s*',
    re.DOTALL,
)
"""What stands before the fields, in the order in which nearly all files have it."""
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
