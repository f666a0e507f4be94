"""What readers know of a graph over the vectors of a tensor column.

A node of the graph is an element of the column: its number is the place of its cells. The graph keeps no cells itself.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.storage.attributes.column import Bitmap, Lids


class GraphView(Protocol):
    """Searches a graph beside the writer that changes it."""

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
        """Return the lids of about the `count` nearest documents, the distance of the nearest vector of each, and the
        number of that node; the nearest first.

        `cells`: (elements, cells of a vector), as the reader's view has them; nodes beyond its end are skipped, and so
        are documents with lids from `limit` on. `query`: as `attribute.distances` makes it. `explore`: how many of the
        nearest nodes are kept in sight, at least `count`. `accept`: the documents that may be found; None: all.
        `threshold`: the greatest distance, as `core.distances` computes it. `filter_first`: whether distances are only
        computed to nodes that `accept` has, once few of those near the query are; then `exploration`, from 0 to 1, says
        how far beyond the neighbours of a node others are looked for. `slack`: how much farther than the last that is
        kept in sight, as a share of its distance, nodes are still followed. `end_ns`: the moment on the monotonic clock
        from which on only what was met until then is found; 0: there is none.
        """
        ...

    def for_kernels(self, cells: NDArray[Any]) -> tuple[_core.Hnsw, NDArray[Any]] | None:
        """Return the graph and the cells that it is of, for kernels that search it themselves; None where not all
        vectors are in it."""
        ...
