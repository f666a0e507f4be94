"""The global phase of a rank profile: it ranks the best hits of all nodes again, once they are merged.

A content node computes for each hit what the expression needs from it (`GlobalPhase.inputs`); normalizers look at all
those hits together; the rest is the expression's own program over both.

Vespa: https://docs.vespa.ai/en/ranking/phased-ranking.html#using-a-global-phase-expression
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property, lru_cache, partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from msgspec import Struct

from paperwasp.errors import InternalError
from paperwasp.ranking.program import Floats, Program

if TYPE_CHECKING:
    from paperwasp.ranking.explanation import Explanation

NORMALIZERS: Final = frozenset(("normalize_linear", "reciprocal_rank", "reciprocal_rank_fusion"))
"""Features of all hits together, which the global phase alone sees."""
DEFAULT_K: Final = 60.0
"""The number that `reciprocal_rank` adds to the rank."""
_MOST: Final = float(np.finfo(np.float32).max)
"""A value whose size is not below this takes no part in finding the range of values."""


def linear(values: Floats) -> Floats:
    """Scale values from 0 for the least to 1 for the greatest; 0.5 where all are the same."""
    ordinary = values[np.abs(values) < _MOST]
    low, high = (float(ordinary.min()), float(ordinary.max())) if len(ordinary) else (0.0, 0.0)
    if high <= low:
        low = high = 0.0
    scale = 1.0 / (high - low) if high > low else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        return 0.5 + scale * (values - (low + high) * 0.5)


def reciprocal_rank(values: Floats, k: float = DEFAULT_K) -> Floats:
    """Return 1 / (k + rank): the greatest value has rank 1; equal values keep the order of the hits. NaN is last."""
    order = np.argsort(-np.where(np.isnan(values), -np.inf, values), kind="stable")
    found = np.empty(len(values))
    found[order] = _reciprocals(k, len(values))
    return found


@lru_cache(maxsize=16)
def _reciprocals(k: float, count: int) -> Floats:
    """1 / (k + rank) of the ranks from 1 to `count`."""
    with np.errstate(divide="ignore"):
        found: Floats = 1.0 / (k + 1.0 + np.arange(count, dtype=np.float64))
    found.flags.writeable = False
    return found


class Normalizer(Struct, frozen=True, eq=False):
    """A feature of the global phase: the value of each hit, normalized over all of them."""

    name: str
    input: Program
    of: Callable[[Floats], Floats]
    k: float | None
    """The number that `reciprocal_rank` adds to ranks; None: it is linear."""
    bm25_field: None = None
    query_name: str | None = None

    @property
    def size_bytes(self) -> int:
        """About how much memory it takes."""
        return self.input.size_bytes

    def compute(self, context: Any) -> Floats:
        """No content node can: it has some of the hits only."""
        raise InternalError(f"{self.name} is asked of a block of hits")

    @classmethod
    def linear(cls, number: int, value: Program) -> Normalizer:
        return cls(f"normalize_linear({number})", value, linear, None)

    @classmethod
    def reciprocal(cls, number: int, value: Program, k: float) -> Normalizer:
        return cls(f"reciprocal_rank({number},{k!r})", value, partial(reciprocal_rank, k=k), k)


class GlobalPhase(Struct, frozen=True, eq=False, dict=True):
    """The global phase, ready to run."""

    program: Program
    rerank_count: int
    """The number of the best hits that it ranks."""
    rank_score_drop_limit: float | None
    """Hits with a relevance of this or lower are dropped."""
    explained: Callable[[], Explanation] | None = None
    """The expression for people. Raises LanguageError where it is too deep for that."""

    @cached_property
    def inputs(self) -> Mapping[str, Program]:
        """The program by which a content node computes each feature of the global phase for a hit, by name."""
        return {
            feature.name: feature.input
            if isinstance(feature, Normalizer)
            else Program((feature,), np.zeros(0), np.zeros(0, np.int32), temporaries=0, result=0)
            for feature in self.program.features
        }

    def scores(self, rows: Floats) -> Floats:
        """One score for each hit. `rows`: the hits' values of `inputs`, one row a hit, the best hit first."""
        return self.program.evaluate(list(self.columns(rows).values()), len(rows))

    def columns(self, rows: Floats) -> dict[str, Floats]:
        """The features of the program by their names, in its order. `rows`: as of `scores`."""
        columns = {}
        for number, feature in enumerate(self.program.features):
            column = np.ascontiguousarray(rows[:, number])
            columns[feature.name] = feature.of(column) if isinstance(feature, Normalizer) else column
        return columns
