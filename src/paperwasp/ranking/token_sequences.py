"""The inputs of models for texts, made of sequences of tokens: `start, first, end, second, end, …`, and zeros behind.

tokenInputIds and customTokenInputIds are the tokens, tokenTypeIds tells the first sequence (0) from those behind it
(1), tokenAttentionMask what is a token (1) from the zeros behind. A sequence has as many tokens as are above zero.

Vespa: https://docs.vespa.ai/en/reference/ranking/rank-features.html#tokenInputIds(length,input_1,input_2,...)
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import Dimension, TensorType

CLS: Final = 101
SEP: Final = 102

_Counts = NDArray[np.int64]


def sequence_type(length: int) -> TensorType:
    return TensorType.of([Dimension("d0", 1), Dimension("d1", length)], "float")


def token_ids(length: int, parts: Sequence[TensorBatch], start: int = CLS, end: int = SEP) -> TensorBatch:
    """The tokens. `parts`: dense, with one dimension each."""
    hits, places = _hits(parts), np.arange(length)
    found = np.zeros((hits, length), np.float32)
    found[:, :1] = start
    begin = np.ones((hits, 1), np.int64)
    for part in parts:
        cells, count = np.broadcast_to(part.cells, (hits, part.cells.shape[1])), _counts(part, hits)[:, None]
        behind = places - begin
        if cells.shape[1]:
            tokens = np.take_along_axis(cells, np.clip(behind, 0, cells.shape[1] - 1), 1)
            np.copyto(found, tokens, where=(behind >= 0) & (behind < count), casting="unsafe")
        found[behind == count] = end
        begin = begin + count + 1
    return _sequence(found, parts)


def token_types(length: int, parts: Sequence[TensorBatch]) -> TensorBatch:
    first, whole = _ends(parts[:1], _hits(parts)), _ends(parts, _hits(parts))
    places = np.arange(length)
    return _sequence((places >= first) & (places < whole), parts)


def token_mask(length: int, parts: Sequence[TensorBatch]) -> TensorBatch:
    return _sequence(np.arange(length) < _ends(parts, _hits(parts)), parts)


def _hits(parts: Sequence[TensorBatch]) -> int:
    return max(1 if part.is_single else part.hits for part in parts)


def _counts(part: TensorBatch, hits: int) -> _Counts:
    counts: _Counts = np.broadcast_to((part.cells > 0).sum(1), hits)
    return counts


def _ends(parts: Sequence[TensorBatch], hits: int) -> _Counts:
    """(hits, 1): where the tokens of these parts end, with those between them."""
    ends = np.ones(hits, np.int64)
    for part in parts:
        ends += _counts(part, hits) + 1
    return ends[:, None]


def _sequence(cells: NDArray[Any], parts: Sequence[TensorBatch]) -> TensorBatch:
    type_ = sequence_type(cells.shape[1])
    return TensorBatch.dense(type_, cells.astype(np.float32)[:, None, :], all(part.is_single for part in parts))


FEATURES: Final[Mapping[str, tuple[int, Callable[..., TensorBatch]]]] = {
    "tokenInputIds": (1, token_ids),
    "tokenTypeIds": (1, token_types),
    "tokenAttentionMask": (1, token_mask),
    "customTokenInputIds": (
        3,
        lambda start, end, length, parts: token_ids(length, parts, start, end),
    ),
}
"""Name → how many of its arguments are numbers, and the function of these and the sequences."""
