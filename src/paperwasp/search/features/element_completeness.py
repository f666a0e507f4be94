"""elementCompleteness(field): how completely the element that matches best and the query cover each other.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#elementCompleteness(name).completeness
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from paperwasp.search.features.block import Block
from paperwasp.search.features.element_rows import element_rows
from paperwasp.search.features.family import Compute, Floats, RankSetup, register

NAME: Final = "elementCompleteness"
OUTPUTS: Final = ("completeness", "fieldCompleteness", "queryCompleteness", "elementWeight")


def _listed(setup: RankSetup) -> Iterable[str]:
    names = [name for name in setup.listed_index_fields if not setup.is_filter(name)]
    return [f"{NAME}({name}).{output}" for name in names for output in OUTPUTS]


@register(NAME, "index", outputs=OUTPUTS, listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field = arguments[0]
    importance = setup.number(0.5, f"{NAME}({field}).fieldCompletenessImportance")

    def compute(block: Block) -> Floats:
        rows = element_rows(block, field)
        of_query = rows.column("terms_weight") / rows.total_weight
        of_field = np.minimum(rows.column("terms"), rows.column("length")) / rows.column("length")
        completeness = of_field * importance + of_query * (1 - importance)
        weight = rows.column("weight")
        values = dict(zip(OUTPUTS, (completeness, of_field, of_query, weight), strict=True))
        return rows.best(completeness * weight, values[output])

    return compute
