"""The hits that rank features are computed for: a block of lids, with what the query and the view know of them.

A feature family is one file of this package. It takes a `Block` and answers one float64 for each lid, or a tensor. What
only one family needs of a block, such as the vectors that are near, is computed in its own file from this data.
Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html
"""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.document.tensor.batch import Labels
from paperwasp.ranking import Program
from paperwasp.search.features.setting import QuerySetting, RankTerm, Worked
from paperwasp.search.operators.field_match import FieldMatch, Lids, Occurrences
from paperwasp.storage.attributes import ColumnView


class FirstPhase(Struct, frozen=True, eq=False):
    """The result of the first phase, as later phases use it."""

    highest: float
    """The highest of all its scores."""
    reranked: Lids
    """The hits that the second phase ranks, best first."""

    def ranks(self, lids: Lids) -> NDArray[np.float64]:
        """The place of each lid among those, from 1; infinite where it is not among them."""
        order = np.argsort(self.reranked)
        places = np.searchsorted(self.reranked, lids, sorter=order)
        found = np.full(len(lids), np.inf)
        inside = places < len(order)
        inside[inside] = self.reranked[order[places[inside]]] == lids[inside]
        found[inside] = order[places[inside]] + 1
        return found


class Block(Struct, eq=False):
    """Some hits of a query, with what is known of them. Arrays are parallel to `lids`, which ascend."""

    setting: QuerySetting
    """Terms, values, columns and index, which are the same for all hits."""
    lids: Lids
    scores: Mapping[str, NDArray[np.float64]] = field(default_factory=dict)
    """Known scores: of "firstPhase", "secondPhase", or "relevance", which is what the hits have in the end."""
    phases: Mapping[str, Program] = field(default_factory=dict)
    """The expressions of phases whose values are computed when they are needed."""
    first_phase: FirstPhase | None = None
    """None: it is not over."""
    score_floor: float = -math.inf
    """Hits that score no more are not wanted: their score may be -infinity. Not -infinity only where a feature is all
    that is computed."""
    known: dict[object, Any] = field(default_factory=dict)
    """Features by name, and nodes of tensors, that are computed for the block already."""

    def __post_init__(self) -> None:
        self.known.update(self.setting.features)

    @property
    def hits(self) -> int:
        return len(self.lids)

    @property
    def terms(self) -> Sequence[RankTerm]:
        return self.setting.rank_terms

    @property
    def labels(self) -> Labels:
        return self.setting.labels

    def part(self, places: slice) -> Block:
        """Some of the hits."""
        scores = {phase: values[places] for phase, values in self.scores.items()}
        return Block(self.setting, self.lids[places], scores, self.phases, self.first_phase)

    def once(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        """Return what `work` returned for the first feature of the block that needed it."""
        if key not in self.known:
            self.known[key] = work()
        found: Worked = self.known[key]
        return found

    def column(self, name: str) -> ColumnView:
        """The values of an attribute. Errors: InvalidQuery."""
        return self.setting.column(name)

    def lids_in_node(self) -> Lids:
        """The local number of each hit in its node, however it was found: documents of streaming search have other
        `lids`."""
        own = self.setting.space.own_lids
        return self.lids if own is None else own[self.lids]

    def field_length(self, field: str) -> NDArray[np.int32]:
        """The length in tokens of the indexed `field`."""
        index, number = self.setting.space.index, self.setting.number_of(field)
        return self.once(("length", field), lambda: index.field_lengths(number, self.lids))

    def matches(self, term: int, field: str) -> Iterator[FieldMatch]:
        """The matches of term number `term` in `field`."""
        return (match for match in self.setting.terms[term].matches if match.field == field)

    def matched(self, term: int, field: str) -> NDArray[np.bool_]:
        """Where term number `term` matched in `field`, index or attribute."""
        result = np.zeros(len(self.lids), np.bool_)
        for match in self.matches(term, field):
            result |= match.occurrences(self.lids) > 0
        return result

    def occurrences(self, term: int, field: str) -> NDArray[np.int32]:
        """How often term number `term` occurs in the indexed `field`; 0 where it does not match."""
        result = np.zeros(len(self.lids), np.int32)
        for match in self.matches(term, field):
            result += match.occurrences(self.lids)
        return result

    def only_filters(self, term: int, field: str) -> bool:
        """Whether ranking sees only that term number `term` matches in `field`, not where or how often."""
        return any(match.only_filters for match in self.matches(term, field))

    def positions(self, term: int, field: str) -> Occurrences:
        """(offsets[n + 1], positions) in the indexed `field`: hit i has positions[offsets[i]:offsets[i + 1]]."""
        for match in self.matches(term, field):
            return match.positions(self.lids)
        return np.zeros(len(self.lids) + 1, np.uint32), np.zeros(0, np.uint32)

    def match_weights(self, term: int, field: str) -> NDArray[np.int64]:
        """The weight of the match of term number `term` in `field`: the sum of the weights of matched elements in an
        attribute, the weight of the first in an index, 1 where there are none; 0 where it does not match."""
        result = np.zeros(len(self.lids), np.int64)
        for match in self.matches(term, field):
            result += match.match_weights(self.lids)
        return result

    def raw_scores(self, term: int, field: str) -> NDArray[np.float64]:
        """The score of the operator itself, where it matches; 0 elsewhere, and for operators without one."""
        result = np.zeros(len(self.lids))
        for match in self.matches(term, field):
            result += match.raw_scores(self.lids)
        return result


def terms_of(block: Block, field: str) -> Iterator[tuple[int, RankTerm]]:
    """The terms of the query that search a field, each with its number."""
    return ((number, term) for number, term in enumerate(block.terms) if field in term.fields)


def are_terms_of(block: Block, field: str, *numbers: int) -> bool:
    """Whether these are numbers of terms that search a field."""
    return all(number < len(block.terms) and field in block.terms[number].fields for number in numbers)
