"""`summary(class)`: the best hits of a group, by relevance; of equal ones those of the lower lid first.

Vespa: https://docs.vespa.ai/en/reference/querying/grouping-language.html#hit-list-aggregators
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, Final, Self

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from paperwasp.search.grouping.aggregator import Aggregator, Binder, Groups, Numbers, State, aggregates, written_as
from paperwasp.search.grouping.expression_node import Rows
from paperwasp.search.grouping.request import Aggregation
from paperwasp.search.grouping.values import Kind, Values, check_arrays, check_offsets, offsets_of, parts_at
from paperwasp.storage.attributes.elements import numbers_within

UNLIMITED: Final = -1


@written_as("summary")
class HitsState(Struct, State, frozen=True, eq=False):
    """The best hits of each group, best first: group i has those numbered offsets[i]:offsets[i + 1]."""

    summary: str
    """The document summary class; empty: that of the query."""
    max_hits: int
    """`UNLIMITED`: all."""
    offsets: NDArray[np.int64]
    relevances: NDArray[np.float64]
    lids: NDArray[np.uint32]
    sources: NDArray[np.uint32]
    """The document type or batch of each hit, by its place among the results that were merged."""
    hits: NDArray[np.object_] | None = None
    """The hits as they are shown; None: they are not written yet."""

    @property
    def group_count(self) -> int:
        return len(self.offsets) - 1

    def selected(self, rows: Numbers) -> Self:
        offsets, places = parts_at(self.offsets, rows)
        hits = None if self.hits is None else self.hits[places]
        members = (self.relevances[places], self.lids[places], self.sources[places], hits)
        return type(self)(self.summary, self.max_hits, offsets, *members)

    @classmethod
    def merged(cls, parts: Sequence[Self], places: Sequence[Numbers], count: int) -> Self:
        groups = np.concatenate(
            [np.repeat(place, np.diff(part.offsets)) for part, place in zip(parts, places, strict=True)]
        )
        relevances = np.concatenate([part.relevances for part in parts])
        first = parts[0]
        offsets, chosen = best_rows(groups, relevances, count, first.max_hits)
        is_written = all(part.hits is not None for part in parts)
        sources = [part.sources if is_written else np.full_like(part.sources, i) for i, part in enumerate(parts)]
        return cls(
            first.summary,
            first.max_hits,
            offsets,
            relevances[chosen],
            np.concatenate([part.lids for part in parts])[chosen],
            np.concatenate(sources)[chosen],
            np.concatenate([part.hits for part in parts if part.hits is not None])[chosen] if is_written else None,
        )

    def written(self, hits: NDArray[np.object_]) -> HitsState:
        """The state with its hits as they are shown, one for each lid."""
        return HitsState(self.summary, self.max_hits, self.offsets, self.relevances, self.lids, self.sources, hits)

    def shown(self) -> Sequence[Any]:
        """The hits of each group, as a list. Errors: ValueError where they are not written."""
        if self.hits is None:
            raise ValueError("the hits of a group are not written yet")
        bounds = self.offsets.tolist()
        return [self.hits[low:high].tolist() for low, high in pairwise(bounds)]

    def order_values(self) -> Values:
        """The relevance of the best hit; 0 of none. Vespa: hitsaggregationresult.cpp (`onGetRank`)."""
        found = np.zeros(len(self.offsets) - 1)
        has_hits = np.diff(self.offsets) > 0
        found[has_hits] = self.relevances[self.offsets[:-1][has_hits]]
        return Values(Kind.DOUBLE, found)

    def arrays(self) -> Mapping[str, NDArray[Any]]:
        return {
            "summary": np.frombuffer(self.summary.encode(), np.uint8),
            "max_hits": np.array([self.max_hits], np.int64),
            "offsets": self.offsets,
            "relevances": self.relevances,
            "lids": self.lids,
            "sources": self.sources,
        }

    @classmethod
    def from_arrays(cls, arrays: Mapping[str, NDArray[Any]]) -> Self:
        types: dict[str, type[np.generic]] = {
            "summary": np.uint8,
            "max_hits": np.int64,
            "offsets": np.int64,
            "relevances": np.float64,
            "lids": np.uint32,
            "sources": np.uint32,
        }
        check_arrays(arrays, types, "a state of hits")
        offsets, relevances = arrays["offsets"], arrays["relevances"]
        if len(arrays["max_hits"]) != 1 or arrays["max_hits"][0] < UNLIMITED:
            raise ValueError("a state of hits does not say how many it has at most")
        if not len(relevances) == len(arrays["lids"]) == len(arrays["sources"]):
            raise ValueError("the arrays of a state of hits differ in length")
        check_offsets(offsets, len(offsets) - 1, len(relevances))
        summary = arrays["summary"].tobytes().decode()
        return cls(summary, int(arrays["max_hits"][0]), offsets, relevances, arrays["lids"], arrays["sources"])


def best_rows(groups: NDArray[Any], relevances: NDArray[np.float64], count: int, most: int) -> tuple[Numbers, Numbers]:
    """The rows of the best hits of each of `count` groups, at most `most` of each, best first: their offsets and
    numbers. Of equal relevance the first."""
    order = np.lexsort((-relevances, groups))
    lengths = np.bincount(groups, minlength=count)
    if most == UNLIMITED:
        return offsets_of(lengths), order
    kept = order[numbers_within(lengths) < most]
    return offsets_of(np.minimum(lengths, most)), kept


class Summary(Aggregator):
    """Keeps the best hits."""

    def __init__(self, summary: str, max_hits: int) -> None:
        self._summary = summary
        self._max_hits = max_hits

    def collect(self, rows: Rows, groups: Groups, count: int) -> HitsState:
        offsets, chosen = best_rows(groups, rows.relevances, count, self._max_hits)
        lids = rows.lids[chosen]
        return HitsState(
            self._summary, self._max_hits, offsets, rows.relevances[chosen], lids, np.zeros(len(lids), np.uint32)
        )


@aggregates("summary")
def _summary(aggregation: Aggregation, bind: Binder) -> Summary:
    named = aggregation.expression.arguments
    summary = named[0] if named and isinstance(named[0], str) else ""
    return Summary(summary, UNLIMITED if aggregation.max_hits is None else aggregation.max_hits)
