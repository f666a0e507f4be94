"""closest(tensor) and closest(tensor,label): which of a hit's vectors is nearest to that of the query.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#closest(name)
"""

from __future__ import annotations

import numpy as np

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.document.types import TensorFieldType
from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import RankSetup, TensorCompute, register
from paperwasp.search.features.nearest_vectors import near_vectors, vector_labels


def _field_type(setup: RankSetup, field: str) -> TensorType:
    described = setup.described(field)
    assert described is not None and isinstance(described.type, TensorFieldType)
    return described.type.tensor


def _type(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    """The mapped dimensions of the field, with its cells."""
    field = _field_type(setup, arguments[0])
    return TensorType.of(field.mapped, field.cell_type)


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    field = _field_type(setup, arguments[0])
    if not field.mapped or len(field.indexed) != 1:
        raise LanguageError(
            f"rank feature 'closest': field {arguments[0]!r} is a {field}: mapped dimensions and one indexed"
            " dimension are expected"
        )
    return ""


@register("closest", "tensor-attribute", "name", optional=1, type_=_type, pending=_check)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    field, label = arguments[0], arguments[1] if len(arguments) == 2 else None
    type_ = _type(setup, arguments, output)

    def compute(block: Block) -> TensorBatch:
        hits = len(block.lids)
        nearest, subspaces = np.full(hits, np.inf), np.zeros(hits, np.uint32)
        for number, term in terms_of(block, field):
            vectors = near_vectors(block, number, field) if label in (None, term.label) else None
            if vectors is not None:
                nearer = vectors.distances < nearest
                nearest[nearer], subspaces[nearer] = vectors.distances[nearer], vectors.subspaces[nearer]
        found = np.flatnonzero(nearest < np.inf)
        starts = np.concatenate([[0], np.cumsum(nearest < np.inf)]).astype(np.int64)
        labels = vector_labels(block, field, found, subspaces[found]).reshape(len(found), len(type_.mapped))
        return TensorBatch(type_, starts, labels, np.ones(len(found), DTYPES[type_.cell_type]))

    return compute
