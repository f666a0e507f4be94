"""The feed client for programs with asyncio: the engine runs on the program's own event loop."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Sequence
from types import TracebackType
from typing import Unpack

from paperwasp.client.feeding.circuit_breaker import CircuitState
from paperwasp.client.feeding.engine import Engine
from paperwasp.client.feeding.operations import (
    NO_PARAMETERS,
    FeedOperation,
    Flight,
    OperationParameters,
    OperationType,
    Result,
)
from paperwasp.client.feeding.preparation import (
    Document,
    check_handshake,
    finish,
    make_flight,
    make_handshake,
    make_operation,
)
from paperwasp.client.feeding.settings import FeedOptions, make_settings
from paperwasp.client.feeding.statistics import FeedStatistics
from paperwasp.document.ids import DocumentId
from paperwasp.errors import FeedError, OperationAborted


class AsyncFeedClient:
    """Puts, updates and removes documents through the document API of one or more containers.

        async with AsyncFeedClient("http://127.0.0.1:8080") as client:
            result = await client.put("id:music:music::1", {"fields": {"title": "Thriller"}})

    Many operations are in flight at once where several tasks wait for theirs, or by `submit`, which gives a future.
    Everything is called on one event loop.
    """

    def __init__(
        self, endpoints: str | Sequence[str], *, verifies_connection: bool = True, **options: Unpack[FeedOptions]
    ) -> None:
        """`verifies_connection`: `async with` raises FeedError unless a server answers that has a document API.

        Errors: InvalidInput for settings that cannot be.
        """
        self._settings = make_settings(endpoints, **options)
        self._verifies_connection = verifies_connection
        self._engine: Engine | None = None
        self._waiting: deque[tuple[Flight, asyncio.Future[None]]] = deque()
        """Calls that wait until fewer operations are in flight."""
        self._has_new = False
        self._is_closed = False

    async def put(
        self,
        document_id: DocumentId | str,
        document: Document,
        parameters: OperationParameters = NO_PARAMETERS,
    ) -> Result:
        """Puts a document: `{"fields": {…}}`, as a mapping or as JSON. Errors: InvalidInput, FeedError."""
        return await (await self.submit(make_operation(OperationType.PUT, document_id, document, parameters)))

    async def update(
        self,
        document_id: DocumentId | str,
        update: Document,
        parameters: OperationParameters = NO_PARAMETERS,
    ) -> Result:
        """Updates a document: `{"fields": {"n": {"assign": 1}}}`. Errors: InvalidInput, FeedError."""
        return await (await self.submit(make_operation(OperationType.UPDATE, document_id, update, parameters)))

    async def remove(self, document_id: DocumentId | str, parameters: OperationParameters = NO_PARAMETERS) -> Result:
        """Removes a document. Errors: InvalidInput, FeedError."""
        return await (await self.submit(make_operation(OperationType.REMOVE, document_id, None, parameters)))

    async def submit(self, operation: FeedOperation) -> asyncio.Future[Result]:
        """Sends an operation, whose body is sent as it is, as soon as the throttler allows one more; gives its future.

        Errors: OperationAborted if the client is closed.
        """
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Result] = loop.create_future()

        def done(flight: Flight) -> None:
            if future.done():
                return  # its caller has cancelled it
            try:
                result = finish(operation, flight)
            except FeedError as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        flight = make_flight(operation, self._settings, loop.time(), done)
        engine = self._started()
        if self._is_closed:
            raise OperationAborted("the client is closed", operation.document_id.text)
        if self._waiting or engine.pending >= engine.target:
            waiter: asyncio.Future[None] = loop.create_future()
            self._waiting.append((flight, waiter))
            await waiter
        else:
            self._accept(flight)
        return future

    def statistics(self) -> FeedStatistics:
        """Count the requests that were sent and answered, since the beginning or the last reset."""
        return self._started().statistics()

    def reset_statistics(self) -> None:
        self._started().reset_statistics()

    @property
    def circuit_state(self) -> CircuitState:
        """Whether the service is known to fail."""
        return self._settings.circuit_breaker.state

    async def close(self, graceful: bool = True) -> None:
        """Takes no more operations, waits for those in flight, or else aborts them, and closes the connections.

        Those that are aborted have OperationAborted as exception.
        """
        self._is_closed = True
        engine = self._started()
        self._make_room()
        try:
            if graceful:
                await engine.wait_until_idle()
        finally:
            engine.abort_all()
        await engine.wait_until_closed()

    async def __aenter__(self) -> AsyncFeedClient:
        engine = self._started()
        if self._verifies_connection:
            loop = asyncio.get_running_loop()
            shaken: asyncio.Future[Flight] = loop.create_future()
            engine.shake_hands(make_handshake(loop.time(), shaken.set_result))
            try:
                check_handshake(await shaken)
            except BaseException:
                await self.close(graceful=False)
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close(graceful=error is None)

    def _started(self) -> Engine:
        if self._engine is None:
            self._engine = Engine(self._settings, asyncio.get_running_loop(), self._make_room)
        return self._engine

    def _accept(self, flight: Flight) -> None:
        self._started().accept(flight)
        if not self._has_new:
            self._has_new = True
            asyncio.get_running_loop().call_soon(self._send)

    def _make_room(self) -> None:
        """Operations are done: those that wait are accepted, in the order of the calls."""
        engine = self._started()
        while self._waiting and (self._is_closed or engine.pending < engine.target):
            flight, waiter = self._waiting.popleft()
            if waiter.done():
                continue  # its caller has given it up
            if self._is_closed:
                waiter.set_exception(OperationAborted("the client is closed", flight.id_text))
            else:
                waiter.set_result(None)
                self._accept(flight)

    def _send(self) -> None:
        self._has_new = False
        self._started().send()
