"""JSON of any size to values, and large arrays to JSON, without keeping other threads waiting.

Decoding builds one Python object for each value and keeps the interpreter's lock all the while: some hundred
milliseconds for ten megabytes. So a large text is looked through first, by a kernel that needs no lock and refuses
more values than `limits.JSON_VALUES` before any of them is built, and then decoded in pieces, between which other
threads run. Long strings are decoded in pieces, too.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any, Final, NoReturn

import orjson

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.errors import TooLarge


def without_escapes(text: bytes) -> bytes:
    """A text of the same length in which every quote begins or ends a string, to look for places in.

    Escaped quotes and backslashes are blanks there. A string is `"[^"]*"` then, which is found without memory; an
    expression that steps over escapes keeps 120 bytes for each of them.
    """
    if b"\\" not in text:
        return text
    return text.replace(rb"\\", b"  ").replace(rb"\"", b"  ").replace(rb"\'", b"  ")


BEGIN_ARRAY, BEGIN_OBJECT, RUN, NAME, END, TEXT, TEXT_END = range(7)
FINE, TOO_MANY_VALUES, TOO_DEEP, BROKEN, CUT_SHORT, MORE_BEHIND = range(6)
"""The steps and the outcomes of a scan, by their numbers in core/documents/json_scan.cpp."""

Take = Callable[[list[Any]], None]
"""Takes some elements of an array, after those that it was given before. The list is used again."""

_PROBLEMS: Final = {
    TOO_DEEP: f"nested deeper than {limits.JSON_DEPTH} levels",
    CUT_SHORT: "unexpected end of data",
    MORE_BEHIND: "unexpected content after document",
}
_BROKEN: Final = "unexpected character"


def load_json(text: bytes) -> Any:
    """Decodes JSON that a client sent. Errors: orjson.JSONDecodeError with the place; TooLarge."""
    return orjson.loads(text) if len(text) <= limits.JSON_PIECE_BYTES else _load(text, limits.JSON_VALUES)


def load_stored_json(text: bytes) -> Any:
    """The same of a text that we wrote, however many values it has."""
    return orjson.loads(text) if len(text) <= limits.JSON_PIECE_BYTES else _load(text, len(text))


def load_json_without(text: bytes, name: str, begin: Callable[[], Take]) -> Any:
    """Decodes JSON whose one large array is taken piece by piece, and left empty in what is returned.

    `name`: of the array, as a member of the outermost object; empty: the outermost value, if that is an array. `begin`
    is called for each such array that has elements, of which the last counts, as among members of one name; what it
    returns takes the elements as they come. Errors: as `load_stored_json`, when elements may have been taken already;
    those of `begin` and of what it returned.
    """
    if len(text) <= limits.JSON_PIECE_BYTES:
        return _taken_whole(orjson.loads(text), name, begin)
    steps = _scan(text, len(text))
    if not steps:
        return _taken_whole(orjson.loads(text), name, begin)
    return _taken_whole(_Decoder(text).value(steps, name, begin), name, begin)


def _taken_whole(value: Any, name: str, begin: Callable[[], Take]) -> Any:
    """The value without the elements that are there still, since they were no piece of their own."""
    found = value if not name else value.get(name) if isinstance(value, dict) else None
    if isinstance(found, list) and found:
        begin()(found)
        found.clear()
    return value


def _load(text: bytes, most_values: int) -> Any:
    steps = _scan(text, most_values)
    if not steps:  # a single string, or a small value between white space
        return orjson.loads(text)
    return _Decoder(text).value(steps)


def _scan(text: bytes, most_values: int) -> list[int]:
    """The steps that lead to the value; none where they do not pay."""
    problem, at, _, steps = _core.scan_json(text, most_values, limits.JSON_DEPTH, limits.JSON_PIECE_BYTES)
    if problem == TOO_MANY_VALUES:
        raise TooLarge(
            f"The JSON has more than {most_values} values and names (JSON_VALUES in paperwasp.limits): "
            "send it in several requests"
        )
    if problem != FINE:
        _fail(text, _PROBLEMS.get(problem, _BROKEN), at)
    return steps


def array_in_pieces(values: Iterable[Any]) -> orjson.Fragment:
    """The array of these values, for orjson: written in pieces, between which other threads run, and without having
    all of them at once."""
    each = iter(values)
    written = []
    while piece := list(islice(each, limits.JSON_PIECE_VALUES)):
        written.append(orjson.dumps(piece, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1])
    return orjson.Fragment(b"[%b]" % b",".join(written))


class _Decoder:
    def __init__(self, text: bytes) -> None:
        self._text = text
        self._view = memoryview(text)

    def value(self, steps: list[int], name_taken: str = "", begin: Callable[[], Take] | None = None) -> Any:
        """Follows the steps of a scan; see `load_json_without`."""
        taken: Any = None
        take: Take = _keep
        whole: list[Any] = []
        outer: list[Any] = []  # what is open, the whole aside
        inner: Any = whole
        name = ""
        texts: list[str] = []
        numbers = iter(steps)
        for kind, start, end in zip(numbers, numbers, numbers, strict=True):
            if kind == RUN and type(inner) is list:
                inner += self._decode(b"[", start, end, b"]")
            elif kind == RUN:
                inner.update(self._decode(b"{", start, end, b"}"))
            elif kind == NAME:
                name = self._decode(b"", start, end, b"")
                if type(name) is not str:
                    _fail(self._text, _BROKEN, start)
            elif kind == END:
                inner = outer.pop()
            elif kind == TEXT:
                texts.append(self._decode(b'"', start, end, b'"'))
            else:
                begun: Any
                if kind == TEXT_END:
                    begun = "".join((*texts, self._decode(b'"', start, end, b'"')))
                    texts.clear()
                else:
                    begun = [] if kind == BEGIN_ARRAY else {}
                if type(inner) is list:
                    inner.append(begun)
                else:
                    inner[name] = begun
                if kind != TEXT_END:
                    if begin and kind == BEGIN_ARRAY and _is_taken(outer, inner, name, name_taken):
                        taken, take = begun, begin()
                    outer.append(inner)
                    inner = begun
            if inner is taken and inner:
                take(inner)
                inner.clear()
        return whole[0]

    def _decode(self, before: bytes, start: int, end: int, behind: bytes) -> Any:
        piece = b"".join((before, self._view[start:end], behind))
        try:
            return orjson.loads(piece)
        except orjson.JSONDecodeError as error:
            read = len(piece.decode(errors="replace")[: error.pos].encode()) - len(before)
            _fail(self._text, error.msg, start + max(0, min(read, end - start)))


def _is_taken(outer: list[Any], inner: Any, name: str, name_taken: str) -> bool:
    """Return whether an array that begins in `inner`, below `outer`, is the one that is taken."""
    if not name_taken:
        return not outer
    return len(outer) == 1 and type(inner) is dict and name == name_taken


def _keep(_: list[Any]) -> None:
    """Elements of arrays that nobody takes stay where they are."""


def _fail(text: bytes, message: str, at: int) -> NoReturn:
    """As orjson says what is wrong at a byte of the text."""
    before = text[:at].decode(errors="replace")
    raise orjson.JSONDecodeError(message, before, len(before)) from None
