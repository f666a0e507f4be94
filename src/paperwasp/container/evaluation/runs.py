"""Evaluations that wait for a thread, and never on the event loop.

A thread that is free takes what waits for the function, in the order of the requests: of networks that may take several
rows in one run all of it, of others one request. Nobody waits for others to come.
"""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections import deque
from collections.abc import Mapping, Sequence
from typing import Final

from paperwasp import limits
from paperwasp.application.model_evaluation.binding import bound_values
from paperwasp.application.model_evaluation.functions import Function, Values
from paperwasp.base.daemon_threads import DaemonThreads
from paperwasp.base.records import dataclass
from paperwasp.container.evaluation.rendering import PARAMETER, check_form, rendered
from paperwasp.core.budget import budget
from paperwasp.core.clock import OutOfTime, end_work_at
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Overload, PaperwaspError, Timeout, without_frames

_THREADS: Final = max(2, os.cpu_count() or 1)
Outcome = bytes | Exception
"""The body of an answer, or why there is none."""


@dataclass(slots=True, eq=False)
class _Evaluation:
    """What one request waits for."""

    texts: Mapping[str, str]
    answer: asyncio.Future[bytes]


class EvaluationRuns:
    """The threads that evaluate, made when they are needed. Asked on one event loop."""

    def __init__(self, threads: int = _THREADS, waiting: int = limits.MODEL_EVALUATIONS_WAITING) -> None:
        """`waiting`: how many requests may wait, or be evaluated, before the rest is refused."""
        self._pool = DaemonThreads(threads, "model-evaluation")
        self._most = waiting
        self.count = 0
        """Requests that wait, or are evaluated."""
        self.memory_bytes = limits.QUERY_MEMORY_BYTES
        """What the tensors of one evaluation may take."""
        self._waiting: dict[Function, deque[_Evaluation]] = {}
        self._taking = threading.Lock()

    async def evaluate(self, function: Function, texts: Mapping[str, str]) -> bytes:
        """The body of the answer. Errors: those of binding, evaluating and rendering; Overload; Timeout."""
        if self.count >= self._most:
            raise Overload(f"Rejecting execution due to overload: {self.count} requests already wait for evaluation")
        loop = asyncio.get_running_loop()
        evaluation = _Evaluation(texts, loop.create_future())
        with self._taking:
            self._waiting.setdefault(function, deque()).append(evaluation)
        self.count += 1
        try:
            self._pool.submit(self._work, function, loop)
            return await evaluation.answer
        finally:
            self.count -= 1

    def _work(self, function: Function, loop: asyncio.AbstractEventLoop) -> None:
        """Evaluates what waits for the function: nothing, where another thread has taken it."""
        taken = self._take(function)
        if not taken:
            return
        end_work_at(time.monotonic_ns() + limits.MODEL_EVALUATION_SECONDS * 10**9)
        budget.begin(self.memory_bytes)
        try:
            outcomes = outcomes_of(function, [each.texts for each in taken])
        except OutOfTime:
            seconds = limits.MODEL_EVALUATION_SECONDS
            outcomes = [Timeout(f"The evaluation took more than {seconds} s")] * len(taken)
        except PaperwaspError as error:
            outcomes = [without_frames(error)] * len(taken)
        except Exception as error:  # a defect is the answer to those who asked
            outcomes = [error] * len(taken)
        finally:
            end_work_at(0)
            budget.begin(0)
        try:
            loop.call_soon_threadsafe(_settle, taken, outcomes)
        except RuntimeError:
            return  # the loop is closed: nobody waits any more

    def _take(self, function: Function) -> Sequence[_Evaluation]:
        with self._taking:
            waiting = self._waiting.get(function)
            if not waiting:
                return ()
            taken = [waiting.popleft() for _ in range(min(len(waiting), function.most_rows))]
            if not waiting:
                del self._waiting[function]
            return taken


def outcomes_of(function: Function, requests: Sequence[Mapping[str, str]]) -> list[Outcome]:
    """What is answered to each request, given its parameters. Errors: OutOfTime."""
    bound = [_bind(function, texts) for texts in requests]
    results = iter(function.evaluate_all([each[0] for each in bound if not isinstance(each, PaperwaspError)]))
    return [each if isinstance(each, PaperwaspError) else _render(next(results), each[1]) for each in bound]


def _render(result: Tensor | PaperwaspError, form: str | None) -> Outcome:
    return result if isinstance(result, PaperwaspError) else rendered(result, form)


def _bind(function: Function, texts: Mapping[str, str]) -> tuple[Values, str | None] | PaperwaspError:
    """The values, and the form of the answer."""
    try:
        return bound_values(function, texts), check_form(texts.get(PARAMETER))
    except PaperwaspError as error:
        return error


def _settle(evaluations: Sequence[_Evaluation], outcomes: Sequence[Outcome]) -> None:
    for evaluation, outcome in zip(evaluations, outcomes, strict=True):
        if evaluation.answer.done():
            continue
        if isinstance(outcome, bytes):
            evaluation.answer.set_result(outcome)
        else:
            evaluation.answer.set_exception(outcome)
