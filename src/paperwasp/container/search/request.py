"""From an HTTP request to the names and values of its parameters: query string, JSON body or form body.

A JSON object within the body is a group of parameters: {"ranking": {"profile": "x"}} is `ranking.profile=x`. The query
string goes before the body.
Vespa: https://docs.vespa.ai/en/querying/query-api.html
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Set
from functools import lru_cache
from itertools import islice
from typing import Any, Final

import orjson

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.container.search.values import FORMATS, SentArray, renderer
from paperwasp.errors import IllegalQuery, InvalidInput
from paperwasp.http.messages import Request, decode, decode_form
from paperwasp.text.large_json import load_json, without_escapes

JSON_TYPES: Final = ("application/json", "")
"""The media types of bodies that are read as JSON."""
_FORM: Final = "application/x-www-form-urlencoded"
_REMEMBERED_CHARACTERS: Final = 4096
_SELECT: Final = ("select.where", "select.grouping")
_RAW_GROUPS: Final = ("select.where", "select.grouping", "select.fields")
_INPUT: Final = "input.query("
MAX_BODY_DEPTH: Final = 32
_WORDS: Final = {True: "true", False: "false", None: "null"}


def parameter_pairs(request: Request) -> list[tuple[str, str]]:
    """Names and values in the order in which they take effect: the last one wins.

    Errors: IllegalQuery where the body is not what its type says, the query string is broken, or there are too many.
    """
    content_type = request.content_type if request.body and request.method == "POST" else None
    if content_type is not None:
        pairs = list(islice(_all_pairs(request, content_type), limits.QUERY_PARAMETERS + 1))
    else:
        pairs = _query_pairs(request.query) if request.query else []
    if len(pairs) > limits.QUERY_PARAMETERS:
        raise _too_many()
    if content_type in JSON_TYPES:
        _check_together({name for name, _ in pairs})
    return pairs


def _check_together(names: Set[str]) -> None:
    """A query is said once. Vespa: requestMapFromRequest of SearchHandler.java, which looks at JSON bodies alone."""
    if not names.isdisjoint(_SELECT):
        for name in ("yql", "query"):
            if name in names:
                raise IllegalQuery(f"Illegal query: Query contains both {name} and select parameter")


def _all_pairs(request: Request, content_type: str) -> Iterator[tuple[str, str]]:
    yield from _body_pairs(request, content_type)
    yield from _query_pairs(request.query)


def plain_format(request: Request) -> str:
    """The `format` in the query string or a form, for the answer to a request whose parameters are broken; "" where it
    is missing. Vespa: errorResponse of SearchHandler.java."""
    value = _last_format(request.query.encode())
    if value is None and request.content_type == _FORM:
        value = _last_format(request.body)
    try:
        name = renderer(_decode(value.decode(errors="replace"))) if value is not None else ""
        return name if name in FORMATS else ""
    except (InvalidInput, ValueError):
        return ""


def _last_format(pairs: bytes) -> bytes | None:
    """The value of the last `format` among pairs, as it is written. Looks at millions of pairs in milliseconds."""
    start = pairs.rfind(b"&format=") + 1
    if not start and not pairs.startswith(b"format="):
        return None
    return pairs[start:].partition(b"&")[0].removeprefix(b"format=")


def _too_many() -> IllegalQuery:
    return IllegalQuery(f"More than {limits.QUERY_PARAMETERS} parameters (QUERY_PARAMETERS in paperwasp.limits)")


def _query_pairs(query: str) -> list[tuple[str, str]]:
    if query.count("&") > limits.QUERY_PARAMETERS:
        raise _too_many()
    if "%" not in query:
        parts = [part.partition("=") for part in query.replace("+", " ").split("&") if part]
        return [(name, value) for name, _, value in parts]
    parts = [part.partition("=") for part in query.split("&") if part]
    try:
        return [
            (
                _decode(name) if "%" in name else name.replace("+", " "),
                _decode(value) if "%" in value else value.replace("+", " "),
            )
            for name, _, value in parts
        ]
    except InvalidInput as error:
        raise IllegalQuery(error.message) from None


def _decode(text: str) -> str:
    return _decode_short(text) if len(text) <= _REMEMBERED_CHARACTERS else decode(text)


_decode_short = lru_cache(maxsize=1024)(decode)


def _body_pairs(request: Request, content_type: str) -> Iterable[tuple[str, str]]:
    if len(request.body) > limits.HTTP_QUERY_BODY_BYTES:
        raise IllegalQuery(f"The body has {len(request.body)} bytes; at most {limits.HTTP_QUERY_BODY_BYTES}")
    if content_type == _FORM:
        if request.body.count(b"&") > limits.QUERY_PARAMETERS:
            raise _too_many()
        try:
            return decode_form(request.body.decode()).items()
        except (UnicodeDecodeError, InvalidInput) as error:
            raise IllegalQuery(f"The form in the body is broken: {error}") from None
    if content_type not in JSON_TYPES:
        return ()
    content = _json_object(request.body)
    if set(map(type, content.values())) == {str}:
        return content.items()
    return flatten(content, _numbers_as_text(request.body, content))


def _json_object(body: bytes) -> Mapping[str, Any]:
    try:
        content = load_json(body)
    except orjson.JSONDecodeError as error:
        try:
            if len(body) > limits.LENIENT_JSON_BYTES:
                raise ValueError("too large to be read leniently")
            content = lenient_json(body)
        except ValueError:
            raise IllegalQuery(f"The JSON of the body is broken: {error}") from None
    if not isinstance(content, dict):
        raise IllegalQuery("The body must be a JSON object")
    return content


def _numbers_as_text(body: bytes, content: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The same object with the digits of its numbers as the client wrote them; None where they make no difference, or
    the body is too large to be read again."""
    if len(body) > limits.LENIENT_JSON_BYTES or not _has_fraction(content):
        return None
    try:
        texts: Mapping[str, Any] = lenient_json(body, parse_float=str)
    except ValueError:  # it is deep
        return None
    return texts


