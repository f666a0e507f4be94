"""How a deployment step runs: `Workers` has the threads, `Deadline` its time, and `ApplicationLocks` the applications.

A step runs on a thread, so that syncing and parsing never hold up a request. One step at a time has an application.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Final, ParamSpec, TypeVar

from paperwasp import limits
from paperwasp.base.env import SYSTEM, Environment
from paperwasp.base.threads import ThreadPool
from paperwasp.base.yielding import yielding_to_requests
from paperwasp.configserver.repository import ApplicationId
from paperwasp.core.steps import WorkOutOfTime, bounded_work
from paperwasp.errors import DeployTimeout, LockFailure, Overload

P = ParamSpec("P")
T = TypeVar("T")

_READERS: Final = 2


class Deadline:
    """When a step must have ended, and the answer to who was first: the clock, or the step.

    A step asks `check` between its parts and `commit` before its first change. Whoever waits for it may `expire` it:
    from then on it cannot commit. So a step that was answered with a timeout changes nothing, and one that has begun
    to change things is waited for.
    """

    def __init__(self, seconds: float, environment: Environment = SYSTEM) -> None:
        self.seconds = seconds
        self._environment = environment
        self._end_ns = environment.monotonic_ns() + int(seconds * 1e9)
        self._lock = threading.Lock()
        self._committed = False
        self._expired = False

    @property
    def remaining_seconds(self) -> float:
        return max(0.0, (self._end_ns - self._environment.monotonic_ns()) / 1e9)

    def check(self, detail: str = "") -> None:
        """Errors: DeployTimeout when the time is over. `detail`: where it went."""
        if self._expired or (not self._committed and self.remaining_seconds == 0):
            raise self.error(detail)

    def commit(self) -> None:
        """From here on the step is carried through. Errors: DeployTimeout when the time is over."""
        with self._lock:
            self.check()
            self._committed = True

    def expire(self) -> bool:
        """Ends the time, unless the step has committed. Returns whether it did."""
        with self._lock:
            self._expired = not self._committed
            return self._expired

    def error(self, detail: str = "") -> DeployTimeout:
        """The error for a request whose time is over. `detail`: where it went."""
        text = f"The request was not done within its timeout of {self.seconds:g} seconds"
        return DeployTimeout(f"{text}: {detail}" if detail else text)

    @contextmanager
    def bounding_work(self) -> Iterator[None]:
        """The work inside ends with the time (`core.steps`). Errors: DeployTimeout, with the step that took longest."""
        end_ns = time.monotonic_ns() + max(1, int(self.remaining_seconds * 1e9))
        try:
            with bounded_work(end_ns, limits.PREPARE_STEP_BYTES):
                yield
        except WorkOutOfTime as error:
            raise self.error(str(error)) from None


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
