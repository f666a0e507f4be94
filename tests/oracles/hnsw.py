"""The plain NumPy twin of core/vectors/hnsw.cpp: the same calls, answered by looking at every vector.

It is the oracle and the documentation of the graph. A graph finds nearly all that this finds; what both find has the
same distances.
"""

from __future__ import annotations

from typing import Any, Final, Self

import numpy as np
from numpy.typing import NDArray

from paperwasp.storage.attributes.vector_graph import METRICS
from tests.oracles.distances import distances_to

CELL_TYPES: Final = ("float64", "float32", "uint16", "int8")
"""By their numbers in the kernel; uint16 are bfloat16, the upper halves of floats."""

Cells = NDArray[Any]
Numbers = NDArray[np.uint32]


class PlainHnsw:
    """Nearest neighbours among the rows of a column that were added and not removed since."""

    def __init__(self, metric: int, cell_type: int, dimensions: int, max_links: int, explore_at_insert: int) -> None:
        self._settings = (metric, cell_type, dimensions, max_links, explore_at_insert)
        self._owners: dict[int, int] = {}
        self._metric = METRICS[metric]

    def add(self, cells: Cells, nodes: Numbers, owners: Numbers, threads: int = 1) -> None:
        """Rows `nodes` of the column, each a vector of the document `owners[i]`."""
        self._owners.update(zip(nodes.tolist(), owners.tolist(), strict=True))

    def remove(self, cells: Cells, nodes: Numbers) -> None:
        """Rows that are found no more; numbers that are not there are passed over."""
        for node in nodes.tolist():
            self._owners.pop(node, None)

    def search(
        self,
        cells: Cells,
        query: NDArray[Any],
        count: int,
        explore: int,
        accept: NDArray[np.uint64] | None,
        limit: int,
        threshold: float,
        filter_first: bool,
        exploration: float,
        slack: float,
        end_ns: int = 0,
    ) -> tuple[Numbers, NDArray[np.float64], Numbers]:
        """The documents that are nearest to the query, the nearest first: their numbers, distances and nearest nodes.

        Distances are those of `least_distances`. Documents are below `limit`, in the bitmap `accept`, and no farther
        than `threshold`; each is found once. The graph's other arguments change how it looks, not what is sought. At
        `end_ns` of the monotonic clock (0: never) a graph ends with what it has met; here all is found.
        """
        owners, found, nodes = self._hits(cells, query, accept, limit, threshold)
        best = np.sort(np.unique(owners, return_index=True)[1])[:count]
        return owners[best], found[best], nodes[best]

    def renumbered(self, cells: Cells, numbers: Numbers, owners: Numbers) -> Self:
        """One whose node i is node numbers[i] of this one and belongs to owners[i]; others are left out."""
        made = type(self)(*self._settings)
        pairs = enumerate(zip(numbers.tolist(), owners.tolist(), strict=True))
        made._owners = {i: owner for i, (number, owner) in pairs if number in self._owners}
        return made

    @property
    def nodes(self) -> int:
        """How many can be found."""
        return len(self._owners)

    def _hits(
        self, cells: Cells, query: NDArray[Any], accept: NDArray[np.uint64] | None, limit: int, threshold: float
    ) -> tuple[Numbers, NDArray[np.float64], Numbers]:
        """Of all that may be found, documents, distances and nodes, in the order of distances, documents and nodes."""
        nodes = np.array([*self._owners], np.uint32)
        owners = np.array([*self._owners.values()], np.uint32)
        may = (nodes < len(cells)) & (owners < limit)
        if accept is not None:
            flags = np.unpackbits(accept.view(np.uint8), bitorder="little")
            may &= owners < len(flags)
            may[may] = flags[owners[may]]
        owners, nodes = owners[may], nodes[may]
        vectors = cells[nodes]
        if cells.dtype == np.uint16:
            vectors = (vectors.astype(np.uint32) << np.uint32(16)).view(np.float32)
        found = distances_to(self._metric, query, vectors)
        order = np.lexsort((nodes, owners, found))
        order = order[np.isfinite(found[order]) & (found[order] <= threshold)]
        return owners[order], found[order], nodes[order]
