"""CBOR in place of JSON, in requests and answers alike: the one place that knows both.

Handlers read and write JSON only. A body of CBOR becomes the JSON that says the same before they see it, and their
JSON becomes CBOR where the client prefers that. CBOR says more than JSON: bytes become base64, as raw fields are in
JSON; keys that are numbers or booleans become their text; NaN and the infinities become the strings that Vespa has.
What is left is refused: tags other than big integers and the one that says "this is CBOR", undefined, simple values.
Streamed answers stay as they are: their client asked for lines.

RFC 8949. Differs: Vespa reads no CBOR, and writes it for queries only.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable, Mapping
from functools import lru_cache, partial
from io import BytesIO
from math import isfinite
from typing import Any, Final

import cbor2
import orjson

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.errors import InvalidInput, TooLarge
from paperwasp.http.messages import JSON, Answer, Request, Response, StreamedResponse

CBOR: Final = "application/cbor"
_READ_TAGS: Final = frozenset((2, 3, 55799))
"""Big integers, positive and negative; "this is CBOR"."""
_LIBRARY_TAGS: Final = frozenset((*range(64), 100, 256, 258, 260, 261, 1004, 43000))
"""The tags that the library has a meaning for, and more."""
_RANGES: Final[Mapping[str, tuple[str, ...]]] = {
    CBOR: (CBOR,),
    JSON: (JSON, "application/*", "*/*"),
}
"""Media type → what accepts it, the most specific first. Whoever does not name CBOR does not get it."""


def mentions_cbor(request: Request) -> bool:
    """Whether anything here concerns the request at all. Cheap: most requests are documents fed as JSON."""
    headers = request.headers
    return ("content-type" in headers and "cbor" in headers["content-type"].lower()) or (
        "accept" in headers and "cbor" in headers["accept"].lower()
    )


async def as_json_request(request: Request) -> Request:
    """The request with a body of JSON, where it was CBOR. Errors: InvalidInput, TooLarge."""
    if request.content_type != CBOR or not request.body:
        return request
    if len(request.body) > limits.CBOR_BODY_BYTES:
        raise TooLarge(
            f"A body of CBOR has at most {limits.CBOR_BODY_BYTES} bytes (CBOR_BODY_BYTES in paperwasp.limits), not "
            f"{len(request.body)}: send JSON instead"
        )
    body = await _apart(to_json, request.body)
    return replace(request, body=body, headers={**request.headers, "content-type": JSON})


async def as_accepted(request: Request, answer: Answer) -> Answer:
    """The answer in CBOR, where it is JSON and the client prefers CBOR."""
    return answer if isinstance(answer, StreamedResponse) else await whole_as_accepted(request, answer)


async def whole_as_accepted(request: Request, answer: Response) -> Response:
    """The same of an answer that is whole."""
    if not _is_wanted(request, answer):
        return answer
    return replace(answer, body=await _apart(to_cbor, answer.body), content_type=CBOR)


def error_as_accepted(request: Request, answer: Response) -> Response:
    """The same of an answer that is short."""
    return replace(answer, body=to_cbor(answer.body), content_type=CBOR) if _is_wanted(request, answer) else answer


def _is_wanted(request: Request, answer: Response) -> bool:
    accept = request.headers.get("accept", "")
    return (
        CBOR in accept.lower() and prefers_cbor(accept) and answer.content_type.startswith(JSON) and answer.body != b""
    )


async def _apart(convert: Callable[[bytes], bytes], body: bytes) -> bytes:
    return await asyncio.to_thread(convert, body) if len(body) > limits.HTTP_INLINE_CBOR_BYTES else convert(body)


@lru_cache(maxsize=256)
def prefers_cbor(accept: str, *, at_a_tie: bool = False) -> bool:
    """Whether an Accept header ranks CBOR above JSON, or, `at_a_tie`, as high."""
    ranges: dict[str, float] = {}
    for part in accept.split(","):
        media_range, *options = part.split(";")
        ranges[media_range.strip().lower()] = quality(options)
    cbor, json_ = (
        next((ranges[name] for name in names if name in ranges), 0.0) for names in (_RANGES[CBOR], _RANGES[JSON])
    )
    return cbor > 0 and (cbor > json_ or (at_a_tie and cbor == json_))


def quality(options: list[str]) -> float:
    """The `q` among the options of an element of an Accept header, 1 without; what is no number is 0."""
    for option in options:
        name, _, value = option.partition("=")
        if name.strip().lower() == "q":
            try:
                number = float(value)
            except ValueError:
                return 0.0
            return min(max(number, 0.0), 1.0) if isfinite(number) else 0.0
    return 1.0


def to_cbor(body: bytes) -> bytes:
    """CBOR for JSON. Whole numbers and floats stay what they are."""
    encoded: bytes = cbor2.dumps(orjson.loads(body))
    return encoded


def to_json(body: bytes) -> bytes:
    """JSON for one item of CBOR; of equal keys the last wins, as in JSON. Errors: InvalidInput."""
    stream = BytesIO(body)
    decoder = cbor2.CBORDecoder(stream, tag_hook=_refuse, semantic_decoders=_TAG_READERS, max_depth=limits.CBOR_DEPTH)
    try:
        content = decoder.decode()
    except InvalidInput:
        raise
    except Exception as error:  # the library has no one error for what is not CBOR
        cause = error.__cause__
        raise cause if isinstance(cause, InvalidInput) else InvalidInput(f"The body is not CBOR: {error}") from None
    if rest := len(body) - stream.tell():
        raise InvalidInput(f"The body goes on for {rest} bytes behind its one item of CBOR")
    return _dumps(_plain(content))


def _refuse(tag: Any, *_: object) -> Any:
    raise InvalidInput(f"The CBOR of the body has the tag {getattr(tag, 'tag', tag)}, which says nothing that JSON can")


_TAG_READERS: Final = {tag: partial(_refuse, tag) for tag in _LIBRARY_TAGS - _READ_TAGS}


def _plain(value: Any) -> Any:
    """A value of the decoder as JSON has it."""
    kind = type(value)
    if kind is str or kind is int or kind is bool or value is None:
        return value
    if kind is float:
        return value if isfinite(value) else _not_finite(value)
    if kind is list or kind is tuple:
        return [_plain(element) for element in value]
    if isinstance(value, Mapping):
        return {_key(name): _plain(member) for name, member in value.items()}
    if kind is bytes:
        return base64.b64encode(value).decode()
    raise InvalidInput(f"The CBOR of the body has a value that JSON has not: {value!r:.100}")


def _not_finite(value: float) -> str:
    if value != value:
        return "NaN"
    return "Infinity" if value > 0 else "-Infinity"


def _key(name: Any) -> str:
    """The name of a member. Maps of a document have keys that are numbers; JSON has them as text."""
    if isinstance(name, str):
        return name
    if isinstance(name, bool):
        return "true" if name else "false"
    if isinstance(name, int):
        try:
            return str(name)
        except ValueError:  # thousands of digits
            raise InvalidInput("The CBOR of the body has a key that is too large a number") from None
    if isinstance(name, float) and isfinite(name):
        return str(name)
    raise InvalidInput(f"The CBOR of the body has a key that is neither text nor a number: {name!r:.100}")


def _dumps(content: Any) -> bytes:
    try:
        return orjson.dumps(content)
    except (TypeError, orjson.JSONEncodeError):  # a number of more than 64 bits
        try:
            return json.dumps(content, allow_nan=False).encode()
        except ValueError:
            raise InvalidInput("The CBOR of the body has a number that is too large") from None
