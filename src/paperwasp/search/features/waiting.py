"""debugWait(seconds,busy) and debugAttributeWait(attribute,busy): the time that was waited for a hit, in seconds.

They make ranking slow, so that one can see what happens when it is. With busy 1 the processor is kept busy meanwhile.
Vespa: searchlib's debug_wait and debug_attribute_wait; its reference of rank features does not have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np

from paperwasp.core.clock import wait
from paperwasp.document.types import ArrayType
from paperwasp.errors import LanguageError, TooLarge
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, register


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
