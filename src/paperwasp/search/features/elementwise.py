"""elementwise(bm25(field),dimension,cells): the BM25 of each element of an indexed field that the query matches.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#elementwise-bm25
"""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import CELL_TYPES, Dimension, TensorType
from paperwasp.errors import LanguageError
from paperwasp.search.features.block import Block, terms_of
from paperwasp.search.features.bm25 import DEFAULT_B, DEFAULT_K1, Bm25Parameters, term_idf
from paperwasp.search.features.element_rows import ElementPlaces, element_places
from paperwasp.search.features.family import Floats, RankSetup, TensorCompute, check_field, register
from paperwasp.text.parsing.nearest import did_you_mean

NAME: Final = "elementwise"


def _type(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorType:
    cells = _cells(arguments)
    if cells not in CELL_TYPES:
        known = " or ".join(CELL_TYPES)
        raise LanguageError(f"the cell type is {known}, not {cells!r}{did_you_mean(cells, CELL_TYPES)}")
    return TensorType.of([Dimension(arguments[1])], cells)


def _cells(arguments: tuple[str, ...]) -> str:
    return arguments[2] if len(arguments) > 2 else "double"


def _check(setup: RankSetup, arguments: tuple[str, ...], output: str) -> str:
    feature = arguments[0]
    if not (feature.startswith("bm25(") and feature.endswith(")")):
        raise LanguageError(f"{NAME} takes bm25(field), not {feature!r}")
    return check_field("index", feature[5:-1], setup, NAME)


def parameters_of(setup: RankSetup, arguments: tuple[str, ...]) -> Bm25Parameters:
    """The rank properties of the feature, those of its bm25(field), or the defaults."""
    own, of_field = f"{NAME}({arguments[0]},{arguments[1]},{_cells(arguments)})", arguments[0]
    average = setup.number(math.nan, f"{own}.averageElementLength", f"{of_field}.averageFieldLength")
    return Bm25Parameters(
        setup.number(DEFAULT_K1, f"{own}.k1", f"{of_field}.k1"),
        setup.number(DEFAULT_B, f"{own}.b", f"{of_field}.b"),
        None if math.isnan(average) else average,
    )


@register(NAME, "name", "name", "name", outputs=("score",), optional=1, type_=_type, pending=_check)
def bind(setup: RankSetup, arguments: tuple[str, ...], output: str) -> TensorCompute:
    field = arguments[0][5:-1]
    parameters = parameters_of(setup, arguments)
    type_ = _type(setup, arguments, output)

    def compute(block: Block) -> TensorBatch:
        average = parameters.average_field_length
        if average is None:
            average = block.setting.average_lengths(field)[1] or 1.0
        keys, scores = [np.zeros(0, np.int64)], [np.zeros(0)]
        for number, term in terms_of(block, field):
            found, occurrences, lengths = _by_element(element_places(block, number, field))
            keys.append(found)
            scores.append(parameters.scores(occurrences, lengths, average, term_idf(term, number, block)))
        return _summed(np.concatenate(keys), np.concatenate(scores), len(block.lids), type_)

    return compute


def _by_element(places: ElementPlaces) -> tuple[NDArray[np.int64], Floats, Floats]:
    """(key, occurrences, length) of each element that has the term; a key is hit << 32 | element."""
    ends = places.offsets.astype(np.int64)
    counts = ends[1:] - ends[:-1]
    hits = np.repeat(np.arange(len(counts), dtype=np.int64), counts)
    keys, first, occurrences = np.unique(hits << 32 | places.elements, return_index=True, return_counts=True)
    return keys, occurrences.astype(np.float64), places.lengths[first].astype(np.float64)


def _summed(keys: NDArray[np.int64], scores: Floats, hits: int, type_: TensorType) -> TensorBatch:
    """The sums of equal keys, labelled with the numbers of the elements."""
    found, places = np.unique(keys, return_inverse=True)
    sums = np.bincount(places, scores, len(found))
    starts = np.searchsorted(found, np.arange(hits + 1, dtype=np.int64) << 32)
    labels = (found & 0xFFFFFFFF).reshape(-1, 1)
    return TensorBatch(type_, starts.astype(np.int64), labels, converted(sums, type_.cell_type))
