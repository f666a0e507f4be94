"""Builds graphs over vectors that are missing, behind the writer: of an index that is new, or has other settings.

A chore: each call adds some vectors of what is published. When all are in, the writer adds what has come since, and
readers see the graph from the next view on; until then all vectors are compared. Documents that are fed meanwhile wait
for none of this. What is built is saved with checkpoints, and a restart goes on with it.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.content.fault import Fault
from paperwasp.content.log.operation_queue import OperationQueue
from paperwasp.content.views.current_state import CurrentState
from paperwasp.content.views.view import View
from paperwasp.storage.attributes.tensor import TensorColumn, TensorView, UnbuiltGraph
from paperwasp.storage.attributes.vector_graph import VectorGraph

_LOG: Final = logging.getLogger("paperwasp.content")

Key = tuple[str, str]
"""Document type and field."""


class GraphBuilding:
    """The chore of a content node. One thread; `finish` is left to the writer's."""

    def __init__(self, current: CurrentState, operations: OperationQueue, fault: Fault) -> None:
        self._current = current
        self._operations = operations
        self._fault = fault
        self._begun: VectorGraph | None = None
        self._begun_s = 0.0
        self._step = limits.GRAPH_FIRST_VECTORS

    def __call__(self) -> float:
        """Add the next vectors; return the seconds until more are due."""
        view = self._current.reader.view()
        key, unbuilt = next(unbuilt_graphs(view), (None, None))
        if key is None or unbuilt is None:
            self._begun = None
            return limits.GRAPH_SECONDS
        begun_s = time.monotonic()
        if unbuilt.graph is not self._begun:
            self._begun, self._begun_s, self._step = unbuilt.graph, begun_s, limits.GRAPH_FIRST_VECTORS
            _LOG.info("Building the graph of %s.%s", *key)
        if unbuilt.build(_flags(view.live, view.limit), self._step):
            self._operations.run(lambda: self._finish(key, unbuilt.graph))
        elapsed_s = time.monotonic() - begun_s
        self._step = max(1, int(self._step * min(2.0, limits.GRAPH_STEP_SECONDS / max(elapsed_s, 1e-6))))
        return 0.0

    def _finish(self, key: Key, graph: VectorGraph) -> None:
        if self._fault.reason is not None:
            return  # the state is of no moment of the log, and nobody may see it
        state = self._current.state
        column = state.columns.get(key)
        if not isinstance(column, TensorColumn) or column.graph is not graph:
            return
        state.settle()
        if column.finish_graph(_flags(state.live.copy(state.limit), state.limit)):
            self._current.publish()
            elapsed_s = time.monotonic() - self._begun_s
            _LOG.info("The graph of %s.%s was built of %d vectors in %.1f s", *key, graph.nodes, elapsed_s)


def unbuilt_graphs(view: View) -> Iterator[tuple[Key, UnbuiltGraph]]:
    """The graphs that are to be built, of the columns of a view."""
    for key, column in view.columns.items():
        if isinstance(column, TensorView) and column.unbuilt is not None:
            yield key, column.unbuilt


def _flags(words: NDArray[np.uint64], limit: int) -> NDArray[np.bool_]:
    return np.unpackbits(words.view(np.uint8), count=limit, bitorder="little").view(np.bool_)
