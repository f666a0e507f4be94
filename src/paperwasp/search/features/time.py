"""Time: now, age and freshness; and the falls from 1 to 0 that freshness and closeness have."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from msgspec import Struct

from paperwasp.document.types import BYTE, INT, ArrayType
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register

# A logarithm that falls from 1 to 0: the output `logscale` of freshness and closeness.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#freshness(name).logscale


class Fall(Struct, frozen=True):
    """From 1 at 0 to 0 at `most`, in a line or as a logarithm; `scale` says how steeply that begins."""

    most: float
    scale: float

    @classmethod
    def of(cls, setup: RankSetup, most: tuple[str, float], half: tuple[str, float], scale: float | None = None) -> Fall:
        """Read the rank properties. `most`, `half`: the name of a property and its default; `scale`: the default where
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


# now, age(attribute) and freshness(attribute): time, in seconds since 1970.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#freshness(name)


DEFAULT_MAX_AGE_SECONDS: Final = 3 * 30 * 24 * 60 * 60
DEFAULT_HALF_RESPONSE_SECONDS: Final = 7 * 24 * 60 * 60
_LEAST: Final = {BYTE: -(2.0**7), INT: -(2.0**31)}
"""The value of an unset field, where it is not the least of 64 bits."""


@register("now")
def bind_now(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        return one(math.floor(block.setting.now_seconds))

    return compute


@register("age", "numeric-attribute")
def bind_age(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """Seconds since the time in the attribute, the first of an array; 0 for a time to come. Unset is the least time."""
    name = arguments[0]
    described = setup.described(name)
    assert described is not None
    is_array = isinstance(described.type, ArrayType)
    least = _LEAST.get(described.type, -(2.0**63))  # type: ignore[call-overload]

    def compute(block: Block) -> Floats:
        times = block.column(name).element(block.lids, 0) if is_array else block.column(name).as_float64(block.lids)
        times = np.where(np.isnan(times), least, np.trunc(times))
        return np.maximum(math.floor(block.setting.now_seconds) - times, 0.0)

    return compute


@register("freshness", "numeric-attribute", outputs=("out", "logscale"))
def bind_freshness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """1 for now, falling to 0 at maxAge: in a line, or (logscale) as a logarithm that is 0.5 at halfResponse."""
    name = f"freshness({arguments[0]})"
    fall = Fall.of(
        setup,
        (f"{name}.maxAge", DEFAULT_MAX_AGE_SECONDS),
        (f"{name}.halfResponse", DEFAULT_HALF_RESPONSE_SECONDS),
    )
    ages = bind_age(setup, arguments, "out")
    falling = fall.logarithmic if output == "logscale" else fall.linear

    def compute(block: Block) -> Floats:
        return falling(ages(block))

    return compute
