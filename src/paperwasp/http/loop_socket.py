"""Sockets of an event loop that are read and written with the interpreter's lock held: `core/http/loop_socket.cpp`.

Python's own sockets let the lock go for each call, though one that does not block is over in microseconds. While a
thread computes beside the loop, as the writer does during a feed, the loop would wait for the lock after each of them.
"""

from __future__ import annotations

import socket
from typing import TYPE_CHECKING, Final

from paperwasp.core import _core

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_HELD_BYTES: Final = 65_536
"""Sent at most with the lock held: copying more takes long enough to let others work."""


class LoopSocket(socket.socket):
    """A connected socket that does not block."""

    @classmethod
    def of(cls, accepted: socket.socket) -> LoopSocket:
        """The same connection; `accepted` is closed for whoever still has it."""
        made = cls(accepted.family, accepted.type, accepted.proto, accepted.detach())
        made.setblocking(False)
        return made

    def recv_into(self, buffer: WriteableBuffer, nbytes: int = 0, flags: int = 0) -> int:
        if nbytes or flags:
            return super().recv_into(buffer, nbytes, flags)
        return _core.receive_into(self.fileno(), memoryview(buffer))

    def send(self, data: ReadableBuffer, flags: int = 0) -> int:
        view = memoryview(data)
        if flags or view.nbytes > _HELD_BYTES:
            return super().send(data, flags)
        return _core.send(self.fileno(), view)
