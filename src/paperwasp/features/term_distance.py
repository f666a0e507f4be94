"""termDistance(field, x, y): how near two terms of the query are in an indexed field.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#termDistance(name,x,y).forward
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from paperwasp.core import _core
from paperwasp.features.base import MatchContext
from paperwasp.features.family import Compute, Floats, RankSetup, one, register
from paperwasp.features.field_term_match import NO_POSITION


def term_distances(
    context: MatchContext, field: str, first: int, second: int
) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
    """(distance, position): from the end of term `first` to a later term `second`, and where that `first` begins.

    1,000,000 where there is no such pair.
    """
    distances = np.empty(len(context.lids), np.uint32)
    places = np.empty(len(context.lids), np.uint32)
    length = max(1, context.terms[first].phrase_length)
    of_first, of_second = context.positions(first, field), context.positions(second, field)
    _core.term_distance(*of_first, length, *of_second, distances, places)
    return distances, places


@register(
    "termDistance",
    "index",
    "number",
    "number",
    outputs=("forward", "forwardTermPosition", "reverse", "reverseTermPosition"),
)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, x, y = arguments[0], int(arguments[1]), int(arguments[2])
    first, second = (x, y) if output.startswith("forward") else (y, x)

    def compute(context: MatchContext) -> Floats:
        searching = [number for number, term in enumerate(context.terms) if field in term.fields]
        if first not in searching or second not in searching:
            return one(NO_POSITION)
        distances, places = term_distances(context, field, first, second)
        return (places if output.endswith("TermPosition") else distances).astype(np.float64)

    return compute
