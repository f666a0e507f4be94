"""A logarithm that falls from 1 to 0: the output `logscale` of freshness and closeness.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#freshness(name).logscale
"""

from __future__ import annotations

import numpy as np

from paperwasp.base.records import dataclass
from paperwasp.search.features.family import Floats, RankSetup


@dataclass(frozen=True, slots=True)
class Fall:
    """From 1 at 0 to 0 at `most`, in a line or as a logarithm; `scale` says how steeply that begins."""

    most: float
    scale: float

    @classmethod
    def of(cls, setup: RankSetup, most: tuple[str, float], half: tuple[str, float], scale: float | None = None) -> Fall:
        """As rank properties say. `most`, `half`: the name of a property and its default; `scale`: the default where
        `half`, at which the logarithm is 0.5, is not set."""
        highest = max(1.0, setup.number(most[1], most[0]))
        middle = max(1.0, setup.number(half[1], half[0]))
        if middle >= highest / 2:
            middle = highest / 2 - 1
        if scale is not None and setup.text(half[0]) is None:
            return cls(highest, scale)
        return cls(highest, middle * middle / (highest - 2 * middle))

    def linear(self, values: Floats) -> Floats:
        return np.maximum(1.0 - values / self.most, 0.0)

    def logarithmic(self, values: Floats) -> Floats:
        with np.errstate(all="ignore"):
            highest, lowest = np.log(self.most + self.scale), np.log(self.scale)
            reached = np.log(np.clip(values, 0.0, self.most) + self.scale)
            fallen: Floats = (highest - reached) * (1.0 / (highest - lowest))
        return fallen
