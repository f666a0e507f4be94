"""Texts of all threads that wait, run together: a model works on many in little more time than on few.

Nobody waits for others to come. Whoever finds no run under way runs what waits; what comes meanwhile is the next run.
The texts of one run are of about the same length, since each is padded to the longest. Queries have a lane of their
own, so that none waits behind documents. What was made of a text is remembered.

What a run fails with is the error of that text alone which causes it: each is tried again by itself.
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator, Sequence
from typing import Generic, TypeVar

from paperwasp import embedding_limits

Item = TypeVar("Item")
Made = TypeVar("Made")


class Lane(Generic[Item, Made]):
    """One run at a time, of what all threads wait for."""

    def __init__(
        self,
        run: Callable[[Sequence[Item]], Sequence[Made]],
        length: Callable[[Item], int],
        batch_length: int = embedding_limits.BATCH_TOKENS,
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
        self._changed = threading.Condition()
        self._waiting: list[_Job[Item, Made]] = []
        self._is_running = False

    def make(self, items: Sequence[Item]) -> list[Made]:
        """One value of each item. Errors: the first that `run` raises for one of them."""
        jobs = [_Job[Item, Made](item) for item in items]
        with self._changed:
            self._waiting.extend(jobs)
        while not self._is_done(jobs):
            self._run_waiting()
        return [job.value() for job in jobs]

    def _is_done(self, jobs: Sequence[_Job[Item, Made]]) -> bool:
        """Waits until all jobs are done, or nobody runs what waits."""
        with self._changed:
            self._changed.wait_for(lambda: not self._is_running or all(job.is_done for job in jobs))
            if all(job.is_done for job in jobs):
                return True
            self._is_running = True
            return False

    def _run_waiting(self) -> None:
        with self._changed:
            taken, self._waiting = self._waiting, []
        try:
            for batch in self._batches(taken):
                self._run_batch(batch)
                with self._changed:
                    self._changed.notify_all()
        finally:
            with self._changed:
                self._waiting = [job for job in taken if not job.is_done] + self._waiting
                self._is_running = False
                self._changed.notify_all()

    def _batches(self, jobs: Sequence[_Job[Item, Made]]) -> Iterator[list[_Job[Item, Made]]]:
        """Jobs of about the same length, together no more than a run should have."""
        batch: list[_Job[Item, Made]] = []
        batch_start = 0
        for length, job in sorted(((self._length(job.item), job) for job in jobs), key=lambda pair: pair[0]):
            if batch and ((len(batch) + 1) * length > self._batch_length or length > _padded(batch_start)):
                yield batch
                batch = []
            if not batch:
                batch_start = length
            batch.append(job)
        if batch:
            yield batch

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


def _padded(length: int) -> float:
    """How long a text may be that is run with one of that length."""
    return length * embedding_limits.PADDING + embedding_limits.PADDING_TOKENS


class _Job(Generic[Item, Made]):
    """One item and what becomes of it."""

    __slots__ = ("_error", "_value", "is_done", "item")

    def __init__(self, item: Item) -> None:
        self.item = item
        self.is_done = False
        self._value: Made | None = None
        self._error: Exception | None = None

    def finish(self, value: Made) -> None:
        self._value = value
        self.is_done = True

    def fail(self, error: Exception) -> None:
        self._error = error
        self.is_done = True

    def value(self) -> Made:
        if self._error is not None:
            raise self._error
        assert self._value is not None
        return self._value


class Remembered(Generic[Made]):
    """What was made of the texts that came last, up to a number of bytes. Any thread."""

    def __init__(self, size_of: Callable[[Made], int], size_bytes: int = embedding_limits.CACHE_BYTES) -> None:
        self._size_of = size_of
        self._most_bytes = size_bytes
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, tuple[Made, int]] = OrderedDict()
        self.size_bytes = 0

    def get(self, key: Hashable) -> Made | None:
        with self._lock:
            found = self._made.get(key)
            if found is None:
                return None
            self._made.move_to_end(key)
            return found[0]

    def put(self, key: Hashable, made: Made, text_length: int) -> None:
        """`text_length`: in characters, of which each may take four bytes."""
        size_bytes = self._size_of(made) + 4 * text_length + embedding_limits.CACHE_ENTRY_BYTES
        if size_bytes > self._most_bytes:
            return
        with self._lock:
            if key in self._made:
                self.size_bytes -= self._made.pop(key)[1]
            self._made[key] = made, size_bytes
            self.size_bytes += size_bytes
            while self.size_bytes > self._most_bytes:
                self.size_bytes -= self._made.popitem(last=False)[1][1]
