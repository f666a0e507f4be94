"""Running an ONNX model for a block of hits: all in few runs where its first dimension is free, else one after another.

A hit that the model fails for has zeros, as in Vespa, and the failure is logged.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.core.clock import check_time
from paperwasp.document.tensor.batch import TensorBatch
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import DTYPES
from paperwasp.errors import TooLarge
from paperwasp.ranking.onnx.file import OnnxSignature
from paperwasp.ranking.onnx.session import Arrays, OnnxSession, RunFailed, TooMuchMemory

_LOG: Final = logging.getLogger("paperwasp.ranking")


class OnnxRun:
    """A model of which every input is fed. `load` gives its session, which is kept from the first run on."""

    def __init__(
        self, name: str, signature: OnnxSignature, outputs: Mapping[str, TensorType], load: Callable[[], OnnxSession]
    ) -> None:
        """`outputs`: the types of those that are asked for, of one hit."""
        self.name = name
        self._inputs = [value.name for value in signature.inputs]
        self._is_free = all(value.sizes and isinstance(value.sizes[0], str) for value in signature.inputs)
        self._outputs = outputs
        self._load = load
        self._session: OnnxSession | None = None

    def outputs(self, inputs: Sequence[TensorBatch]) -> dict[str, TensorBatch]:
        """The outputs for each hit; single ones where all inputs are. `inputs`: in the order of the model's.

        Errors: OutOfTime; TooLarge where a hit takes more memory than models may; InternalError where the model cannot
        be loaded.
        """
        if self._session is None:
            self._session = self._load()
        hits = max(1 if batch.is_single else batch.hits for batch in inputs) if inputs else 1
        is_single = all(batch.is_single for batch in inputs)
        cells = {name: batch.cells for name, batch in zip(self._inputs, inputs, strict=True)}
        found = {name: np.zeros((hits, *type_.shape), DTYPES[type_.cell_type]) for name, type_ in self._outputs.items()}
        for start, end in self._chunks(self._session, cells, hits):
            check_time()
            self._work(self._session, cells, start, end, found)
        return {name: TensorBatch.dense(self._outputs[name], values, is_single) for name, values in found.items()}

    def _chunks(self, session: OnnxSession, cells: Arrays, hits: int) -> list[tuple[int, int]]:
        """The hits of each run."""
        size = 1
        shapes = {name: values.shape[1:] for name, values in cells.items()}
        if hits > 1 and self._is_free and all(shape[0] == 1 for shape in shapes.values()):
            most = limits.ONNX_BATCH_CELLS // max(1, sum(int(np.prod(shape)) for shape in shapes.values()))
            size = max(1, min(limits.ONNX_BATCH_HITS, most)) if session.takes_batches(shapes) else 1
        return [(start, min(hits, start + size)) for start in range(0, hits, size)]

    def _work(
        self, session: OnnxSession, cells: Arrays, start: int, end: int, found: Mapping[str, NDArray[Any]]
    ) -> None:
        """Hits `start` to `end` in one run; in several if that fails."""
        fed = {name: _rows(values, start, end) for name, values in cells.items()}
        try:
            given = session.run(fed)
            for name, values in found.items():
                values[start:end] = given[name].reshape(end - start, *values.shape[1:])
        except (RunFailed, ValueError) as error:
            if end - start == 1 and isinstance(error, TooMuchMemory):
                raise TooLarge(f"onnx model {self.name}: {error.message}") from None
            if end - start == 1:
                _LOG.warning("onnx model %s failed for a hit, which has zeros: %s", self.name, error)
                return
            for hit in range(start, end):
                self._work(session, cells, hit, hit + 1, found)


def _rows(cells: NDArray[Any], start: int, end: int) -> NDArray[Any]:
    """The cells of these hits; of several, below each other in the first dimension, which is 1 of each."""
    own = cells[start:end] if len(cells) > 1 else cells
    if end - start == 1:
        one: NDArray[Any] = own[0]
        return one
    return np.broadcast_to(own, (end - start, *cells.shape[1:])).reshape(end - start, *cells.shape[2:])
