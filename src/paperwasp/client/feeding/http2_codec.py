"""HTTP/2 for a connection of the feed client: the compiled connection, with heads for the requests that it sends."""

from __future__ import annotations

from typing import Final

from paperwasp.client.feeding.operations import Flight
from paperwasp.client.feeding.settings import Endpoint, FeedSettings
from paperwasp.core.http.http2 import Http2Error
from paperwasp.core.http.http2_client import ClientEvent, Http2Client

_MOST_HEADS: Final = 60
"""Headers that change with time make more heads. Beyond this number a connection is replaced: the kernel holds 64."""


class Http2Codec:
    """Requests to bytes, and bytes to events."""

    def __init__(self, endpoint: Endpoint, settings: FeedSettings) -> None:
        self._client = Http2Client()
        self._scheme = endpoint.scheme.encode()
        self._authority = endpoint.authority.encode()
        self._settings = settings
        self._heads: dict[tuple[str, bool, bool, tuple[tuple[str, str], ...]], int] = {}
        self.receive = self._client.receive
        self.take_output = self._client.take_output

    @property
    def room(self) -> int:
        """How many requests more may be sent now."""
        return self._client.room

    @property
    def is_leaving(self) -> bool:
        """Whether no more requests will be taken, so that the connection is to be replaced."""
        return self._client.is_leaving or len(self._heads) >= _MOST_HEADS

    def request(self, flight: Flight, headers: tuple[tuple[str, str], ...]) -> int:
        """Sends a request; gives its stream, or 0 where there is no room. Errors: ValueError for a broken header."""
        key = (flight.method, flight.is_gzip, bool(flight.body), headers)
        head = self._heads.get(key)
        if head is None:
            head = self._heads[key] = self._client.add_head(self._fields(*key))
        return self._client.request(head, flight.path.encode(), flight.body)

    def _fields(
        self, method: str, is_gzip: bool, has_body: bool, headers: tuple[tuple[str, str], ...]
    ) -> list[tuple[bytes, bytes]]:
        fields = [(b":method", method.encode()), (b":scheme", self._scheme), (b":authority", self._authority)]
        fields += [(name.encode(), value.encode("latin-1")) for name, value in headers]
        fields.append((b"accept", b"application/json"))
        if has_body:
            fields.append((b"content-type", b"application/json"))
        if is_gzip:
            fields.append((b"content-encoding", b"gzip"))
        return fields

    def give_up(self, stream: int) -> None:
        """Wants no answer to a request any more."""
        self._client.reset(stream, Http2Error.CANCEL)

    def end(self) -> list[ClientEvent]:
        """The connection was closed by the server: what that means to open requests."""
        return []
