"""wand: the documents with the greatest sums of products of weights of query and document.

Vespa: https://docs.vespa.ai/en/ranking/wand.html
Differs: finds just the best `targetHits`, in Vespa at least those; so `thresholdBoostFactor`, by which Vespa gives up
some of them for speed, has no effect.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.errors import InvalidQuery
from paperwasp.operators.base import Operator, SearchSpace, planner
from paperwasp.operators.best import BestMatch, BestOperator
from paperwasp.operators.field_match import Bitmap, Lids, Occurrences
from paperwasp.operators.term import counts_of
from paperwasp.operators.weighted_match import TokensOfField, tokens_matches
from paperwasp.query import WandItem

DEFAULT_TARGET_HITS = 10


class WandMatch(BestMatch):
    """The best by products of weights, above `threshold`."""

    def __init__(self, space: SearchSpace, tokens: TokensOfField, target_hits: int, threshold: float) -> None:
        super().__init__(space, tokens.field, target_hits)
        self._tokens = tokens
        self._threshold = threshold

    def candidates(self) -> Bitmap:
        bitmap = self._space.empty()
        self._tokens.add_to(bitmap)
        return bitmap

    def values(self, lids: Lids) -> NDArray[np.float64]:
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


@planner(WandItem)
def plan_wand(item: WandItem, space: SearchSpace) -> Operator:
    hits = item.target_hits or DEFAULT_TARGET_HITS
    if hits < 0:
        raise InvalidQuery(f"wand in '{item.index}': targetHits must be above 0, not {hits}")
    found = tokens_matches(item, item.tokens, space)
    matches = [WandMatch(space, tokens, hits, item.score_threshold) for tokens in found]
    return BestOperator(space, matches, item.annotations)
