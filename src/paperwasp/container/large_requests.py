"""Requests that take long to read are read on a thread, while the event loop serves others."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.yielding import yielding_if_large
from paperwasp.core.object_memory import is_worth, outside_arenas
from paperwasp.http.messages import Request

_Given = ParamSpec("_Given")
_Made = TypeVar("_Made")


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
