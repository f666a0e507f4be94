"""The settings of rank profiles and queries for matching words that are in many documents.

Vespa: https://docs.vespa.ai/en/reference/schemas/schemas.html#filter-threshold and #weakand
"""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass, field
from typing import Final


@dataclass(frozen=True, slots=True)
class Tuning:
    """Shares of the documents, from 0 to 1. At 1 nothing of the kind is done."""

    filter_threshold: float = 1.0
    """Words of an index that are in a greater share of the documents only filter: ranking sees that they match, and
    neither where nor how often."""
    filter_thresholds: Mapping[str, float] = field(default_factory=dict)
    """The same of single fields, which goes before it."""
    filter_fields: Set[str] = frozenset()
    """Words of these fields only filter, however rare they are."""
    stopword_limit: float = 1.0
    """The share of documents above which a word is left out of a weakAnd."""
    adjust_target: float = 1.0
    """A document must score in a weakAnd what the part whose share is nearest to this does."""
    allow_drop_all: bool = False
    """Whether a weakAnd without anything left matches nothing; else its rarest part stays."""

    def only_filters(self, name: str, frequency: int, documents: int) -> bool:
        """Whether a word only filters that so many documents have in a field."""
        if name in self.filter_fields:
            return True
        return frequency > self.filter_thresholds.get(name, self.filter_threshold) * documents


NO_TUNING: Final = Tuning()
