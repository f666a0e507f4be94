"""One connection of the feed client: what is in flight on it, over the protocol that the server chose."""

from __future__ import annotations

import asyncio
from typing import Final, Protocol

from paperwasp.client.feeding.http1_codec import Http1Codec
from paperwasp.client.feeding.http2_codec import Http2Codec
from paperwasp.client.feeding.operations import Flight
from paperwasp.client.feeding.settings import Endpoint, FeedSettings
from paperwasp.core.http.http2 import Http2Error
from paperwasp.core.http.http2_client import ClientEvent

_MOST_UNREAD_BYTES: Final = 1 << 24
"""Of output that the server makes us send, by pings for instance, and does not read."""


class Listener(Protocol):
    """Told by a line of the outcomes of its requests."""

    def line_opened(self, line: Line) -> None: ...
    def line_closed(self, line: Line, reason: str) -> None: ...
    def answered(self, flight: Flight, status: int, body: bytes) -> None: ...
    def failed(self, flight: Flight, reason: str) -> None: ...
    def batch_ended(self) -> None:
        """All that has come at once was reported."""


class Line(asyncio.Protocol):
    """A connection. It takes requests from `line_opened` on."""

    def __init__(self, endpoint: Endpoint, settings: FeedSettings, listener: Listener) -> None:
        self.endpoint = endpoint
        self.flights: dict[int, Flight] = {}
        """By stream: what waits for its answer."""
        self.is_retired = False
        """It takes no more requests, and is closed behind the last answer."""
        self.has_answered = False
        self._settings = settings
        self._listener = listener
        self._transport: asyncio.Transport | None = None
        self._codec: Http2Codec | Http1Codec | None = None
        self._is_paused = False
        self._failure = "the connection was closed"

    @property
    def room(self) -> int:
        """How many requests more it takes now."""
        if self._codec is None or self._is_paused or self.is_retired:
            return 0
        return min(self._codec.room, self._settings.max_streams_per_connection - len(self.flights))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        tls = transport.get_extra_info("ssl_object")
        is_http2 = tls is None or tls.selected_alpn_protocol() == "h2"
        self._codec = (Http2Codec if is_http2 else Http1Codec)(self.endpoint, self._settings)
        self._listener.line_opened(self)
        self.flush()

    def send(self, flight: Flight, headers: tuple[tuple[str, str], ...]) -> bool:
        """Puts a request into what `flush` sends. False: there is no room. Errors: ValueError for a broken header."""
        assert self._codec is not None
        stream = self._codec.request(flight, headers)
        if not stream:
            return False
        self.flights[stream] = flight
        return True

    def flush(self) -> None:
        """Sends what waits, and closes a retired connection that has nothing in flight."""
        if self._codec is None or self._transport is None or self._transport.is_closing():
            return
        while output := self._codec.take_output():
            self._transport.write(output)
            if self._is_paused:
                break  # the rest goes when the server has read
        if self._is_paused and self._transport.get_write_buffer_size() > _MOST_UNREAD_BYTES:
            self.abort("the server does not read")
        if (self.is_retired or self._codec.is_leaving) and not self.flights:
            self._transport.close()

    def data_received(self, data: bytes) -> None:
        if self._codec is not None:
            self._tell(self._codec.receive(data))

    def eof_received(self) -> bool:
        if self._codec is not None:
            self._tell(self._codec.end())
        return False

    def _tell(self, events: list[ClientEvent]) -> None:
        for event in events:
            if event[0] == "over":
                self.abort(event[2])
                break
            flight = self.flights.pop(event[1], None)
            if flight is None:
                continue
            if event[0] == "response":
                self.has_answered = True
                self._listener.answered(flight, event[2], event[3])
            else:
                self._listener.failed(flight, f"the server reset the request: {_name(event[2])}")
        if self._codec is not None and self._codec.is_leaving:
            self.is_retired = True
        self._listener.batch_ended()
        self.flush()

    def give_up_late(self, now: float) -> list[Flight]:
        """Takes the requests whose time is over off the line."""
        late = [(stream, flight) for stream, flight in self.flights.items() if flight.deadline <= now]
        for stream, _ in late:
            del self.flights[stream]
            if self._codec is not None:
                self._codec.give_up(stream)
        if late:
            self.flush()
        return [flight for _, flight in late]

    def retire(self) -> None:
        """Takes no more requests."""
        self.is_retired = True
        self.flush()

    def abort(self, reason: str) -> None:
        """Ends the connection now. What is in flight is reported as failed by `line_closed`."""
        self._failure = reason
        self.is_retired = True
        if self._transport is not None:
            if self._codec is not None and (output := self._codec.take_output()):
                self._transport.write(output)
            self._transport.abort()

    def pause_writing(self) -> None:
        self._is_paused = True

    def resume_writing(self) -> None:
        self._is_paused = False
        self.flush()
        self._listener.batch_ended()

    def connection_lost(self, exc: Exception | None) -> None:
        self._codec = None
        reason = f"the connection broke: {exc}" if exc is not None else self._failure
        self._listener.line_closed(self, reason)


def _name(code: int) -> str:
    return Http2Error(code).name if code in Http2Error.__members__.values() else str(code)
