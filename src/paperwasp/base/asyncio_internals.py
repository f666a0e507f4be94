"""The private parts of asyncio that the service uses: all of them are here, each with what it relies on.

`tests/base/test_asyncio_internals.py` holds every Python that is tried to what is said here, and needs but pytest.
"""

from __future__ import annotations

import asyncio
from asyncio.events import _get_running_loop, _set_running_loop
from asyncio.tasks import _enter_task, _leave_task
from typing import Final

enter_task: Final = _enter_task
"""`enter_task(loop, task)`, on the thread where the loop runs, outside of its tasks: from then on `task` is the current
one, which `asyncio.current_task` gives and `asyncio.timeout` keeps. It may be any object."""
leave_task: Final = _leave_task
"""`leave_task(loop, task)`: undoes the same `enter_task`. The task is not kept."""
running_loop: Final = _get_running_loop
"""The loop that runs on this thread, or None: `asyncio.get_running_loop` without an exception, which takes longer."""
set_running_loop: Final = _set_running_loop
"""`set_running_loop(loop)`: from then on the loop is what runs on this thread alone; None: no loop does. It is not
noted in the loop, which may run on another thread meanwhile."""
_OWN_METHODS: Final = ("_read_ready_cb", "_write_ready")


def has_more_to_do(loop: asyncio.AbstractEventLoop) -> bool:
    """Return whether other callbacks wait in this round, such as those of other sockets, as far as the loop tells.

    Loops of asyncio have these callbacks in `_ready`, all that were ready when the round began and are not yet called.
    """
    return bool(getattr(loop, "_ready", None))


def socket_transport(transport: asyncio.BaseTransport) -> object:
    """The transport that has the socket: of a connection with TLS the one below, which is the `_transport` of the
    `_ssl_protocol` of the transport that protocols are given."""
    return getattr(getattr(transport, "_ssl_protocol", None), "_transport", transport)


def untie(transport: object) -> None:
    """Takes from a transport of a socket that is closed the methods of its own that asyncio leaves in it: with them it
    would stay, and its socket and buffers with it, until a collection of garbage finds them, which may be after
    thousands of connections. They are attributes of the object, and its only cycles: `_read_ready_cb`, and from 3.12 on
    `_write_ready`, which asyncio itself removes where a transport is closed, but not where it is aborted."""
    kept = getattr(transport, "__dict__", {})
    for name in _OWN_METHODS:
        if name in kept:
            kept[name] = None
