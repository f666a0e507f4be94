"""match: the mean of how well all fields of the document are matched, by the weights of the fields.

It is that of fieldMatch (of one text), elementCompleteness (of several) and attributeMatch over those fields where
these are above 0.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#match
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.document.types import RAW, ArrayType, WeightedSetType
from paperwasp.errors import LanguageError
from paperwasp.search.features.attribute_match import is_matched
from paperwasp.search.features.block import Block
from paperwasp.search.features.family import Compute, Floats, RankSetup, check_field, constant, families, register
from paperwasp.text.parsing.nearest import did_you_mean

_OUTPUTS: Final = ("score", "totalWeight")
_WEIGHT: Final = "weight."


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    if output.startswith(_WEIGHT):
        return check_field("field", output.removeprefix(_WEIGHT), setup, "match.weight")
    if output and output not in _OUTPUTS:
        known = (*_OUTPUTS, "weight")
        raise LanguageError(f"an output of match is {' or '.join(known)}, not {output!r}{did_you_mean(output, known)}")
    return ""


def _parts(setup: RankSetup) -> list[tuple[str, str]]:
    """(feature, field) of all fields that are matched."""
    parts = []
    for field in setup.index_fields:
        is_multiple = isinstance(setup.field(field).type, ArrayType | WeightedSetType)
        parts.append(("elementCompleteness" if is_multiple else "fieldMatch", field))
    for field in setup.attribute_fields:
        type_ = setup.field(field).type
        if is_matched(type_) and type_ != RAW:
            parts.append(("attributeMatch", field))
    return parts


@register("match", outputs=_OUTPUTS, pending=_check, any_output=True)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    if output.startswith(_WEIGHT):
        return constant(float(setup.weight(output.removeprefix(_WEIGHT))))
    scores: list[tuple[float, Compute]] = []
    for feature, field in _parts(setup):
        family = families()[feature]
        scores.append((float(setup.weight(field)), family.bind(setup, (field,), family.outputs[0])))

    def compute(block: Block) -> Floats:
        total, weights = np.zeros(len(block.lids)), np.zeros(len(block.lids))
        for weight, score in scores:
            found = score(block)
            weights += np.where(found > 0, weight, 0.0)
            total += np.where(found > 0, found * weight, 0.0)
        if output == "totalWeight":
            return weights
        return np.where(weights > 0, total / np.where(weights > 0, weights, 1.0), 0.0)

    return compute
