"""The node of a graph of tensors, and the block of hits that it is computed for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, Protocol

from paperwasp.tensor.batch import Labels, TensorBatch
from paperwasp.tensor.kept import KeptTensors
from paperwasp.tensor.types import TensorType


class Block(Protocol):
    """Hits that values are computed for. A `MatchContext` of `paperwasp.features` is one."""

    @property
    def hits(self) -> int: ...

    @property
    def labels(self) -> Labels:
        """Of all tensors of the query."""

    @property
    def known(self) -> dict[object, Any]:
        """What has been worked out: the name of a feature → its column; a node → its batch."""


Work = Callable[[Block], TensorBatch]


class Hangs(IntEnum):
    """What a value hangs on."""

    NOTHING = 0
    QUERY = 1
    HIT = 2


@dataclass(eq=False, slots=True, repr=False)
class TensorNode:
    """One tensor for each hit of a block: of a type, worked by `work`."""

    name: str
    """Canonical within its plan."""
    type: TensorType
    """Where the sizes of dimensions are open, batches say them."""
    key: tuple[Any, ...]
    operands: tuple[TensorNode, ...]
    work: Work
    hangs: Hangs
    levels: frozenset[int]
    """The levels of the functions whose names it hangs on."""
    folded: TensorBatch | None = None
    """Its tensor, where that is known before any query."""
    kept: Callable[[Any], KeptTensors] | None = None
    """What tells of a block where the tensors stand, if they stand somewhere."""

    def __repr__(self) -> str:
        """Without what it is made of: a graph may be too large to be told."""
        return f"<{self.name}: {self.type}>"
