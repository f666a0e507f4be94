"""bm25_for_labels(field), matches_for_labels(field) and matches_for_labels(): cells for labels of the query's items.

A label has a cell where one of its terms matches, in the field or in any.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#bm25_for_labels
"""

from __future__ import annotations

from typing import Final

import numpy as np

from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.search.features.block import Block
from paperwasp.search.features.bm25 import bm25_scores
from paperwasp.search.features.family import Floats, RankSetup, TensorCompute, register

TYPE: Final = TensorType.of([Dimension("label")], "float")


def _labels(block: Block) -> list[str]:
    return sorted({term.label for term in block.terms if term.label is not None})


def _batch(block: Block, labels: list[str], columns: list[Floats]) -> TensorBatch:
    """Of each label the values that are not 0."""
    values = np.array(columns, np.float64).reshape(len(labels), len(block.lids)).T
    hits, numbers = np.nonzero(values)
    starts = np.searchsorted(hits, np.arange(len(block.lids) + 1)).astype(np.int64)
    known = block.labels.numbers(labels)
    return TensorBatch(TYPE, starts, known[numbers].reshape(-1, 1), converted(values[hits, numbers], "float"))


@register("bm25_for_labels", "index", outputs=("score",), type_=lambda setup, arguments, output: TYPE)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    scores = bm25_scores(setup, arguments[0])

    def compute(block: Block) -> TensorBatch:
        labels = _labels(block)
        return _batch(block, labels, [scores(block, label) for label in labels])

    return compute


@register("matches_for_labels", "field", optional=1, type_=lambda setup, arguments, output: TYPE)
def bind_matches(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    def compute(block: Block) -> TensorBatch:
        labels = _labels(block)
        return _batch(block, labels, [_matched(block, label, arguments) for label in labels])

    return compute


def _matched(block: Block, label: str, only: tuple[str, ...]) -> Floats:
    """1 where a term with the label matches in one of these fields, or in any if there are none."""
    found = np.zeros(len(block.lids))
    for number, term in enumerate(block.terms):
        if term.label == label:
            for field in term.fields:
                if not only or field in only:
                    found = np.maximum(found, block.matched(number, field))
    return found
