"""One vector of the vectors of a text's tokens.

Vespa: ai.vespa.embedding.PoolingStrategy
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.components.embedders.transformer import Output
from paperwasp.errors import LanguageError

Vector = NDArray[np.float32]

POOLINGS: Final[Mapping[str, Callable[[Output], Output]]] = {
    "mean": lambda tokens: tokens.mean(axis=0, dtype=np.float64),
    "cls": lambda tokens: tokens[0],
    "last": lambda tokens: tokens[-1],
    "none": lambda pooled: pooled,
}
"""Name → from the output of one text, (tokens, dimensions), to one vector; `none`: the model has pooled."""


def pooled(output: Output, strategy: str) -> Vector:
    """The vector of one text, a copy. Errors: ValueError where the model's output is not as the strategy needs it."""
    if output.ndim != (1 if strategy == "none" else 2):
        wanted = 2 if strategy == "none" else 3
        raise ValueError(f"Expected {wanted} output dimensions with pooling-strategy '{strategy}'")
    return np.array(POOLINGS[strategy](output), np.float32)


def check_finite(output: Output) -> None:
    """Errors: ValueError for an output that no tensor is to be made of."""
    if not np.isfinite(output).all():
        raise ValueError("The model's output has a number that is not finite")


def check_pooling(shape: Sequence[int], strategy: str) -> None:
    """Errors: LanguageError where a model's output of this shape cannot be pooled so."""
    if len(shape) == 2 and strategy != "none":
        raise LanguageError("Expected pooling-strategy 'none' with 2 output dimensions")
    if len(shape) == 3 and strategy == "none":
        raise LanguageError("Unexpected pooling-strategy 'none' with 3 output dimensions")
    if len(shape) not in (2, 3):
        raise LanguageError(f"Expected 2 or 3 output dimensions, but got {len(shape)}")
