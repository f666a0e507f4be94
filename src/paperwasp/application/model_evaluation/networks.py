"""Functions that are outputs of an ONNX model: one function for each output, and an argument for each input.

What waits together is one run where the model allows it: where the first dimension of all inputs is open, 1 is given,
and a trial has shown that rows do not depend on each other (`OnnxSession.takes_batches`).

Vespa: https://docs.vespa.ai/en/ranking/onnx.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final

import numpy as np

from paperwasp import limits
from paperwasp.application.model_evaluation.function import NotEvaluated, Values
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.tensor.value import DTYPES, Tensor
from paperwasp.errors import LanguageError, PaperwaspError
from paperwasp.ranking.onnx.file import OnnxSignature, OnnxValue
from paperwasp.ranking.onnx.session import Arrays, OnnxSession, RunFailed

Shapes = tuple[tuple[int, ...], ...]
_MOST_DIMENSIONS: Final = 10
"""Dimensions are in the order of their names, and d10 would stand before d2."""


class NetworkFunction:
    """One output of a model. The session is loaded when the first function of the model is evaluated."""

    def __init__(self, signature: OnnxSignature, output: OnnxValue, load: Callable[[], OnnxSession]) -> None:
        """Errors: LanguageError for an input of which the file does not say how many dimensions it has."""
        self.name = output.identifier
        self.arguments = argument_types(signature)
        self._inputs = [(value.name, value.identifier) for value in signature.inputs]
        self._is_free = all(value.sizes and isinstance(value.sizes[0], str) for value in signature.inputs)
        self.most_rows = limits.ONNX_BATCH_HITS if self._is_free else 1
        self._output = output
        self._load = load
        self._session: OnnxSession | None = None

    def evaluate_all(self, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        """As `Function.evaluate_all`. A row that the model fails for does not concern the others."""
        if self._session is None:
            self._session = self._load()
        found: list[Tensor | PaperwaspError | None] = [None] * len(rows)
        for places in self._runs(self._session, rows):
            for place, result in zip(places, self._run(self._session, [rows[n] for n in places]), strict=True):
                found[place] = result
        return [each for each in found if each is not None]

    def _runs(self, session: OnnxSession, rows: Sequence[Values]) -> Iterator[list[int]]:
        """The rows of each run, by number."""
        together: dict[Shapes, list[int]] = {}
        for place, row in enumerate(rows):
            together.setdefault(tuple(row[name].type.shape for _, name in self._inputs), []).append(place)
        for shapes, places in together.items():
            size = self._rows_at_once(session, shapes) if len(places) > 1 else 1
            yield from (places[start : start + size] for start in range(0, len(places), size))

    def _rows_at_once(self, session: OnnxSession, shapes: Shapes) -> int:
        if not self._is_free or not all(shape and shape[0] == 1 for shape in shapes):
            return 1
        most = limits.ONNX_BATCH_CELLS // max(1, sum(int(np.prod(shape)) for shape in shapes))
        names = (name for name, _ in self._inputs)
        if most < 2 or not session.takes_batches(dict(zip(names, shapes, strict=True))):
            return 1
        return min(limits.ONNX_BATCH_HITS, most)

    def _run(self, session: OnnxSession, rows: Sequence[Values]) -> list[Tensor | PaperwaspError]:
        fed = {name: np.concatenate([row[argument].cells[0] for row in rows]) for name, argument in self._inputs}
        if len(rows) == 1:
            fed = {name: rows[0][argument].cells[0] for name, argument in self._inputs}
        try:
            return self._split(session.run(fed), len(rows))
        except RunFailed as error:
            if len(rows) == 1:
                return [NotEvaluated(f"The model failed for these values: {error.message}")]
        return [result for row in rows for result in self._run(session, [row])]

    def _split(self, found: Arrays, rows: int) -> list[Tensor | PaperwaspError]:
        values = np.asarray(found[self._output.name])
        parts = np.split(values, rows) if rows > 1 else [values]
        return [_tensor(part, self._output) for part in parts]


def _tensor(values: np.ndarray[tuple[int, ...], np.dtype[np.generic]], output: OnnxValue) -> Tensor | PaperwaspError:
    if not values.size:
        return NotEvaluated(f"Output '{output.identifier}' has no cells: its shape is {list(values.shape)}")
    if values.ndim > _MOST_DIMENSIONS:
        return NotEvaluated(f"Output '{output.identifier}' has more than {_MOST_DIMENSIONS} dimensions")
    dimensions = [Dimension(f"d{number}", size) for number, size in enumerate(values.shape)]
    type_ = TensorType.of(dimensions, output.cell_type)
    with np.errstate(all="ignore"):
        return Tensor(type_, ((),), values.astype(DTYPES[type_.cell_type])[np.newaxis])


def argument_types(signature: OnnxSignature) -> Mapping[str, TensorType]:
    """Argument → type, with dimensions d0, d1, …; by name. Errors: LanguageError."""
    found: dict[str, TensorType] = {}
    for value in signature.inputs:
        if value.sizes is None:
            raise LanguageError(f"the model does not say how many dimensions input {value.name!r} has")
        if len(value.sizes) > _MOST_DIMENSIONS:
            raise LanguageError(f"input {value.name!r} has more than {_MOST_DIMENSIONS} dimensions")
        if value.identifier in found:
            raise LanguageError(f"two inputs of the model have the name {value.identifier!r}")
        sizes = (size if isinstance(size, int) else 0 for size in value.sizes)
        dimensions = [Dimension(f"d{number}", size) for number, size in enumerate(sizes)]
        found[value.identifier] = TensorType.of(dimensions, value.cell_type)
    return dict(sorted(found.items()))
