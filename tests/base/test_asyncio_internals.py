"""The private parts of asyncio are what `base/asyncio_internals.py` says, on the Python that runs this.

Needs nothing but pytest and the sources: `PYTHONPATH=src python3.x -m pytest -c /dev/null --noconftest` and this file.
`tools/try_wheels.sh` runs it with every Python that wheels are built for.
"""

from __future__ import annotations

import asyncio
import gc
import re
import socket
import ssl
import threading
import weakref
from asyncio.selector_events import _SelectorSocketTransport  # type: ignore[attr-defined, unused-ignore]
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from paperwasp.base import asyncio_internals
from paperwasp.base.asyncio_internals import (
    enter_task,
    has_more_to_do,
    leave_task,
    running_loop,
    set_running_loop,
    socket_transport,
    untie,
)

SOURCES = Path(asyncio_internals.__file__).parents[1]
PRIVATE = re.compile(
    r"\basyncio(?:\.\w+)*\._\w|^from asyncio[.\w]* import .*\b_\w"
    r"|\"_(?:ready|ssl_protocol|transport|read_ready_cb|write_ready)\"",
    re.MULTILINE,
)
SECONDS = 30
"""How long a test waits at most for what comes at once."""


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    loop = asyncio.SelectorEventLoop()
    yield loop
    loop.close()


@pytest.fixture
def no_collections() -> Iterator[None]:
    gc.collect()
    gc.disable()
    yield
    gc.enable()


def _in_callback(loop: asyncio.AbstractEventLoop, work: Any) -> Any:
    """What `work` gives as a callback of the loop, with nothing else to do."""
    ended = loop.create_future()

    def call() -> None:
        try:
            ended.set_result(work())
        except BaseException as error:
            ended.set_exception(error)

    loop.call_soon(call)
    return loop.run_until_complete(asyncio.wait_for(ended, SECONDS))


def test_no_other_module_uses_private_parts() -> None:
    users = {path.name for path in SOURCES.rglob("*.py") if PRIVATE.search(path.read_text())}
    assert users == {"asyncio_internals.py"}


def test_an_object_is_the_current_task_between_enter_and_leave(loop: asyncio.AbstractEventLoop) -> None:
    class Stand:
        """No task."""

    def work() -> list[object]:
        stand = cast("asyncio.Task[None]", Stand())
        before = asyncio.current_task()
        enter_task(loop, stand)
        within = asyncio.current_task()
        leave_task(loop, stand)
        return [before, within is stand, asyncio.current_task()]

    assert _in_callback(loop, work) == [None, True, None]


def test_what_entered_is_not_kept(loop: asyncio.AbstractEventLoop, no_collections: None) -> None:
    class Stand:
        """No task."""

    def work() -> weakref.ref[Stand]:
        stand = Stand()
        enter_task(loop, cast("asyncio.Task[None]", stand))
        leave_task(loop, cast("asyncio.Task[None]", stand))
        return weakref.ref(stand)

    assert _in_callback(loop, work)() is None


def test_a_time_limit_keeps_what_entered_and_cancels_it(loop: asyncio.AbstractEventLoop) -> None:
    """What stands for a task until there is one is asked by `asyncio.timeout` for what tasks have."""
    cancelled = asyncio.Event()

    class Stand:
        """Counts, as a task does, how often it is to be cancelled."""

        count = 0

        def cancelling(self) -> int:
            return self.count

        def cancel(self, *_: object) -> bool:
            self.count += 1
            cancelled.set()
            return True

        def uncancel(self) -> int:
            self.count -= 1
            return self.count

    async def limited() -> None:
        async with asyncio.timeout(0):
            await asyncio.get_running_loop().create_future()

    stand = cast("asyncio.Task[None]", Stand())
    steps = limited()

    def begin() -> None:
        enter_task(loop, stand)
        try:
            steps.send(None)
        finally:
            leave_task(loop, stand)

    _in_callback(loop, begin)
    loop.run_until_complete(asyncio.wait_for(cancelled.wait(), SECONDS))
    with pytest.raises(TimeoutError):
        steps.throw(asyncio.CancelledError())


