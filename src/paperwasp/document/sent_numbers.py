"""Numbers as they were written, for fields that are texts: what is sent as `1.10` is the text `1.10` in Vespa.

A decoded number no longer says how it was written. Where a text is wanted of one (`TextOfNumber`), the body is
decoded once more with all its numbers in quotation marks. Documents whose texts are strings pay nothing for this. A
number that no double is large enough for is its text from the start: `1e400` is that text, and an infinite double.

Vespa: TokenBuffer.java and SingleValueReader.java of document/json read all single values from their text.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Final

import orjson

from paperwasp.base.patterns import compile_later
from paperwasp.text.large_json import load_json, load_stored_json, without_escapes

_STRING_OR_NUMBER: Final = compile_later(rb'"[^"]*"|-?[0-9][0-9.eE+-]*')
_QUOTE: Final = b'"'
_TOO_LARGE: Final = "number is infinity"
"""How orjson refuses it."""
_LONG: Final = 300
"""A number of fewer characters fits into a double, unless it has an exponent."""


class SentFields(dict[str, Any]):
    """The fields of a body, which also keep the text that they were decoded from."""

    __slots__ = ("_written", "body")

    def __init__(self, fields: Mapping[str, Any], body: bytes, written: Mapping[str, Any] | None = None) -> None:
        super().__init__(fields)
        self.body = body
        self._written = written

    def with_texts(self, name: str) -> Any:
        """The value of a field with its numbers as texts. Errors: TooLarge."""
        if self._written is None:
            self._written = load_json(quote_numbers(self.body))["fields"]
        return self._written[name]

    def only(self, names: Iterable[str]) -> SentFields:
        """Some of the fields."""
        return SentFields({name: self[name] for name in names}, self.body, self._written)


def value_with_texts(fields: Mapping[str, Any], name: str) -> Any:
    """The value of a field with its numbers as texts: as they were written, where that is known."""
    return fields.with_texts(name) if isinstance(fields, SentFields) else numbers_as_texts(fields[name])


def numbers_as_texts(value: Any) -> Any:
    """A JSON value with its numbers as texts, in the form in which we write them."""
    return load_stored_json(quote_numbers(orjson.dumps(value)))


def quote_numbers(text: bytes) -> bytes:
    """JSON with each number in quotation marks."""
    return b"".join(_with_numbers(text, _quote))


def load_sent_json(text: bytes) -> Any:
    """Decodes JSON that a client sent; a number that is too large for a double becomes its text.

    Errors: orjson.JSONDecodeError with the place; TooLarge.
    """
    try:
        return load_json(text)
    except orjson.JSONDecodeError as error:
        if not error.msg.startswith(_TOO_LARGE):
            raise
        return load_json(b"".join(_with_numbers(text, _quote_if_too_large)))


def _with_numbers(text: bytes, written: Callable[[bytes], bytes]) -> Iterator[bytes]:
    """The text, piece by piece, with what `written` makes of each of its numbers."""
    at = 0
    for found in _STRING_OR_NUMBER.finditer(without_escapes(text)):
        token = found[0]
        if not token.startswith(_QUOTE):
            yield text[at : found.start()]
            yield written(token)
            at = found.end()
    yield text[at:]


def _quote_if_too_large(number: bytes) -> bytes:
    if len(number) < _LONG and b"e" not in number and b"E" not in number:
        return number
    try:
        return _quote(number) if math.isinf(float(number)) else number
    except ValueError:  # it is no number
        return number


def _quote(number: bytes) -> bytes:
    return b"".join((_QUOTE, number, _QUOTE))
