"""Forests of decision trees: what xgboost and lightgbm models become, as arrays for the kernel in core/rank/forest.cpp.

A split asks for an expression of the rank profile, given as text: a rank feature or a function. How a split compares,
and where a missing value goes, is what Vespa makes of the model's file: see `xgboost_file` and `forest_file`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Literal

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core import _core
from paperwasp.core.clock import check_time
from paperwasp.ranking.scope import Scope, Source
from paperwasp.ranking.tree import RankNode

NODES: Final = np.dtype([("threshold", "<f8"), ("column", "<u4"), ("left", "<u4")])
"""A node goes right, to the child after its left one, where the value of its column is not below its threshold. A leaf
is its own left child."""
MISSING_RIGHT, MISSING_LEFT, MEMBER, MEMBER_OR_MISSING = range(4)
"""Kinds of columns: NaN is above all, or below all; below 0 for the members of a set and above for all others."""

Floats = NDArray[np.float64]
Link = Literal["", "sigmoid", "exp"]
"""The function of expressions that the sum goes through."""


class Split(Struct, frozen=True):
    """One decision: left where the value of `feature` is below the threshold, or one of `members`."""

    feature: str
    left: Any
    """A node in the form of the reader of the file."""
    right: Any
    missing_left: bool
    threshold: float = 0.0
    members: tuple[float, ...] | None = None


class Forest(Struct, frozen=True, eq=False, weakref=True):
    """Trees whose leaves are added up, as the kernel takes them (`core/rank/forest.cpp`)."""

    features: tuple[str, ...]
    """The texts of the expressions that splits ask for."""
    nodes: NDArray[np.uint64]
    """Two words a node: `NODES`."""
    values: Floats
    roots: NDArray[np.uint32]
    depths: NDArray[np.int32]
    columns: NDArray[np.int32]
    members: Floats
    base: float = 0.0
    """A number that is added to the sum."""
    link: Link = ""

    def sums(self, features: Sequence[Floats], rows: int) -> Floats:
        """The sum of the trees for each row. `features`: float64 each, of length `rows` or 1. Raises OutOfTime."""
        out = np.empty(rows)
        _core.forest_sum(
            self.nodes, self.values, self.roots, self.depths, self.columns, self.members, list(features), out
        )
        return out


_NO_FEATURE: Final = (0, MISSING_RIGHT, ("none",))
"""Column 0, which no split has."""


class ForestBuilder:
    """Builds a forest from trees, one at a time. Errors: ValueError where there are too many nodes or features."""

    def __init__(self) -> None:
        self._features: dict[str, int] = {}
        self._columns: dict[tuple[Any, ...], int] = {_NO_FEATURE: 0}
        self._done = 0
        """Nodes of the trees before, of which these are the bytes, so that objects are kept of one tree at a time."""
        self._done_nodes = bytearray()
        self._done_values = bytearray()
        self._nodes: list[tuple[float, int, int]] = []
        self._values: list[float] = []
        self._roots: list[int] = []
        self._depths: list[int] = []

    def tree(self, root: Any, read: Callable[[Any], Split | float]) -> None:
        """Adds the tree below `root`. `read` says of a node of the file what it is: a split, or the value of a leaf.

        Errors: those of `read`; OutOfTime when the time of the thread is over.
        """
        check_time()
        at, deepest = self._node(), 0
        self._roots.append(at)
        pending = deque([(at, root, 0)])
        while pending:
            at, node, depth = pending.popleft()
            deepest = max(deepest, depth)
            found = read(node)
            if isinstance(found, Split):
                left = self._node()
                self._node()
                self._nodes[at - self._done] = (
                    found.threshold if found.members is None else 0.0,
                    self._column(found),
                    left,
                )
                pending += [(left, found.left, depth + 1), (left + 1, found.right, depth + 1)]
            else:
                self._values[at - self._done] = found
        self._depths.append(deepest)
        self._end_tree()

    def _end_tree(self) -> None:
        self._done += len(self._nodes)
        self._done_nodes += np.array(self._nodes, NODES).tobytes()
        self._done_values += np.array(self._values, np.float64).tobytes()
        self._nodes.clear()
        self._values.clear()

    def _node(self) -> int:
        """A new one, which is a leaf until it is said to be none."""
        at = self._done + len(self._nodes)
        if at == limits.FOREST_NODES:
            raise ValueError(f"it has more than {limits.FOREST_NODES} nodes")
        self._nodes.append((np.inf, 0, at))
        self._values.append(0.0)
        return at

    def _column(self, split: Split) -> int:
        if len(split.feature) > limits.FOREST_FEATURE_CHARACTERS:
            excess = f"{len(split.feature)} characters, and has {limits.FOREST_FEATURE_CHARACTERS} at most"
            raise ValueError(f"the feature of a split, {split.feature[:40]!r}…, has {excess}")
        feature = self._features.setdefault(split.feature, len(self._features))
        if len(self._features) > limits.FOREST_FEATURES:
            raise ValueError(f"it asks for more than {limits.FOREST_FEATURES} features")
        kinds = (MISSING_RIGHT, MISSING_LEFT) if split.members is None else (MEMBER, MEMBER_OR_MISSING)
        key = (feature, kinds[split.missing_left], split.members)
        return self._columns.setdefault(key, len(self._columns))

    def forest(self, base: float = 0.0, link: Link = "") -> Forest:
        columns, members = [], list[float]()
        for feature, kind, own in self._columns:
            start = len(members)
            members += sorted(set(own or ())) if kind >= MEMBER else ()
            columns.append((feature, kind, start, len(members)))
        return Forest(
            tuple(self._features),
            np.frombuffer(bytes(self._done_nodes), np.uint64),
            np.frombuffer(bytes(self._done_values), np.float64),
            np.array(self._roots, np.uint32),
            np.array(self._depths, np.int32),
            np.array(columns, np.int32).reshape(-1),
            np.array(members, np.float64),
            base,
            link,
        )


def forest_sources(node: RankNode, scope: Scope, forest: Forest) -> list[Source]:
    """The expressions that a forest asks for, where `node` asks for the forest."""
    start = scope.source.position(node.start)
    return [Source(text, f"{node}, feature {text!r}", start, is_exact=False) for text in forest.features]


_NUMBERS: Final = frozenset((int, float))


def number_of(node: Mapping[str, Any], key: str, default: float | None = None) -> float:
    """A finite number of a node. Errors: ValueError."""
    value = node.get(key, default)
    if type(value) not in _NUMBERS or not np.isfinite(float(value)):
        raise ValueError(f"a node has no number {key!r}, but {str(value)[:40]!r}")
    return float(value)
