"""The one thread on which deployment work runs, so that syncing and parsing never hold up a request being served."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import ParamSpec, TypeVar

P = ParamSpec("P")
T = TypeVar("T")


class Worker:
    """Runs blocking calls one after the other, off the event loop."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="configserver")

    async def run(self, call: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """The result of the call, or its error."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._executor, lambda: call(*arguments, **keywords))

    def close(self) -> None:
        """Waits for the call that runs; those that wait are not made."""
        self._executor.shutdown(wait=True, cancel_futures=True)
