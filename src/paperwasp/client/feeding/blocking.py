"""The feed client for programs with threads: calls that give futures.

The event loop runs on a thread of the client's own. A call that finds as many operations in flight as the throttler
wants waits until some are done, so that a loop over a file needs no other brake. Any thread may call.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import TypeVar, Unpack

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
from paperwasp.errors import FeedError, MultiFeedError, OperationAborted

_Found = TypeVar("_Found")


class FeedClient:
    """Puts, updates and removes documents through the document API of one or more containers.

        with FeedClient("http://127.0.0.1:8080") as client:
            futures = [client.put("id:music:music::1", {"fields": {"title": "Thriller"}})]
            results = results_of(futures)

    A future's exception is a FeedError. Functions that are added to futures run on the client's event loop and must not
    wait. At the end of `with` all operations are waited for, unless an exception ends it.
    """

    def __init__(
        self, endpoints: str | Sequence[str], *, verifies_connection: bool = True, **options: Unpack[FeedOptions]
    ) -> None:
        """Connects. `verifies_connection`: raises FeedError unless a server answers that has a document API.

        Errors: InvalidInput for settings that cannot be, FeedError.
        """
        self._settings = make_settings(endpoints, **options)
        self._loop = asyncio.new_event_loop()
        self._engine = Engine(self._settings, self._loop, self._make_room)
        self._inbox: deque[Flight] = deque()
        self._is_woken = False
        self._may_go_on = threading.Condition()
        self._waiting = 0
        """Threads that wait until fewer operations are in flight."""
        self._accepted = 0
        """Operations that callers have given, also those that are in the inbox still."""
        self._is_closed = False
        self._thread = threading.Thread(target=self._run, name="paperwasp-feed-client", daemon=True)
        self._thread.start()
        if verifies_connection:
            try:
                self._verify()
            except BaseException:
                self.close(graceful=False)
                raise

    def put(
        self,
        document_id: DocumentId | str,
        document: Document,
        parameters: OperationParameters = NO_PARAMETERS,
    ) -> Future[Result]:
        """Puts a document: `{"fields": {…}}`, as a mapping or as JSON. Errors: InvalidInput, OperationAborted."""
        return self.submit(make_operation(OperationType.PUT, document_id, document, parameters))

    def update(
        self,
        document_id: DocumentId | str,
        update: Document,
        parameters: OperationParameters = NO_PARAMETERS,
    ) -> Future[Result]:
        """Updates a document: `{"fields": {"n": {"assign": 1}}}`. Errors: InvalidInput, OperationAborted."""
        return self.submit(make_operation(OperationType.UPDATE, document_id, update, parameters))

    def remove(self, document_id: DocumentId | str, parameters: OperationParameters = NO_PARAMETERS) -> Future[Result]:
        """Removes a document. Errors: InvalidInput, OperationAborted."""
        return self.submit(make_operation(OperationType.REMOVE, document_id, None, parameters))

    def submit(self, operation: FeedOperation) -> Future[Result]:
        """Sends an operation, whose body is sent as it is. Errors: OperationAborted if the client is closed."""
        future: Future[Result] = Future()
        future.set_running_or_notify_cancel()

        def done(flight: Flight) -> None:
            try:
                result = finish(operation, flight)
            except FeedError as error:
                future.set_exception(error)
            else:
                future.set_result(result)

        flight = make_flight(operation, self._settings, self._loop.time(), done)
        with self._may_go_on:
            if threading.current_thread() is not self._thread:
                self._wait_for_room()
            if self._is_closed:
                raise OperationAborted("the client is closed", operation.document_id.text)
            self._accepted += 1
            self._inbox.append(flight)
            if self._is_woken:
                return future
            self._is_woken = True
        self._loop.call_soon_threadsafe(self._take)
        return future

    def statistics(self) -> FeedStatistics:
        """Count the requests that were sent and answered, since the beginning or the last reset."""
        return self._call(self._engine.statistics)

    def reset_statistics(self) -> None:
        self._call(self._engine.reset_statistics)

    @property
    def circuit_state(self) -> CircuitState:
        """Whether the service is known to fail."""
        return self._engine.circuit_state

    def close(self, graceful: bool = True) -> None:
        """Takes no more operations, waits for those in flight, or else aborts them, and closes the connections.

        Those that are aborted have OperationAborted as exception. Another call does nothing. Errors: RuntimeError in a
        function of a future, which would wait for itself.
        """
        if threading.current_thread() is self._thread:
            raise RuntimeError("a feed client is not closed by a function of one of its futures")
        with self._may_go_on:
            was_closed, self._is_closed = self._is_closed, True
            self._may_go_on.notify_all()
        if was_closed:
            return
        ended = asyncio.run_coroutine_threadsafe(self._end(graceful), self._loop)
        try:
            ended.result()
        except BaseException:  # an interrupt while waiting
            asyncio.run_coroutine_threadsafe(self._end(False), self._loop).result()
            raise
        finally:
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()

    def __enter__(self) -> FeedClient:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(graceful=error is None)

    def _wait_for_room(self) -> None:
        while self._accepted >= self._engine.target and not self._is_closed:
            self._waiting += 1
            self._may_go_on.wait()
            self._waiting -= 1

    def _make_room(self) -> None:
        """On the event loop: operations are done."""
        with self._may_go_on:
            self._accepted = self._engine.pending + len(self._inbox)
            if self._waiting and self._accepted < self._engine.target:
                self._may_go_on.notify(self._engine.target - self._accepted)

    def _take(self) -> None:
        """On the event loop: takes what callers have given."""
        with self._may_go_on:
            self._is_woken = False
        while self._inbox:
            self._engine.accept(self._inbox.popleft())
        self._engine.send()

    def _verify(self) -> None:
        verified: Future[None] = Future()

        def done(flight: Flight) -> None:
            try:
                check_handshake(flight)
            except FeedError as error:
                verified.set_exception(error)
            else:
                verified.set_result(None)

        def begin() -> None:
            self._engine.shake_hands(make_handshake(self._loop.time(), done))

        self._loop.call_soon_threadsafe(begin)
        verified.result()

    def _call(self, function: Callable[[], _Found]) -> _Found:
        """Return the result of a function, called on the event loop; here, if that has ended."""
        if not self._thread.is_alive() or threading.current_thread() is self._thread:
            return function()
        found: Future[_Found] = Future()

        def call() -> None:
            found.set_result(function())

        self._loop.call_soon_threadsafe(call)
        return found.result()

    async def _end(self, graceful: bool) -> None:
        self._take()
        if graceful:
            await self._engine.wait_until_idle()
        self._engine.abort_all()
        await self._engine.wait_until_closed()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()


def results_of(futures: Iterable[Future[Result]]) -> list[Result]:
    """Waits for operations; gives their results in the same order. Errors: MultiFeedError if any of them failed."""
    results: list[Result] = []
    errors: list[FeedError] = []
    for future in futures:
        try:
            results.append(future.result())
        except FeedError as error:
            errors.append(error)
    if errors:
        raise MultiFeedError(errors)
    return results
