"""Updates that give one operation of a field twice: `{"f": {"match": {…}, "match": {…}}}`, or name a field twice.

Vespa reads updates member by member and does all of them, in their order. Dictionaries keep the last of equal names,
so such an update becomes several parts, each of them an update without equal names; they are read in turn.

Vespa: VespaJsonDocumentReader.java of document/json
"""

from __future__ import annotations

import json
from typing import Any

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.document.written_numbers import SentFields, quote_numbers
from paperwasp.errors import InvalidInput


def parts_of(fields: SentFields) -> list[SentFields]:
    """The update in parts; nearly always it is one, which is `fields` itself.

    Errors: InvalidInput where there are several, and the body is so large that it is decoded in pieces.
    """
    if not _core.repeats_names(fields.body):
        return [fields]
    if len(fields.body) > limits.JSON_PIECE_BYTES:
        most = f"{limits.JSON_PIECE_BYTES} bytes (JSON_PIECE_BYTES in paperwasp.limits)"
        raise InvalidInput(f"An update of more than {most} names a field, or gives an operation of it, once")
    try:
        values, texts = _parts(fields.body), _parts(quote_numbers(fields.body))
    except RecursionError:
        raise InvalidInput("An update that is nested so deep gives each operation once") from None
    parts = [SentFields(value, b"", text) for value, text in zip(values, texts, strict=True)]
    return [part.only(name for name in part if name in fields) for part in parts]


class Members(list[tuple[str, Any]]):
    """The members of an object of JSON, also those with equal names."""


def members_of(text: bytes) -> Any:
    """The value that a text says, with `Members` for objects."""
    return json.loads(text, object_pairs_hook=Members)


def _parts(body: bytes) -> list[dict[str, Any]]:
    (*_, members) = (value for name, value in members_of(body) if name == "fields")
    parts: list[dict[str, Any]] = [{}]
    for name, operations in members:
        if not isinstance(operations, Members):
            _add(parts, name, operations)
            continue
        if not operations:
            _add(parts, name, {})
        for operation, value in operations:
            _add(parts, name, {operation: _plain(value)})
    return parts


def _add(parts: list[dict[str, Any]], name: str, operations: Any) -> None:
    """To the last part, where what it has of the field leaves room; else to another one."""
    before = parts[-1].get(name)
    if name not in parts[-1]:
        parts[-1][name] = operations
    elif isinstance(before, dict) and isinstance(operations, dict) and not before.keys() & operations.keys():
        before.update(operations)
    else:
        parts.append({name: operations})


def _plain(value: Any) -> Any:
    if isinstance(value, Members):
        return {name: _plain(inner) for name, inner in value}
    return [_plain(inner) for inner in value] if isinstance(value, list) else value
