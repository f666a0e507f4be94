"""textSimilarity(field): how alike a field and the query are, where both are texts.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#textSimilarity(name)
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

import numpy as np

from paperwasp.search.features.block import Block
from paperwasp.search.features.element_rows import ElementRows, element_places, element_rows
from paperwasp.search.features.family import Compute, Floats, RankSetup, register
from paperwasp.search.features.flat_places import flat_places, is_flat

NAME: Final = "textSimilarity"
WEIGHTS: Final = {"proximity": 0.35, "order": 0.15, "queryCoverage": 0.30, "fieldCoverage": 0.20}
"""Of its parts in the score."""


def _part(rows: ElementRows, name: str) -> Floats:
    if name == "queryCoverage":
        return rows.query_coverage
    return rows.field_coverage if name == "fieldCoverage" else rows.column(name)


def _listed(setup: RankSetup) -> Iterable[str]:
    names = [name for name in setup.listed_index_fields if setup.is_single(name) and not setup.is_filter(name)]
    return [f"{NAME}({name}).{output}" for name in names for output in ("score", *WEIGHTS)]


@register(NAME, "single-index", outputs=("score", *WEIGHTS), listed=_listed)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    name = arguments[0]
    places_of = flat_places if is_flat(setup, name) else element_places

    def compute(block: Block) -> Floats:
        rows = element_rows(block, name, places_of=places_of)
        weights = WEIGHTS if output == "score" else {output: 1.0}
        parts = np.stack([_part(rows, name) * weight for name, weight in weights.items()])
        return rows.per_hit(parts.sum(axis=0))

    return compute