def _has_fraction(content: Mapping[str, Any], group: str = "", depth: int = 0) -> bool:
    """Whether a parameter is a number with a fraction, an exponent, or more digits than integers have."""
    return depth <= MAX_BODY_DEPTH and any(
        type(value) is float
        or (type(value) is dict and not _is_value(group + name) and _has_fraction(value, f"{group}{name}.", depth + 1))
        for name, value in content.items()
    )


def _is_value(full_name: str) -> bool:
    """Whether an object of this name is the value of a parameter, and no group."""
    return full_name.startswith("input.") or full_name in _RAW_GROUPS


def flatten(
    content: Mapping[str, Any], texts: Mapping[str, Any] | None = None, group: str = "", depth: int = 0
) -> Iterator[tuple[str, str]]:
    """The members of a JSON object as parameters. Arrays, and objects that are values, stay JSON. `texts`: the same
    object with text for fractions."""
    if depth > MAX_BODY_DEPTH:
        raise IllegalQuery(f"The JSON of the body is nested deeper than {MAX_BODY_DEPTH} levels")
    for name, value in content.items():
        full = group + name
        if type(value) is str:
            yield full, value
        elif isinstance(value, dict) and not _is_value(full):
            yield from flatten(value, texts and texts[name], full + ".", depth + 1)
        elif texts and type(value) is float:
            yield full, str(texts[name])
        else:
            try:
                text = _text(value)
                yield full, SentArray(text, value) if type(value) is list and full.startswith(_INPUT) else text
            except TypeError as error:  # orjson writes neither all that it reads, nor all that is read leniently
                raise IllegalQuery(f"The JSON of '{full}' cannot be read: {error}") from None


def _text(value: Any) -> str:
    """A value that is not a text as text: as JSON has it."""
    if isinstance(value, dict | list):
        return orjson.dumps(value).decode()
    return _WORDS[value] if value is None or isinstance(value, bool) else repr(value)


# JSON as people write long queries: strings may be in single quotes, and have line breaks in them.
#
# Vespa: the bodies of queries, which it reads with these two liberties and no others.


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
