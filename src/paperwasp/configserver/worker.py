"""The threads on which deployment work runs, so that syncing and parsing never hold up a request being served.

Reading has threads of its own and never waits for a deployment. How many deployments of a tenant may run or wait is
limited.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable
from functools import partial
from typing import Final, ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.daemon_threads import DaemonThreads
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.configserver.deadline import Deadline
from paperwasp.errors import Overload

P = ParamSpec("P")
T = TypeVar("T")

_READERS: Final = 2


class Workers:
    """Runs blocking calls off the event loop."""

    def __init__(self) -> None:
        deployers = limits.TENANT_DEPLOYMENTS * limits.TENANTS
        self._readers = DaemonThreads(_READERS, "configserver-read")
        self._deployers = DaemonThreads(deployers, "configserver-deploy")
        self._lock = threading.Lock()
        self._deploying: Counter[str] = Counter()

    async def read(self, call: Callable[P, T], *arguments: P.args, **keywords: P.kwargs) -> T:
        """The result of a call that waits for no deployment, or its error."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._readers, partial(call, *arguments, **keywords))

    async def deploy(self, tenant: str, deadline: Deadline, call: Callable[[], T]) -> T:
        """The result of a step, or its error. Errors: Overload; DeployTimeout if the time is over before it commits."""
        self._enter(tenant)
        future = asyncio.get_running_loop().run_in_executor(self._deployers, partial(self._run, tenant, call))
        future.add_done_callback(_forget)
        over_seconds = deadline.remaining_seconds + limits.DEPLOY_ANSWER_SECONDS
        await asyncio.wait([future], timeout=over_seconds)
        if not future.done() and deadline.expire():
            raise deadline.error()
        return await future

    def _run(self, tenant: str, call: Callable[[], T]) -> T:
        try:
            with yielding_to_requests():
                return call()
        finally:
            with self._lock:
                self._deploying[tenant] -= 1
                self._deploying += Counter()  # forgets tenants of which nothing runs

    def _enter(self, tenant: str) -> None:
        with self._lock:
            if self._deploying[tenant] >= limits.TENANT_DEPLOYMENTS:
                raise Overload(
                    f"{limits.TENANT_DEPLOYMENTS} deployments of tenant '{tenant}' are being processed: try again later"
                )
            self._deploying[tenant] += 1

    def close(self) -> None:
        """Waits for the calls that run; those that wait are not made."""
        for executor in (self._deployers, self._readers):
            executor.shutdown(wait=True, cancel_futures=True)


def _forget(future: asyncio.Future[T]) -> None:
    """Takes the outcome of a step, so that no warning tells of it where nobody waits for it any more."""
    if not future.cancelled():
        future.exception()
