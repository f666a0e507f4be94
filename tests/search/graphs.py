"""A stand-in for the graph over a field's vectors: it compares all, and notes what it is asked."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.content.views.view import View
from paperwasp.storage.attributes.column import Bitmap, Lids
from paperwasp.storage.attributes.rows import split
from paperwasp.storage.attributes.tensor import NO_LABEL, TensorView
from tests.oracles.distances import distance


@dataclass
class Asked:
    """One search."""

    count: int
    explore: int
    accepted: int | None
    threshold: float
    filter_first: bool
    exploration: float
    slack: float
    end_ns: int


@dataclass
class ComparingGraph:
    """Finds just what is nearest, as a graph would that is explored as a whole."""

    column: TensorView
    metric: str
    asked: list[Asked] = field(default_factory=list)

    def search(
        self,
        cells: NDArray[Any],
        query: NDArray[Any],
        count: int,
        explore: int,
        accept: Bitmap | None,
        limit: int,
        threshold: float,
        filter_first: bool,
        exploration: float,
        slack: float,
        end_ns: int = 0,
    ) -> tuple[Lids, NDArray[np.float64], NDArray[np.uint32]]:
        accepted = None if accept is None else int(np.unpackbits(accept.view(np.uint8)).sum())
        self.asked.append(Asked(count, explore, accepted, threshold, filter_first, exploration, slack, end_ns))
        starts, lengths = split(self.column.rows[:limit])
        found = []
        for lid, (start, length) in enumerate(zip(starts.tolist(), lengths.tolist(), strict=True)):
            if accept is not None and not int(accept[lid >> 6]) >> (lid & 63) & 1:
                continue
            if self.column.labels.size and length and self.column.labels[start, 0] == NO_LABEL:
                continue
            apart = [(distance(self.metric, query, cells[node]), node) for node in range(start, start + length)]
            if apart and min(apart)[0] <= threshold:
                found.append((*min(apart), lid))
        best = sorted(found, key=lambda each: (each[0], each[2]))[:count]
        distances, nodes, lids = zip(*best, strict=True) if best else ((), (), ())
        return np.array(lids, np.uint32), np.array(distances, np.float64), np.array(nodes, np.uint32)

    def for_kernels(self, cells: NDArray[Any]) -> None:
        """It is none that kernels know."""


def give_graph(view: View, document_type: str, name: str, metric: str = "euclidean") -> ComparingGraph:
    """Give a column of a view such a graph."""
    column = view.columns[document_type, name]
    assert isinstance(column, TensorView)
    column.graph = graph = ComparingGraph(column, metric)
    return graph
