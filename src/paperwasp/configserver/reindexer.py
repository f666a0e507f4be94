"""The one thread that has content clusters index their documents again, a chunk at a time.

Every type whose run is due gets one chunk in turn. After a chunk the thread leaves the cluster alone for as long as
the chunk took, divided by the speed: at speed 1 half of the time is reindexing, at speed 0.1 a tenth of it or so, at
speed 100 nearly all. What a chunk reached is kept before the next one, so whoever kills the process loses one chunk
of work.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from typing import Protocol

from paperwasp import limits
from paperwasp.application.model import ApplicationModel
from paperwasp.base.env import Environment
from paperwasp.base.records import replace
from paperwasp.configserver.reindexing import ApplicationReindexing, ReindexingRepository, Run, Target, targets_of
from paperwasp.configserver.repository import ApplicationId
from paperwasp.errors import InternalError, NotFound, Overload, Timeout

_log = logging.getLogger(__name__)


class ReindexedChunk(Protocol):
    """The answer of a content cluster to a chunk."""

    @property
    def token(self) -> bytes | None:
        """The place up to which it came; None: all documents are done."""

    @property
    def progress(self) -> float:
        """From 0 to 1."""


ReindexChunk = Callable[[ApplicationId, str, str, bytes, int], ReindexedChunk]
"""(application, content cluster, document type, token, documents) → the answer, when they are indexed. Blocks."""
Models = Callable[[], Mapping[ApplicationId, ApplicationModel]]
_Work = tuple[ApplicationId, Target]


def no_chunks(
    application: ApplicationId, cluster: str, document_type: str, token: bytes, documents: int
) -> ReindexedChunk:
    """Raise that there is nothing to reindex: the `ReindexChunk` of a config server without content clusters."""
    raise InternalError(f"There is nobody to reindex '{document_type}' in '{cluster}' of {application}")


class Reindexer:
    """Runs what the repository says is to be run, for the applications that are active.

    `start` gives it its thread; a test may call `step` instead.
    """

    def __init__(
        self, repository: ReindexingRepository, models: Models, chunk: ReindexChunk, environment: Environment
    ) -> None:
        self._repository = repository
        self._models = models
        self._chunk = chunk
        self._environment = environment
        self._due_ns: dict[_Work, int] = {}
        self._tries: dict[_Work, int] = {}
        self._woken = threading.Event()
        self._stopped = False
        self._has_given_up = False
        self._thread: threading.Thread | None = None

    def start(self) -> None:
        self._thread = threading.Thread(target=self._loop, name="reindexing", daemon=True)
        self._thread.start()

    def stop(self) -> None:
        """Waits for the chunk that is under way, but not for ever: one that ends later is done again."""
        self._stopped = True
        self._woken.set()
        if self._thread is not None:
            self._thread.join(limits.STOP_SECONDS)
            self._has_given_up = self._thread.is_alive()

    def wake(self) -> None:
        """Something may be due earlier than it was thought."""
        self._woken.set()

    def _loop(self) -> None:
        while not self._stopped:
            try:
                wait_seconds = self.step()
            except Exception:
                _log.exception("Reindexing could not be looked after")
                wait_seconds = limits.REINDEX_RETRY_SECONDS
            if not self._stopped:  # the step may have taken what `stop` set for what `wake` did
                self._woken.wait(wait_seconds)

    def step(self) -> float | None:
        """One chunk for each run that is due; returns the seconds until one is again (None: there is none)."""
        if self._woken.is_set():
            self._woken.clear()
            self._due_ns.clear()
        for item, run in self._work().items():
            if not self._stopped and self._due(item, run) <= self._environment.monotonic_ns():
                self._run(*item)
        remaining = self._work()
        self._due_ns = {item: due for item, due in self._due_ns.items() if item in remaining}
        if not remaining:
            return None
        earliest_ns = min(self._due(item, run) for item, run in remaining.items())
        return max(0.0, (earliest_ns - self._environment.monotonic_ns()) / 1e9)

    def _work(self) -> dict[_Work, Run]:
        """The runs of active applications that have not ended."""
        found: dict[_Work, Run] = {}
        for application, model in self._models().items():
            reindexing = self._repository.get(application)
            known = set(targets_of(model))
            for target, run in reindexing.runs.items():
                if reindexing.enabled and target in known and run.speed and run.state != "successful":
                    found[application, target] = run
        return found

    def _due(self, item: _Work, run: Run) -> int:
        """When its next chunk is due. A run that failed, perhaps before a restart, waits before it goes on."""
        if item not in self._due_ns:
            since_failure_ms = self._now_ms() - run.ended_ms
            wait = limits.REINDEX_RETRY_SECONDS - since_failure_ms / 1000 if run.state == "failed" else 0.0
            self._put_off(item, max(0.0, wait))
        return self._due_ns[item]

    def _run(self, application: ApplicationId, target: Target) -> None:
        run = self._begin(application, target)
        if run is None:
            return
        item = (application, target)
        started_ns = self._environment.monotonic_ns()
        try:
            answer = self._chunk(application, *target, run.token, limits.REINDEX_DOCUMENTS)
        except Exception as error:
            self._handle_failure(item, run, error)
            return
        self._tries.pop(item, None)
        elapsed_seconds = (self._environment.monotonic_ns() - started_ns) / 1e9
        kept = self._advance(item, run, answer)
        if kept is not None and kept.speed:
            self._put_off(item, elapsed_seconds / kept.speed)

    def _begin(self, application: ApplicationId, target: Target) -> Run | None:
        """The run, marked as running; None if it was halted meanwhile."""
        reindexing = self._repository.get(application)
        run = reindexing.runs.get(target)
        if run is None or not reindexing.enabled or not run.speed:
            return None
        if run.state == "running":
            return run
        started_ms = run.started_ms or self._now_ms()
        begun = replace(run, state="running", started_ms=started_ms, ended_ms=0, message="")
        kept = self._change(application, target, begun)
        if kept is None or kept.state != "running":
            return None
        _log.info("Reindexing '%s' in '%s' of %s: %s", target[1], target[0], application, run.cause or "asked for")
        return kept

    def _advance(self, item: _Work, run: Run, answer: ReindexedChunk) -> Run | None:
        if answer.token is not None:
            progress = min(max(answer.progress, 0.0), 1.0)
            return self._change(*item, replace(run, progress=progress, token=answer.token))
        _log.info("Reindexed '%s' in '%s' of %s", item[1][1], item[1][0], item[0])
        done = replace(run, state="successful", progress=1.0, token=b"", ended_ms=self._now_ms())
        return self._change(*item, done)

    def _handle_failure(self, item: _Work, run: Run, error: Exception) -> None:
        """Tries again soon after an error that passes; after others, or too many, the run failed: tries much later."""
        tries = self._tries[item] = self._tries.get(item, 0) + 1
        if isinstance(error, Overload | Timeout | NotFound) and tries < limits.REINDEX_TRIES:
            self._put_off(item, limits.REINDEX_AGAIN_SECONDS)
            return
        del self._tries[item]
        message = str(error) or type(error).__name__
        _log.warning("Reindexing '%s' in '%s' of %s failed: %s", item[1][1], item[1][0], item[0], message)
        self._change(*item, replace(run, state="failed", message=message, ended_ms=self._now_ms()))
        self._put_off(item, limits.REINDEX_RETRY_SECONDS)

    def _change(self, application: ApplicationId, target: Target, after: Run) -> Run | None:
        """Stores the new state of a run, with the speed and the halt that somebody requested meanwhile.

        None: the run is no more, or nothing is stored any more.
        """
        if self._has_given_up:
            return None

        def changed(reindexing: ApplicationReindexing) -> ApplicationReindexing:
            current = reindexing.runs.get(target)
            if current is None:
                return reindexing
            kept = replace(after, speed=current.speed)
            return reindexing.with_run(target, kept if reindexing.enabled and kept.speed else kept.as_halted())

        return self._repository.update(application, changed).runs.get(target)

    def _put_off(self, item: _Work, seconds: float) -> None:
        self._due_ns[item] = self._environment.monotonic_ns() + int(seconds * 1e9)

    def _now_ms(self) -> int:
        return self._environment.time_ns() // 1_000_000
