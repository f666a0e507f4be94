"""Components written in Python as indexing and queries call them: their values are checked, their exceptions placed.

What goes wrong in a component is a ValueError with the place in its file: it is the error of one document or query.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from paperwasp import components
from paperwasp.components.python_modules import place_of
from paperwasp.document.converters import TextOfNumber, converter_of
from paperwasp.document.operations import Value
from paperwasp.document.tensor.algebra import converted
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.document.types import DataType
from paperwasp.indexing.context import Context

_CHUNKS: Final = "array<string>"
_Given = TypeVar("_Given")


class PythonEmbedder:
    """An object with `embed`."""

    def __init__(self, embedder: components.Embedder) -> None:
        self._embedder = embedder

    def check(self) -> None:
        """Nothing: it was made, which a deployment does."""

    def load(self) -> None:
        """Nothing: it is ready."""

    def check_type(self, type: TensorType, context: Context) -> None:
        """Nothing: it gets the type with the texts."""

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text. Errors: ValueError."""
        call = _call(context, str(type), prod(type.shape))
        made = _called(lambda: list(self._embedder.embed(list(texts), call)))
        if len(made) != len(texts):
            raise ValueError(f"the embedder gave {len(made)} values for {len(texts)} texts")
        return [_tensor(each, type) for each in made]


class PythonChunker:
    """An object with `chunk`."""

    def __init__(self, chunker: components.Chunker) -> None:
        self._chunker = chunker

    def check(self, arguments: tuple[str, ...]) -> None:
        """Nothing: it gets them with each text."""

    def chunk(self, text: str, context: Context) -> list[str]:
        """The chunks of the text. Errors: ValueError."""
        call = _call(context, _CHUNKS)
        made = _called(lambda: list(self._chunker.chunk(text, call)))
        for each in made:
            if not isinstance(each, str):
                raise ValueError(f"the chunker gave a {type(each).__name__} where a str is a chunk")
        return made


class PythonGenerator:
    """An object with `generate`."""

    def __init__(self, generator: components.Generator) -> None:
        self._generator = generator

    def check(self, type: DataType) -> None:
        """Nothing: it gets the type with each prompt."""

    def generate(self, prompt: str, type: DataType, context: Context) -> Value | None:
        """A value of the type. Errors: ValueError."""
        call = _call(context, str(type))
        made = _called(lambda: self._generator.generate(prompt, call))
        return None if made is None else _value(made, type)


def _call(context: Context, type_: str, size: int = 0) -> components.Call:
    return components.Call(context.destination, context.is_query, context.language, context.arguments, type_, size)


def _called(call: Callable[[], _Given]) -> _Given:
    """The result of a call of a component. Errors: ValueError for whatever it raises."""
    try:
        return call()
    except (Exception, SystemExit) as error:
        raise ValueError(place_of(error)) from None


def _value(made: Any, type_: DataType) -> Value:
    """Errors: ValueError for what is not of the type."""
    problem = f"the generator gave a {type(made).__name__} for {type_}"
    try:
        return converter_of(type_)(made)
    except TextOfNumber:
        raise ValueError(problem) from None
    except ValueError as error:
        raise ValueError(f"{problem}: {error}") from None


def _tensor(made: Any, type_: TensorType) -> Tensor:
    """Errors: ValueError for what is not of the type."""
    if not type_.mapped:
        return Tensor(type_, ((),), _cells([made], type_))
    if len(type_.mapped) > 1 or not isinstance(made, Mapping):
        raise ValueError(f"the embedder gave a {type(made).__name__} for {type_}: label → vector is wanted")
    labels = tuple((str(label),) for label in made)
    return Tensor(type_, labels, _cells(list(made.values()), type_))


def _cells(vectors: Sequence[Any], type_: TensorType) -> NDArray[Any]:
    """The cells of some vectors, in the cell type."""
    size = prod(type_.shape)
    cells = np.zeros((len(vectors), size))
    for row, vector in zip(cells, vectors, strict=True):
        try:
            numbers = np.asarray(vector, dtype=np.float64).reshape(-1)
        except (ValueError, TypeError, OverflowError):
            raise ValueError(f"the embedder gave a {type(vector).__name__} that is not a vector of numbers") from None
        if len(numbers) != size:
            raise ValueError(f"the embedder gave {len(numbers)} numbers where {type_} has {size}")
        row[:] = numbers
    fitting = converted(cells, type_.cell_type)
    if not (np.isfinite(cells).all() and np.isfinite(fitting).all()):
        raise ValueError(f"the embedder gave a number that is not finite, as {type_.cell_type}")
    return fitting.reshape(len(vectors), *type_.shape)
