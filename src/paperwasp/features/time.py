"""now, age(attribute) and freshness(attribute): time, in seconds since 1970.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#freshness(name)
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np

from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, one, register

DEFAULT_MAX_AGE_SECONDS: Final = 3 * 30 * 24 * 60 * 60
DEFAULT_HALF_RESPONSE_SECONDS: Final = 7 * 24 * 60 * 60


@register("now", listed=lambda setup: ("now",))
def bind_now(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return one(math.floor(context.now_seconds))

    return compute


def ages(context: MatchContext, attribute: str) -> Floats:
    """Seconds since the time in `attribute`; 0 for a time to come. Unset counts as the lowest time there is."""
    times = context.attribute(attribute)
    times = np.where(np.isnan(times), float(np.iinfo(np.int64).min), np.trunc(times))
    return np.maximum(math.floor(context.now_seconds) - times, 0.0)


@register("age", "numeric-attribute")
def bind_age(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(context: MatchContext) -> Floats:
        return ages(context, arguments[0])

    return compute


@register("freshness", "numeric-attribute", outputs=("out", "logscale"))
def bind_freshness(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """1 for now, falling to 0 at maxAge: in a line, or (logscale) as a logarithm that is 0.5 at halfResponse."""
    name = f"freshness({arguments[0]})"
    max_age = max(1.0, setup.number(DEFAULT_MAX_AGE_SECONDS, f"{name}.maxAge"))
    half_response = max(1.0, setup.number(DEFAULT_HALF_RESPONSE_SECONDS, f"{name}.halfResponse"))
    if half_response >= max_age / 2:
        half_response = max_age / 2 - 1

    def linear(context: MatchContext) -> Floats:
        return np.maximum(1.0 - ages(context, arguments[0]) / max_age, 0.0)

    def logarithmic(context: MatchContext) -> Floats:
        return logscale(ages(context, arguments[0]), max_age, half_response)

    return logarithmic if output == "logscale" else linear


def logscale(values: Floats, most: float, half: float) -> Floats:
    """A logarithm that falls from 1 at 0 over 0.5 at `half` to 0 at `most`."""
    scale = half * half / (most - 2 * half)
    with np.errstate(all="ignore"):
        highest, lowest = np.log(most + scale), np.log(scale)
        fallen: Floats = (highest - np.log(np.clip(values, 0.0, most) + scale)) * (1.0 / (highest - lowest))
    return fallen
