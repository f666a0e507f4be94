"""The node of a graph of tensors, and the block of hits that it is computed for."""

from __future__ import annotations

from collections.abc import Callable
from enum import IntEnum
from typing import Any, Protocol

from paperwasp.base.records import dataclass
from paperwasp.document.tensor.batch import Labels, TensorBatch
from paperwasp.document.tensor.kept import KeptTensors, StoredTensors
from paperwasp.document.tensor.types import TensorType
from paperwasp.ranking.program import FindBest


class Block(Protocol):
    """Hits that values are computed for. The `Block` of `paperwasp.search.features` is one."""

    @property
    def hits(self) -> int: ...

    @property
    def labels(self) -> Labels:
        """The labels of all tensors of the query."""

    @property
    def known(self) -> dict[object, Any]:
        """The values computed so far: the name of a feature → its column; a node → its batch."""


Work = Callable[[Block], TensorBatch]


class Dependence(IntEnum):
    """The inputs that a node or feature depends on; one that depends on the hit may depend on the query as well."""

    NOTHING = 0
    QUERY = 1
    HIT = 2


@dataclass(eq=False, slots=True, repr=False)
class TensorNode:
    """One tensor for each hit of a block, of one type, computed by `work`."""

    name: str
    """Canonical within its graph."""
    type: TensorType
    """Where it leaves the sizes of dimensions open, the batches have them."""
    key: tuple[Any, ...]
    operands: tuple[TensorNode, ...]
    work: Work
    dependence: Dependence
    levels: frozenset[int]
    """The levels of the functions whose names it depends on."""
    cells: int
    """About how many cells are computed for one hit, those of what it depends on included."""
    folded: TensorBatch | None = None
    """Its tensor, where that is known before any query."""
    kept: Callable[[Any], KeptTensors] | None = None
    """Gives the tensors of a block in place, without a copy; None: they are stored nowhere."""
    stored: Callable[[Any], StoredTensors | None] | None = None
    """Gives those of all documents in the same way; None, of either: not these."""
    best: FindBest | None = None
    """Finds the best hits by the number that the tensor is; None: all have to be scored."""

    def __repr__(self) -> str:
        """Without its operands: a graph may be too large to be shown."""
        return f"<{self.name}: {self.type}>"
