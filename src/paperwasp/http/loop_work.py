"""Whether an event loop has more to do in this round: the one look at a private part of asyncio's loops."""

from __future__ import annotations

import asyncio


def has_more_to_do(loop: asyncio.AbstractEventLoop) -> bool:
    """Whether other callbacks wait, as far as the loop tells: other sockets that can be read among them."""
    return bool(getattr(loop, "_ready", None))
