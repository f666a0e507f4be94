"""Features that depend on no match: value, globalSequence, random numbers, and debugWait."""

from __future__ import annotations

import math
import re
import zlib
from collections.abc import Callable
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.core.clock import wait
from paperwasp.document.types import ArrayType
from paperwasp.errors import LanguageError, TooLarge
from paperwasp.search.features.block import Block
from paperwasp.search.features.catalog import feature_name
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, register

# value(x): its own argument, a number.
#
# Vespa: a feature of its tests and of other features; harmless in a profile.


@register("value", "name", outputs=("0",))
def bind_value(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    try:
        return constant(float(arguments[0]))
    except ValueError:
        raise LanguageError(f"value takes a number, not {arguments[0]!r}") from None


# globalSequence: a number for every document of a cluster, as long as none of them moves.
#
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#globalSequence


@register("globalSequence")
def bind_global_sequence(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    def compute(block: Block) -> Floats:
        own = block.lids_in_node().astype(np.int64) << 16 | block.setting.space.distribution_key
        return (2**48 - own).astype(np.float64)

    return compute


# random, randomNormal and randomNormalStable: chance, drawn for each hit.
#
# All are those of `Rand48`, as in Vespa. `random.match` and `randomNormalStable` are the same for a hit in all queries
# with one seed. The others change with the time of the query, where the profile gives no seed.
# Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#random
# Differs: a hit has one number for a query, in all phases and whatever else is found: that of its local number among
# those that the seed gives. Vespa draws the next number for each hit that it ranks.


DEFAULT_SEED: Final = 1024
_FACTOR: Final = 0x5DEECE66D
_STEP: Final = 0xB
_MASK: Final = (1 << 48) - 1
_LID_BITS: Final = 32

States = NDArray[np.uint64]


def states_of(seeds: NDArray[np.uint64]) -> States:
    """The states of generators with these seeds, as srand48 sets them."""
    return ((seeds & np.uint64(0xFFFFFFFF)) << np.uint64(16)) + np.uint64(0x330E)


def advanced(states: States) -> States:
    """One step on."""
    return (states * np.uint64(_FACTOR) + np.uint64(_STEP)) & np.uint64(_MASK)


def skipped(state: int, steps: NDArray[np.uint64]) -> States:
    """The state that number of steps later: by powers of two of the step."""
    states = np.full(len(steps), state, np.uint64)
    factor, step = _FACTOR, _STEP
    for bit in range(_LID_BITS):
        moved = (states * np.uint64(factor) + np.uint64(step)) & np.uint64(_MASK)
        states = np.where(steps >> np.uint64(bit) & np.uint64(1), moved, states)
        factor, step = factor * factor & _MASK, (factor * step + step) & _MASK
    return states


def uniform(states: States) -> Floats:
    """From 0 to below 1, of states that were advanced."""
    return (states >> np.uint64(17)).astype(np.float64) / 2.0**31


def normal(states: States) -> Floats:
    """Marsaglia's polar method, the first of the two numbers that it gives for each state."""
    values, left = np.empty(len(states)), np.arange(len(states))
    while len(left):
        states = advanced(states)
        first = uniform(states) * 2.0 - 1.0
        states = advanced(states)
        square = first * first + (uniform(states) * 2.0 - 1.0) ** 2
        inside = (square < 1.0) & (square != 0.0)
        values[left[inside]] = first[inside] * np.sqrt(-2.0 * np.log(square[inside]) / square[inside])
        left, states = left[~inside], states[~inside]
    return values


def _lids(block: Block) -> NDArray[np.uint64]:
    return block.lids_in_node().astype(np.uint64)


def _given_seed(setup: RankSetup, name: str) -> int:
    """The seed of the profile; 0: none."""
    return _whole(setup.text(f"{name}.seed") or "0")


def _whole(text: str) -> int:
    """The number that a text begins with, in 64 bits; 0 where it begins with none."""
    found = re.match(r"[0-9]{1,20}", text.strip())
    return int(found[0]) % 2**64 if found else 0


def _seed_now(block: Block, given: int, name: str) -> int:
    """The seed, or one for this query that differs from name to name."""
    return given or int(block.setting.now_seconds * 1e6) % 2**64 ^ zlib.crc32(name.encode())


def _query_seed(block: Block, key: str) -> int:
    return _whole(block.setting.properties.get(key, str(DEFAULT_SEED)).strip("\"'"))


@register("random", "name", optional=1, outputs=("out", "match"))
def bind_random(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    name = feature_name("random", arguments)
    given = _given_seed(setup, name)

    def drawn(block: Block) -> Floats:
        seed = np.array([_seed_now(block, given, name)], np.uint64)
        return uniform(advanced(skipped(int(states_of(seed)[0]), _lids(block))))

    def of_match(block: Block) -> Floats:
        seed = np.uint64(_query_seed(block, f"{name}.match.seed"))
        return uniform(advanced(states_of(_lids(block) + seed)))

    return of_match if output == "match" else drawn


@register("randomNormal", "name", "name", "name", optional=3)
def bind_normal(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return _normal("randomNormal", setup, arguments, _seed_now)


@register("randomNormalStable", "name", "name", "name", optional=3)
def bind_stable(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    return _normal(
        "randomNormalStable",
        setup,
        arguments,
        lambda block, given, name: given or _query_seed(block, f"{name}.seed"),
    )


def _normal(
    feature: str,
    setup: RankSetup,
    arguments: tuple[str, ...],
    seed_of: Callable[[Block, int, str], int],
) -> Compute:
    """`seed_of`: from the seed of the profile and the name of the feature."""
    name = feature_name(feature, arguments)
    mean, deviation = _mean_and_deviation(feature, arguments)
    given = _given_seed(setup, name)

    def compute(block: Block) -> Floats:
        seed = np.uint64(seed_of(block, given, name))
        return mean + deviation * normal(states_of(_lids(block) + seed))

    return compute


def _mean_and_deviation(feature: str, arguments: tuple[str, ...]) -> tuple[float, float]:
    """0 and 1 where they are not given. A third argument only tells features apart."""
    try:
        mean, deviation = (float(number) for number in (*arguments[:2], *("0", "1")[len(arguments[:2]) :]))
    except ValueError:
        raise LanguageError(f"{feature} takes a mean and a standard deviation, not {', '.join(arguments)}") from None
    return mean, deviation


# debugWait(seconds,busy) and debugAttributeWait(attribute,busy): the time that was waited for a hit, in seconds.
#
# They make ranking slow, so that one can see what happens when it is. With busy 1 the processor is kept busy meanwhile.
# Vespa: searchlib's debug_wait and debug_attribute_wait; its reference of rank features does not have them.


@register("debugWait", "name", "name")
def bind_wait(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    seconds = _number(arguments[0])
    return _compute(lambda block: seconds, arguments[1])


@register("debugAttributeWait", "numeric-attribute", "name")
def bind_attribute_wait(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The attribute says how many seconds, the first element of an array does. Unset is no time."""
    name = arguments[0]
    described = setup.described(name)
    assert described is not None
    is_array = isinstance(described.type, ArrayType)

    def seconds(block: Block) -> float:
        values = block.column(name).element(block.lids, 0) if is_array else block.column(name).as_float64(block.lids)
        return float(np.nan_to_num(values)[0])

    return _compute(seconds, arguments[1])


def _number(argument: str) -> float:
    try:
        found = float(argument)
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise LanguageError(f"a wait is a number of seconds, and 1 or 0 for busy or not: {argument!r} is not a number")
    return found


def _compute(seconds: Callable[[Block], float], busy: str) -> Compute:
    is_busy = _number(busy) == 1

    def compute(block: Block) -> Floats:
        if len(block.lids) > 1:  # hit by hit: those that are waited for in time are ranked
            raise TooLarge("one hit is waited for at a time")
        return np.array([wait(seconds(block), is_busy=is_busy)])

    return compute
