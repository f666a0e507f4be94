"""The threads on which deployment steps run, and the locks by which an application has one step at a time.

A step runs on a thread, so that syncing and parsing never hold up a request.
"""

from __future__ import annotations

import asyncio
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.threads import ThreadPool
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.configserver.deadline import Deadline
from paperwasp.configserver.repository import ApplicationId
from paperwasp.errors import LockFailure, Overload

P = ParamSpec("P")
T = TypeVar("T")

_READERS: Final = 2


class ApplicationLocks:
    """One step at a time for each application; those of different applications know nothing of each other."""

    def __init__(self) -> None:
        self._condition = threading.Condition()
        self._held: set[ApplicationId] = set()
        self._closed = False

    @contextmanager
    def hold(self, application: ApplicationId, deadline: Deadline) -> Iterator[None]:
        """Waits until no other step has the application. Errors: LockFailure when the time is over."""
        with self._condition:
            free = self._condition.wait_for(
                lambda: self._closed or application not in self._held, deadline.remaining_seconds
            )
            if not free or self._closed:
                why = "the config server stops" if self._closed else f"waited {deadline.seconds:g} seconds for it"
                raise LockFailure(f"Application {application} is being processed by another request: {why}")
            self._held.add(application)
        try:
            yield
        finally:
            with self._condition:
                self._held.discard(application)
                self._condition.notify_all()

    def close(self) -> None:
        """Nobody gets in any more, and those that wait give up."""
        with self._condition:
            self._closed = True
            self._condition.notify_all()


class Workers:
    """Runs blocking calls off the event loop.

    Reading has threads of its own and never waits for a deployment. How many deployments of a tenant may run or wait
    is limited.
    """

    def __init__(self) -> None:
        deployers = limits.TENANT_DEPLOYMENTS * limits.TENANTS
        self._readers = ThreadPool("configserver-read", _READERS)
        self._deployers = ThreadPool("configserver-deploy", deployers)
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
