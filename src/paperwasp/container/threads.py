"""Threads for requests that take long: those that embed, and those that are long to read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.threads import ThreadPool
from paperwasp.base.yielding import yielding_if_large
from paperwasp.core.object_memory import is_worth, outside_arenas
from paperwasp.errors import Overload
from paperwasp.http.messages import Request

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


class EmbeddingThreads(ThreadPool):
    """Threads for what embeds: it waits for runs of a model or a service elsewhere. Asked on one event loop.

    Many threads wait for one run of a model, which takes what all of them have: so there are more than processors.
    """

    def __init__(self, name: str, threads: int, waiting: int = limits.embedding.WAITING) -> None:
        """`waiting`: how much may wait for a thread, or be done by one, before the rest is refused. Of what nobody
        waits for any more, too: it keeps its room until a thread has met it."""
        super().__init__(name, threads)
        self._most = waiting

    async def run(self, work: Callable[_Given, _Made], *given: _Given.args, **named: _Given.kwargs) -> _Made:
        """Return what `work` returns, on a thread. Errors: those of `work`; Overload where too much waits."""
        if (undone := self.undone()) >= self._most:
            raise Overload(f"Rejecting execution due to overload: {undone} requests already wait for embedding")
        return await asyncio.wrap_future(self.submit(work, *given, **named))


# Requests that take long to read are read on a thread, while the event loop serves others.


def is_large(request: Request) -> bool:
    """Whether a request for documents is to be read outside the event loop: its fields, or a selection of it."""
    return len(request.body) > limits.JSON_PIECE_BYTES or len(request.query) > limits.DOCUMENT_INLINE_QUERY_CHARACTERS


async def read_in_turn(
    one_large: asyncio.Lock,
    request: Request,
    read: Callable[_Given, _Made],
    *given: _Given.args,
    **named: _Given.kwargs,
) -> _Made:
    """Returns the result of `read` for a request. A large one is read on a thread, one at a time for each lock."""
    if not is_large(request):
        return read(*given, **named)

    def read_outside() -> _Made:
        with yielding_if_large(len(request.body)), outside_arenas(is_worth(len(request.body))):
            return read(*given, **named)

    async with one_large:
        return await asyncio.to_thread(read_outside)
