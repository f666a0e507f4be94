"""Computing programs and tensors for one block of hits: each feature and each node of tensors once.

The function of a `map_subspaces`, or the expression of a generator, is computed for many cells at once: these are the
hits of an inner block, in which the names that it binds have values. What does not depend on these names is computed in
the block around it, and repeated.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, Protocol

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.core.clock import check_time
from paperwasp.document.tensor import algebra
from paperwasp.document.tensor.batch import KeptTensors, Labels, StoredTensors, TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.ranking.program import Feature, FindBest, Floats, Program


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


class TensorNode(Struct, eq=False):
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


class InnerBlock:
    """The block of a function that is computed for many values at once.

    `level`: how deep it is within others, from 1. `values`: the columns and batches of the names it binds, by number.
    `owners`: for each of its hits that of `outer` which it belongs to. Without `outer` nothing in it depends on other
    hits.
    """

    def __init__(
        self,
        level: int,
        hits: int,
        values: Mapping[int, Floats | TensorBatch],
        labels: Labels,
        outer: Block | None = None,
        owners: NDArray[np.int64] | None = None,
    ) -> None:
        self.level = level
        self.hits = hits
        self.values = values
        self.labels = labels
        self.outer = outer
        self.owners = owners
        self.known: dict[object, Any] = {}


class BoundNumber:
    """A feature of a scalar program: the value of a name that a function binds. A number for each hit of its block."""

    bm25_field = None
    query_name = None

    def __init__(self, level: int, number: int) -> None:
        self.name = f"@{level}.{number}"
        self.levels = frozenset((level,))
        self._level = level
        self._number = number

    def compute(self, context: Any) -> Floats:
        values = bound_block(context, self._level).values[self._number]
        assert not isinstance(values, TensorBatch)
        return values


def bound_block(block: Any, level: int) -> InnerBlock:
    """The inner block that binds the names of a level: `block` itself, as others ask what is around them."""
    assert isinstance(block, InnerBlock)
    assert block.level == level
    return block


def levels_of(feature: Feature) -> frozenset[int]:
    """The levels of the functions whose names a feature depends on."""
    levels: frozenset[int] = getattr(feature, "levels", _NO_LEVELS)
    return levels


_NO_LEVELS: frozenset[int] = frozenset()


def column(feature: Feature, block: Block) -> Floats:
    """One float64 per hit, or a single one for all."""
    values: Floats | None = block.known.get(feature.name)
    if values is None:
        if isinstance(block, InnerBlock) and block.outer is not None and block.level not in levels_of(feature):
            outer = column(feature, block.outer)
            values = outer if len(outer) == 1 else outer[block.owners]
        else:
            values = np.ascontiguousarray(feature.compute(block), np.float64)
        block.known[feature.name] = values
    return values


def numbers(program: Program, block: Block) -> Floats:
    """One float64 per hit; a single one if it is the same for all."""
    if not block.hits:
        return np.zeros(0)
    columns = [column(feature, block) for feature in program.features]
    return program.evaluate(columns, max(map(len, columns), default=1))


def whole_column(program: Program, block: Block) -> Floats:
    """One float64 per hit."""
    return program.evaluate([column(feature, block) for feature in program.features], block.hits)


def batch(node: TensorNode, block: Block) -> TensorBatch:
    """The tensor of each hit, or a single one. Raises OutOfTime, and TooLarge where the block is too large for it."""
    found: TensorBatch | None = node.folded or block.known.get(node)
    if found is None:
        check_time()
        if isinstance(block, InnerBlock) and block.outer is not None and block.level not in node.levels:
            outer = batch(node, block.outer)
            assert block.owners is not None
            found = algebra.taken(outer, block.owners)
        else:
            with np.errstate(all="ignore"):
                found = node.work(block)
        block.known[node] = found
    return found


def kept(node: TensorNode, block: Block) -> KeptTensors:
    """The tensors of a node in place, without a copy, if nothing has gathered them yet. Raises as `batch`."""
    if node.kept is None or isinstance(block, InnerBlock) or node in block.known:
        return KeptTensors.of(batch(node, block))
    check_time()
    return node.kept(block)
