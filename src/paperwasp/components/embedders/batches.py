"""Runs of a model on the texts of all threads that wait: many take little more time than few.

Nobody waits for others to come: where no run is under way, what waits is run. The texts of a run are of about the same
length, since each is padded to the longest. Runs go from short texts to long ones, and begin with the shortest again:
what comes meanwhile and is longer than the last run's texts goes with those of its length, and what is not waits for
the next round. So runs are as full as they would be if all came at once, and a text waits for two rounds at most.
Queries have a lane of their own, so that none waits behind documents.

Runs are on a thread of the lane. Each caller has its values as soon as its own texts are done, and waits no longer than
its time: a run that is under way goes on for the others, and texts whose caller has left are in no later one.

A run that fails is tried again with each text by itself, so that the error is that of the text alone which causes it.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

from paperwasp import limits
from paperwasp.base.threads import ThreadPool

Item = TypeVar("Item")
Made = TypeVar("Made")


class Lane(Generic[Item, Made]):
    """One run at a time, of what all threads wait for."""

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Made]],
        length: Callable[[Item], int],
        batch_length: int = limits.embedding.BATCH_TOKENS,
        *,
        tries_alone: bool = True,
    ) -> None:
        """`run` makes one value of each item, in their order. `length`: what padding adds to, such as tokens.

        `batch_length`: of one run, padding included. `tries_alone`: whether the items of a run that failed are tried
        again, each by itself.
        """
        self._run = run
        self._length = length
        self._batch_length = batch_length
        self._tries_alone = tries_alone
        self._lock = threading.Lock()
        self._waiting: list[_Job[Item, Made]] = []
        self._is_running = False
        self._thread = ThreadPool("model-run", 1)

    def make(self, items: Sequence[Item], timeout_seconds: float = math.inf) -> list[Made]:
        """One value of each item.

        Errors: the first that `run` raises for one of them; TimeoutError; RuntimeError where no thread can be made.
        """
        if not items:
            return []
        waiter = _Waiter(len(items))
        jobs = [_Job[Item, Made](item, self._length(item), waiter) for item in items]
        with self._lock:
            if not self._is_running:
                self._thread.submit(self._run_waiting)  # which finds what waits when this lock is free
            self._is_running = True
            self._waiting.extend(jobs)
        if not waiter.wait(timeout_seconds):
            raise TimeoutError
        return [job.value() for job in jobs]

    def waiting(self) -> list[Item]:
        """The items that are not in a run yet."""
        with self._lock:
            return [job.item for job in self._waiting]

    def _run_waiting(self) -> None:
        """Runs what waits, until nothing does. On the lane's thread."""
        ahead: list[_Job[Item, Made]] = []
        """The rest of this round, by length."""
        behind: list[_Job[Item, Made]] = []
        reached = 0
        while True:
            came = self._take(bool(ahead or behind))
            longer = [job for job in came if job.length > reached]
            behind += [job for job in came if job.length <= reached]
            if not ahead and not longer:
                longer, behind = behind, []
            if longer:
                ahead = sorted([*ahead, *longer], key=_length_of)
            if not ahead:
                return
            batch = ahead[: self._batch_size(ahead)]
            ahead, reached = ahead[len(batch) :], batch[-1].length
            try:
                wanted = [job for job in batch if not job.waiter.has_left]
                if wanted:
                    self._run_batch(wanted)
            except BaseException as error:  # one that no run should raise
                for job in (*batch, *ahead, *behind):
                    if not job.is_done:
                        job.fail(RuntimeError(f"the run of the model was broken off: {error}"))
                ahead, behind = [], []

    def _take(self, goes_on: bool) -> list[_Job[Item, Made]]:
        """Take the jobs that came. If there are none, and nothing else to go on with, the next caller begins."""
        with self._lock:
            came, self._waiting = self._waiting, []
            self._is_running = goes_on or bool(came)
            return came

    def _batch_size(self, jobs: Sequence[_Job[Item, Made]]) -> int:
        """How many of the first, by length, are one run: as many as it should have, and of about the same length."""
        filled = 0
        for count, job in enumerate(jobs):
            padded = (count + 1) * job.length
            if count and (padded > self._batch_length or padded - filled - job.length > _most_padding(filled)):
                return count
            filled += job.length
        return len(jobs)

    def _run_batch(self, batch: Sequence[_Job[Item, Made]]) -> None:
        try:
            made = self._run([job.item for job in batch])
        except Exception as error:
            if len(batch) > 1 and self._tries_alone:
                for job in batch:
                    self._run_batch([job])
            else:
                for job in batch:
                    job.fail(error)
            return
        for job, value in zip(batch, made, strict=True):
            job.finish(value)


def _length_of(job: _Job[Item, Made]) -> int:
    return job.length


def _most_padding(filled: int) -> float:
    """How much padding a run may have whose texts are so long together."""
    return limits.embedding.PADDING_TOKENS + limits.embedding.PADDING_SHARE * filled


class _Waiter:
    """A caller that waits for its jobs."""

    __slots__ = ("_done", "_left", "has_left")

    def __init__(self, jobs_count: int) -> None:
        self._left = jobs_count
        self.has_left = False
        """Whether its time was over."""
        self._done = threading.Lock()
        self._done.acquire()

    def wait(self, seconds: float) -> bool:
        """Return whether all jobs were done in that time."""
        most = threading.TIMEOUT_MAX
        self.has_left = not self._done.acquire(timeout=max(0.0, seconds) if seconds < most else -1)
        return not self.has_left

    def count_down(self) -> None:
        """One of its jobs is done. On the lane's thread."""
        self._left -= 1
        if self._left == 0:
            self._done.release()


class _Job(Generic[Item, Made]):
    """One item and what becomes of it."""

    __slots__ = ("_error", "_value", "is_done", "item", "length", "waiter")

    def __init__(self, item: Item, length: int, waiter: _Waiter) -> None:
        self.item = item
        self.length = length
        self.waiter = waiter
        self.is_done = False
        self._value: Made | None = None
        self._error: Exception | None = None

    def finish(self, value: Made) -> None:
        self._value = value
        self._end()

    def fail(self, error: Exception) -> None:
        self._error = error
        self._end()

    def _end(self) -> None:
        self.is_done = True
        self.waiter.count_down()

    def value(self) -> Made:
        if self._error is not None:
            raise self._error
        assert self._value is not None
        return self._value