def test_a_loop_runs_on_the_thread_where_it_is_set(loop: asyncio.AbstractEventLoop) -> None:
    assert running_loop() is None
    elsewhere = []
    set_running_loop(loop)
    try:
        assert running_loop() is asyncio.get_running_loop() is loop
        thread = threading.Thread(target=lambda: elsewhere.append(running_loop()))
        thread.start()
        thread.join()
    finally:
        set_running_loop(None)
    assert running_loop() is None and elsewhere == [None] and not loop.is_running()


def test_a_loop_is_lent_while_it_runs_elsewhere(loop: asyncio.AbstractEventLoop) -> None:
    """Futures and tasks may be made, and callbacks called, on a thread on which the loop is set."""
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    try:
        outer = running_loop()
        set_running_loop(loop)
        try:
            future = asyncio.get_running_loop().create_future()
            made = asyncio.Future[None]()
            assert future.get_loop() is made.get_loop() is loop
        finally:
            set_running_loop(outer)
    finally:
        loop.call_soon_threadsafe(loop.stop)
        thread.join()


def test_callbacks_that_wait_are_seen(loop: asyncio.AbstractEventLoop) -> None:
    found: list[bool] = []

    def look_and_stop() -> None:
        found.append(has_more_to_do(loop))
        loop.stop()

    for _ in range(3):
        loop.call_soon(lambda: found.append(has_more_to_do(loop)))
    loop.call_soon(loop.stop)
    loop.run_forever()
    assert found == [True, True, True] and not has_more_to_do(loop)
    loop.call_soon(lambda: found.append(has_more_to_do(loop)))
    loop.call_soon_threadsafe(loop.stop)
    loop.run_forever()
    assert found[3:] == [True]
    loop.call_later(3600, loop.stop)
    loop.call_soon(look_and_stop)
    loop.run_forever()
    assert found[4:] == [False], "what is due later does not wait now"


def test_sockets_that_can_be_read_are_seen(loop: asyncio.AbstractEventLoop) -> None:
    found: dict[int, bool] = {}
    pairs = [socket.socketpair() for _ in range(2)]

    def read(number: int) -> None:
        found[number] = has_more_to_do(loop)
        loop.remove_reader(pairs[number][0])
        if len(found) == len(pairs):
            loop.stop()

    for number, (ours, theirs) in enumerate(pairs):
        theirs.send(b"x")
        loop.add_reader(ours, read, number)
    loop.run_forever()
    assert list(found.values()) == [True, False]
    for pair in pairs:
        for each in pair:
            each.close()


class _Server(asyncio.BufferedProtocol):
    """Notes its transport."""

    def __init__(self) -> None:
        self.transport: asyncio.BaseTransport | None = None
        self.lost = asyncio.get_running_loop().create_future()
        self.buffer = bytearray(100)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set_result(None)


def _contexts() -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """A server's and a client's without certificates: by a cipher that asks for none."""
    made = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER), ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    made[1].check_hostname = False
    made[1].verify_mode = ssl.CERT_NONE
    for context in made:
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        context.set_ciphers("AECDH-AES128-SHA:@SECLEVEL=0")
    return made


@pytest.mark.parametrize("is_aborted", [False, True], ids=["closed", "aborted"])
@pytest.mark.parametrize("has_tls", [False, True], ids=["plain", "tls"])
def test_nothing_of_an_ended_transport_stays_once_it_is_untied(
    loop: asyncio.AbstractEventLoop, no_collections: None, has_tls: bool, is_aborted: bool
) -> None:
    server_context, client_context = _contexts() if has_tls else (None, None)

    async def end() -> weakref.ref[object]:
        ours, theirs = socket.socketpair()
        server = _Server()
        name = "" if has_tls else None
        accepting = loop.connect_accepted_socket(lambda: server, ours, ssl=server_context)
        connecting = loop.create_connection(asyncio.Protocol, sock=theirs, ssl=client_context, server_hostname=name)
        _, (client, _) = await asyncio.gather(accepting, connecting)
        transport = cast(asyncio.Transport, server.transport)
        below = socket_transport(transport)
        assert isinstance(below, _SelectorSocketTransport) and (below is transport) is not has_tls
        (transport if is_aborted else client).abort()
        await server.lost
        client.abort()
        untie(below)
        return weakref.ref(below)

    reference = loop.run_until_complete(asyncio.wait_for(end(), SECONDS))
    for _ in range(3):  # rounds in which the loop lets go of callbacks that have run
        loop.call_soon(loop.stop)
        loop.run_forever()
    assert reference() is None
