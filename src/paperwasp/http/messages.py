"""A request and a response as immutable values; nothing here knows a socket.

A server turns bytes into a `Request`, awaits a handler, and writes the `Response` back. Handlers, their tests
and the golden scripts deal in these two classes only.

Vespa: container HTTP behaviour; paths and query strings are decoded by the rules of HTML forms.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from types import MappingProxyType
from typing import Final
from urllib.parse import unquote_plus

import orjson
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.base.patterns import compile_later
from paperwasp.errors import InvalidInput

JSON: Final = "application/json"
TEXT: Final = "text/plain;charset=utf-8"
HTML: Final = "text/html;charset=utf-8"
_BROKEN_ESCAPE: Final = compile_later("%(?![0-9a-fA-F]{2})")
_SHOWN: Final = 1000
"""How many characters of a text with a problem are shown."""
_NO_HEADERS: Final[Mapping[str, str]] = MappingProxyType({})


class ClientCertificate(Struct, frozen=True):
    """The certificate by which a client of TLS has shown who it is. The server has verified it."""

    common_name: str
    """Of its subject; empty where it has none."""
    alternative_names: tuple[str, ...]
    """Kind and name, as `DNS:client.example` or `URI:spiffe://example/client`."""
    sha256: str
    """Of the whole certificate, in hexadecimal digits."""


class Request(Struct, frozen=True):
    """One request. `raw_path` and `query` are as they came, percent signs and all; `headers` has lower-case names.

    What may have secrets in it, header fields and body, is not shown where a request is printed.

    `host` is the Host header (with the port, where there is one); `scheme` is `http` or `https`; `client` is who a
    client of TLS has shown to be, by a certificate; `address` is the client's, without its port.
    """

    method: str
    raw_path: str
    query: str = ""
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    body: bytes = b""
    scheme: str = "http"
    host: str = "localhost"
    client: ClientCertificate | None = None
    address: str = ""

    def __repr__(self) -> str:
        return f"Request({self.method!r}, {self.raw_path!r}, {self.query!r}, client={self.client!r}, {self.address!r})"

    def parameters(self) -> dict[str, str]:
        """The parameters of the query string, decoded; of several with one name the last wins."""
        return decode_form(self.query)

    def header(self, name: str, default: str = "") -> str:
        """The value of the header `name` (any case), or `default`."""
        return self.headers.get(name.lower(), default)

    @property
    def content_type(self) -> str:
        """The media type of the body: lower case, without its parameters; empty where there is none."""
        return self.header("content-type").partition(";")[0].strip().lower()

    @property
    def base_url(self) -> str:
        """Scheme and host, without a slash at the end: what the addresses in an answer begin with."""
        return f"{self.scheme}://{self.host}"

    @property
    def url(self) -> str:
        """The address of the request without its query string."""
        return self.base_url + self.raw_path


class Response(Struct, frozen=True):
    """One answer, whole."""

    status: int
    body: bytes = b""
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    about: object = None
    """Facts about the answer for observers; nothing of it is sent."""


class StreamedResponse(Struct, frozen=True):
    """An answer whose body is sent as it is made. The status goes first, so `chunks` tells of errors in its own words.

    The server asks for a chunk only when the one before it is on its way, and closes `chunks` when the client is gone.
    """

    status: int
    chunks: AsyncIterator[bytes]
    content_type: str = JSON
    headers: Mapping[str, str] = field(default_factory=lambda: _NO_HEADERS)
    about: object = None
    """As `Response.about`."""


Answer = Response | StreamedResponse


def json_response(status: int, content: object, headers: Mapping[str, str] = _NO_HEADERS) -> Response:
    """`content` as compact JSON. Keys keep their order; floats that JSON cannot say become null."""
    return Response(status, orjson.dumps(content), JSON, headers)


def text_response(status: int, text: str, content_type: str = TEXT) -> Response:
    return Response(status, text.encode(), content_type)


def decode_form(text: str) -> dict[str, str]:
    """The pairs of a query string or a form body. `+` is a space; the last of equal names wins.

    Errors: InvalidInput for a broken percent escape or text that is not UTF-8.
    """
    pairs = {}
    for part in text.split("&"):
        if part:
            name, _, value = part.partition("=")
            pairs[decode(name)] = decode(value)
    return pairs


def path_segments(raw_path: str) -> tuple[str, ...]:
    """The decoded segments between the slashes, the leading slash aside: `/a/b+c/` → `a`, `b c`, ``."""
    return tuple(decode(part) for part in raw_path.removeprefix("/").split("/"))


def decode(text: str) -> str:
    """Undoes the encoding of forms: `+` is a space, `%XX` is a byte of UTF-8. Errors: InvalidInput."""
    if "%" not in text:
        return text.replace("+", " ") if "+" in text else text
    if (count := text.count("%")) > limits.HTTP_ESCAPES:
        raise InvalidInput(f"{count} percent escapes; at most {limits.HTTP_ESCAPES}")
    if broken := _BROKEN_ESCAPE.search(text):
        raise InvalidInput(f"Illegal percent escape '{text[broken.start() : broken.start() + 3]}' in '{text[:_SHOWN]}'")
    try:
        return unquote_plus(text, errors="strict")
    except UnicodeDecodeError:
        raise InvalidInput(f"'{text[:_SHOWN]}' is not UTF-8 when its percent signs are decoded") from None
