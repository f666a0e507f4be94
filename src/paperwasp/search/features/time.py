"""now, age(attribute) and freshness(attribute): time, in seconds since 1970.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#freshness(name)
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paperwasp.document.types import BYTE, INT, ArrayType
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.search.features.logscale import Fall

DEFAULT_MAX_AGE_SECONDS: Final = 3 * 30 * 24 * 60 * 60
DEFAULT_HALF_RESPONSE_SECONDS: Final = 7 * 24 * 60 * 60
_LEAST: Final = {BYTE: -(2.0**7), INT: -(2.0**31)}
"""What an unset value counts as, where it is not the least of 64 bits."""


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
