"""A client of HTTP/2 that sends and reads only what a test tells it to."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import (
    DataReceived,
    Event,
    ResponseReceived,
    StreamEnded,
)
from h2.settings import SettingCodes, Settings

from paperwasp.http.server import HttpServer
from tests.http.http_servers import (
    connect,
)


class Client:
    """A client of HTTP/2 that sends and reads only what it is told to."""

    def __init__(self, server: HttpServer, window: int | None = None) -> None:
        self._server = server
        self.h2 = H2Connection(H2Configuration(header_encoding="utf-8"))
        self._window = window
        self._events: list[Event] = []
        self._next = 1

    async def open(self, upgrade: bytes | None = None) -> None:
        self.reader, self.writer = await connect(self._server)
        if upgrade is None:
            if self._window is not None:
                values: Any = {SettingCodes.INITIAL_WINDOW_SIZE: self._window}
                self.h2.local_settings = Settings(client=True, initial_values=values)
            self.h2.initiate_connection()
        else:
            settings = self.h2.initiate_upgrade_connection()
            assert settings is not None
            self._next = 3
            self.writer.write(upgrade.replace(b"SETTINGS", settings))
            assert (await self.reader.readuntil(b"\r\n\r\n")).startswith(b"HTTP/1.1 101 Switching Protocols\r\n")

    def ask(
        self,
        method: str,
        path: str,
        body: bytes | None = None,
        ends: bool = True,
        fields: Mapping[str, str] = MappingProxyType({}),
    ) -> int:
        """Puts a request into what is sent next; gives its stream."""
        number, self._next = self._next, self._next + 2
        heads = [(":method", method), (":path", path), (":scheme", "http"), (":authority", "h"), *fields.items()]
        self.h2.send_headers(number, heads, end_stream=body is None and ends)
        if body is not None:
            self.h2.send_data(number, body, end_stream=ends)
        return number

    async def send(self) -> None:
        self.writer.write(self.h2.data_to_send())
        await self.writer.drain()

    def feed(self, data: bytes) -> None:
        """Takes what the server has sent, as if it were read here."""
        self._events += self.h2.receive_data(data)

    async def event(self, number: int, *kinds: type[Event]) -> Event:
        """The next event of such a kind of a stream."""
        while True:
            for event in self._events:
                if isinstance(event, kinds) and getattr(event, "stream_id", 0) == number:
                    self._events.remove(event)
                    return event
            await self.send()
            data = await asyncio.wait_for(self.reader.read(65536), 10)
            assert data, "the server has closed the connection"
            self.feed(data)

    async def answer(self, number: int) -> tuple[str, bytes]:
        """Status and body of an answer."""
        head = await self.event(number, ResponseReceived)
        assert isinstance(head, ResponseReceived)
        await self.event(number, StreamEnded)
        bodies = [each for each in self._events if isinstance(each, DataReceived) and each.stream_id == number]
        fields: dict[Any, Any] = dict(head.headers)
        return str(fields[":status"]), b"".join(each.data for each in bodies)

    def close(self) -> None:
        self.writer.close()
