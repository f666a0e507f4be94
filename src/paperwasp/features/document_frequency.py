"""queryTermDocumentFrequency(field) and num_docs_indexed: what bm25 takes a term's document frequency to be.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#queryTermDocumentFrequency(name)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.features.base import MatchContext, terms_of
from paperwasp.features.family import Compute, Floats, RankSetup, TensorCompute, one, register
from paperwasp.tensor.batch import TensorBatch
from paperwasp.tensor.types import Dimension, TensorType

TYPE: Final = TensorType.of([Dimension("term")], "double")


@register("queryTermDocumentFrequency", "field", type_=lambda setup, arguments, output: TYPE)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    """A cell for each term that searches the field, labelled with its number; the same for all hits."""

    def compute(context: MatchContext) -> TensorBatch:
        found = {
            str(number): float((term.document_frequency or context.document_frequency(number))[0])
            for number, term in terms_of(context, arguments[0])
        }
        labels = context.labels.numbers(found).reshape(-1, 1)
        return TensorBatch(
            TYPE, np.array([0, len(found)], np.int64), labels, np.array(list(found.values())), is_single=True
        )

    return compute


@register("num_docs_indexed")
def bind_documents(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The documents of the type in the node; 1 in streaming search, which has no statistics."""

    def compute(context: MatchContext) -> Floats:
        return one(context.indexed_documents)

    return compute
