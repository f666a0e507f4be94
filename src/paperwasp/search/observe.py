"""What is noted while a query is answered: a trace, profiles of its time, and the documents whose counters change.

Matching and ranking report to one `Observer` for each document type. A query that asks for nothing has `NO_OBSERVER`,
which takes no notice.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.content.records import Mutate
from paperwasp.ranking import CompiledProfile
from paperwasp.schema.model import Mutation
from paperwasp.search.mutations import Touched
from paperwasp.search.operators import Operator, SearchSpace
from paperwasp.search.operators.field_match import Lids
from paperwasp.search.profiling import Profilers
from paperwasp.search.query import Profiling
from paperwasp.search.trace import QueryTrace

_NOTHING: Final = nullcontext()


class Observer:
    """Takes no notice of anything."""

    is_tracing: bool = False
    """Whether steps and tags are noted."""

    def profile(self, profile: CompiledProfile) -> CompiledProfile:
        """Return the rank profile to run: the same, or one whose features report the time that they take."""
        return profile

    def step(self, name: str, by: str) -> None:
        """Note whether a step of the query was done by a kernel, which is named, or by the general code."""

    def tag(self, name: str, **values: object) -> None:
        """Note the values of a phase that is over."""

    def task(self, phase: str, name: str, count: int = 1) -> AbstractContextManager[None]:
        """Return a context within which a task of a phase is done this number of times."""
        return _NOTHING

    def wants(self, *phases: str) -> bool:
        """Return whether it matters which documents reach any of these phases."""
        return False

    def reach(self, phase: str, lids: Iterable[Lids]) -> None:
        """Note the documents that reached a phase, in any number of arrays, instead of those noted of it before."""

    def begin(self, operator: Operator, space: SearchSpace, profile_name: str) -> None:
        """Note that the documents of a type are searched now."""

    def end(self, operator: Operator, space: SearchSpace) -> None:
        """Note that the documents of a type are ranked."""

    def mutations(self, document_type: str, gids: NDArray[np.uint8]) -> tuple[Mutate, ...]:
        """Return what the rank profile changes in the documents that reached its phases. `gids`: by lid."""
        return ()


NO_OBSERVER: Final = Observer()


def observer_of(trace: QueryTrace | None, profiling: Profiling, mutations: Sequence[Mutation]) -> Observer:
    """Return the observer of a query's documents of one type. `mutations`: of its rank profile."""
    if trace is None and not mutations:
        return NO_OBSERVER
    profilers = Profilers(trace.env, profiling) if trace is not None and profiling else None
    return TypeObserver(trace, profilers, Touched(mutations) if mutations else None)


class TypeObserver(Observer):
    """Notes what a query asks for, for the documents of one type. On one thread at a time."""

    def __init__(self, trace: QueryTrace | None, profilers: Profilers | None, touched: Touched | None) -> None:
        self._trace = trace
        self._profilers = profilers
        self._touched = touched
        self._steps: dict[str, str] = {}
        self.is_tracing = trace is not None

    def profile(self, profile: CompiledProfile) -> CompiledProfile:
        return profile if self._profilers is None else self._profilers.profile(profile)

    def step(self, name: str, by: str) -> None:
        self._steps[name] = by

    def tag(self, name: str, **values: object) -> None:
        if self._trace is not None:
            self._trace.tag(name, **values)

    def task(self, phase: str, name: str, count: int = 1) -> AbstractContextManager[None]:
        profiler = None if self._profilers is None else self._profilers.of(phase)
        return _NOTHING if profiler is None else profiler.task(name, count)

    def wants(self, *phases: str) -> bool:
        return self._touched is not None and self._touched.wants(*phases)

    def reach(self, phase: str, lids: Iterable[Lids]) -> None:
        if self._touched is not None and self._touched.wants(phase):
            self._touched.note(phase, np.concatenate([np.zeros(0, np.uint32), *lids]))

    def begin(self, operator: Operator, space: SearchSpace, profile_name: str) -> None:
        trace = self._trace
        if trace is None:
            return
        document_type = space.schema.document.name
        trace.begin(document_type, self._steps)
        trace.tag("query_setup", document_type=document_type, documents=space.documents, profile=profile_name)
        if trace.tells_plan:
            trace.tag("query_execution_plan", optimized=trace.explain(operator, space))

    def end(self, operator: Operator, space: SearchSpace) -> None:
        if self._trace is not None and self._profilers is not None:
            self._profilers.matching(operator, space)
            self._trace.tag("query_execution", threads=[{"traces": self._profilers.report()}])

    def mutations(self, document_type: str, gids: NDArray[np.uint8]) -> tuple[Mutate, ...]:
        return () if self._touched is None else tuple(self._touched.operations(document_type, gids))
