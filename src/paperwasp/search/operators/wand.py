"""wand: the documents with the greatest sums of products of weights of query and document.

Vespa: https://docs.vespa.ai/en/ranking/wand.html
Differs: finds just the best `targetHits`, in Vespa at least those; so `thresholdBoostFactor`, by which Vespa gives up
some of them for speed, has no effect.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.base.records import dataclass
from paperwasp.core import _core
from paperwasp.errors import InvalidQuery
from paperwasp.search.language.scope import Scope
from paperwasp.search.operators.arguments import ArgumentReader
from paperwasp.search.operators.best import BestMatch, BestOperator
from paperwasp.search.operators.field_match import Bitmap, Lids, Occurrences
from paperwasp.search.operators.item import Item
from paperwasp.search.operators.operator import Operator, SearchSpace
from paperwasp.search.operators.registry import Argument, condition
from paperwasp.search.operators.term import counts_of
from paperwasp.search.operators.weighted_tokens import TokensItem, TokensOfField, read_tokens, tokens_matches

DEFAULT_TARGET_HITS = 10
_BLOCK_LIDS: Final = 65_536
"""Documents that are scored together."""


class WandMatch(BestMatch):
    """The best by products of weights, above `threshold`."""

    def __init__(self, space: SearchSpace, tokens: TokensOfField, target_hits: int, threshold: float) -> None:
        super().__init__(space, tokens.field, target_hits)
        self._tokens = tokens
        self._threshold = threshold

    def candidates(self) -> Bitmap:
        """The documents that have one of the tokens."""
        bitmap = self._space.empty()
        self._tokens.add_to(bitmap)
        return bitmap

    def find(self, allowed: Bitmap) -> Lids:
        space = self._space
        lids = _core.bitmap_lids(self.candidates() & allowed, space.limit)
        best, values = np.zeros(0, np.uint32), np.zeros(0)
        for start in range(0, len(lids), _BLOCK_LIDS):
            space.check_time()
            block = lids[start : start + _BLOCK_LIDS]
            best, values = _first(
                np.concatenate([best, block]), np.concatenate([values, self._values(block)]), self._target_hits
            )
        return best

    def _values(self, lids: Lids) -> NDArray[np.float64]:
        """The sums of products, -inf where they do not reach the threshold."""
        products = self._tokens.products(lids)
        return np.where(products > self._threshold, products, -np.inf)

    def scores(self, lids: Lids) -> NDArray[np.float64]:
        return self._tokens.products(lids)

    def document_frequencies(self) -> tuple[int, ...]:
        return self._tokens.document_frequencies()

    def estimate(self) -> int:
        return min(super().estimate(), self._tokens.estimate())

    def elements(self, lids: Lids) -> Occurrences:
        offsets, elements = self._tokens.elements(lids)
        counts = counts_of((offsets, elements))
        found = self.occurrences(lids) > 0
        kept = np.repeat(found, counts)
        return np.concatenate([[0], np.cumsum(np.where(found, counts, 0))]).astype(np.uint32), elements[kept]

    def element_weights(self, lids: Lids) -> NDArray[np.int32]:
        counts = counts_of(self._tokens.elements(lids))
        return self._tokens.element_weights(lids)[np.repeat(self.occurrences(lids) > 0, counts)]


def _first(lids: Lids, values: NDArray[np.float64], count: int) -> tuple[Lids, NDArray[np.float64]]:
    """The `count` with the greatest values, of equal ones those with lower lids; rising. `lids` rise."""
    there = values > -np.inf
    lids, values = lids[there], values[there]
    if len(lids) <= count:
        return lids, values
    least = np.partition(values, len(values) - count)[len(values) - count]
    above = values > least
    equal = np.flatnonzero(values == least)[: count - int(np.count_nonzero(above))]
    above[equal] = True
    return lids[above], values[above]


@dataclass(frozen=True, slots=True)
class WandItem(TokensItem):
    """The `target_hits` best by that dot product, among those above `score_threshold`."""

    without_elements = "wand"

    target_hits: int = 0
    score_threshold: float = 0.0
    threshold_boost_factor: float = 1.0

    def to_yql(self) -> str:
        extra: dict[str, Any] = {}
        if self.target_hits:
            extra["targetHits"] = self.target_hits
        if self.score_threshold:
            extra["scoreThreshold"] = self.score_threshold
        if self.threshold_boost_factor != 1.0:
            extra["thresholdBoostFactor"] = self.threshold_boost_factor
        return self.as_call("wand", extra)

    def plan(self, space: SearchSpace) -> Operator:
        hits = self.target_hits or DEFAULT_TARGET_HITS
        if hits < 0:
            raise InvalidQuery(f"wand in '{self.index}': targetHits must be above 0, not {hits}")
        found = tokens_matches(self, space)
        matches = [WandMatch(space, tokens, hits, self.score_threshold) for tokens in found]
        return BestOperator(space, matches, self.annotations)


@condition("wand", Argument.NAME, Argument.LITERAL)
def read_wand(parser: ArgumentReader, scope: Scope) -> Item:
    """`wand(field, {"a": 1, "b": 2})`: the best by their dot product."""
    boost = scope.get("thresholdBoostFactor", float)
    return WandItem(
        parser.field_or_quoted(),
        read_tokens(parser),
        scope.target_hits(),
        float(scope.get("scoreThreshold", float) or 0.0),
        1.0 if boost is None else float(boost),
        annotations=scope.of_term(),
    )
