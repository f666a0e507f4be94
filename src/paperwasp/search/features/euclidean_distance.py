"""euclideanDistance(attribute, vector): between an array of numbers and a vector of the query.

The vector is the rank property `euclideanDistance.vector` of the query; what is beyond the shorter of both does not
count.
Vespa: not in its reference; a feature of its content nodes.
"""

from __future__ import annotations

import numpy as np

from paperwasp.document.types import ArrayType, NumericType
from paperwasp.search.features.block import Block
from paperwasp.search.features.dot_product import INTEGERS
from paperwasp.search.features.family import Compute, Floats, RankSetup, constant, one, register
from paperwasp.search.features.query_vector import array_vector
from paperwasp.storage.attributes.elements import numbers_in, numbers_within, sums_of

NAME = "euclideanDistance"


@register(NAME, "attribute", "name", outputs=("distance",))
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    field, vector = arguments
    described = setup.described(field)
    assert described is not None
    if not (isinstance(described.type, ArrayType) and isinstance(described.type.element, NumericType)):
        return constant(0.0)
    whole = described.type.element in INTEGERS
    name = f"{NAME}.{vector}"

    def compute(block: Block) -> Floats:
        text = block.setting.properties.get(name, "").strip("\"'")
        if not text:
            return one(0.0)
        found = array_vector(name, text, whole)
        counts, values = numbers_in(block.column(field), block.lids)
        within = numbers_within(counts)
        apart = np.where(within < found.length, values - found.at(within), 0.0)
        return np.sqrt(sums_of(counts, apart * apart))

    return compute
