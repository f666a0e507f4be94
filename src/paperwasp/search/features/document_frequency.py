"""queryTermDocumentFrequency(field) and num_docs_indexed: what bm25 takes a term's document frequency to be.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#queryTermDocumentFrequency(name)
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.family import Compute, Floats, RankSetup, TensorCompute, one, register
from paperwasp.search.operators.operator import NOT_COUNTED

TYPE: Final = TensorType.of([Dimension("term")], "double")


@register("queryTermDocumentFrequency", "field", type_=lambda setup, arguments, output: TYPE)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    """A cell for each term that searches the field, labelled with its number; the same for all hits."""

    def compute(block: Block) -> TensorBatch:
        found = {
            str(number): float((term.document_frequency or block.setting.terms[number].document_frequency)[0])
            for number, term in terms_of(block, arguments[0])
        }
        labels = block.labels.numbers(found).reshape(-1, 1)
        return TensorBatch(
            TYPE, np.array([0, len(found)], np.int64), labels, np.array(list(found.values())), is_single=True
        )

    return compute


@register("num_docs_indexed")
def bind_documents(setup: RankSetup, arguments: tuple[str, ...], output: str) -> Compute:
    """The documents of the type in the node; 1 in streaming search, which has no statistics."""

    def compute(block: Block) -> Floats:
        space = block.setting.space
        return one(NOT_COUNTED[1] if space.streamed else space.documents)

    return compute
