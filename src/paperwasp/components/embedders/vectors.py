"""Embedders that make one vector of a text: pooling of the vectors of its tokens, and the tensor of the type that is
wanted.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from paperwasp.components.embedders.base import Settings, TextEmbedder, embedder
from paperwasp.components.embedders.text_tokenizer import TextTokenizer, Tokens, WordPieces
from paperwasp.components.embedders.transformer import Output, Transformer
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import LanguageError
from paperwasp.indexing.components import Context
from paperwasp.ranking.onnx.file import read_onnx

# One vector of the vectors of a text's tokens.
#
# Vespa: ai.vespa.embedding.PoolingStrategy


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


# A vector of a model as a tensor of the type that is wanted: cut, normalized, rounded, or packed into bits.
#
# Vespa: HuggingFaceEmbedder.embed; https://docs.vespa.ai/en/rag/binarizing-vectors.html


def check_vector(type_: TensorType) -> None:
    """Errors: ValueError for a type that is not one dense dimension."""
    if len(type_.dimensions) != 1:
        raise ValueError(f"Error in embedding to type '{type_}': should only have one dimension.")
    if type_.mapped:
        raise ValueError(f"Error in embedding to type '{type_}': dimension should be indexed.")
    if not type_.shape[0]:
        raise ValueError(f"Error in embedding to type '{type_}': dimension should have a size.")


def check_size(dimensions: int, type_: TensorType) -> None:
    """Errors: ValueError for a type of one dense dimension with more cells than a vector of `dimensions` gives."""
    if type_.shape[0] > dimensions:
        raise ValueError(f"Cannot quantize {dimensions} dimensions into {type_}")


def vector_tensor(vector: Vector, type_: TensorType, *, normalize: bool) -> Tensor:
    """The first values of a vector, as many as the type has; of int8, bits where that is an eighth of them or less.

    Errors: ValueError where the vector has fewer.
    """
    size = type_.shape[0]
    if type_.cell_type == "int8" and size <= len(vector) // 8:
        return _tensor(type_, packed(vector[: 8 * size]))
    check_size(len(vector), type_)
    values = vector[:size].astype(np.float64)
    if normalize:
        length = float(np.sqrt(values @ values))
        values = values / length if length else values
    if type_.cell_type == "int8":
        return _tensor(type_, np.clip(np.floor(values.astype(np.float32) * 127.0 + 0.5), -128, 127).astype(np.int8))
    return _tensor(type_, values)


def packed(values: NDArray[Any]) -> NDArray[np.int8]:
    """A bit for each value of the last axis, 1 where it is above 0, the first of eight the highest of its byte."""
    return np.packbits(values > 0, axis=-1).view(np.int8)


def _tensor(type_: TensorType, values: NDArray[Any]) -> Tensor:
    return Tensor(type_, ((),), as_cells(values[None], type_.cell_type))


class VectorEmbedder(TextEmbedder[Tokens, Vector]):
    """Makes dense tensors of one dimension. What is kept of a text is its whole vector."""

    def __init__(self, settings: Settings, transformer: Transformer) -> None:
        super().__init__(settings)
        self._transformer = transformer
        self._pooling = settings.text("pooling-strategy", "mean")
        self._normalize = settings.flag("normalize")

    def check(self) -> None:
        """Errors: LanguageError."""
        check_pooling(self._transformer.check(), self._pooling)

    def load(self) -> None:
        self._transformer.load()

    def check_type(self, type: TensorType, context: Context) -> None:
        check_vector(type)
        if self._transformer.dimensions is not None:
            check_size(self._transformer.dimensions, type)

    def length(self, item: Tokens) -> int:
        return len(item.ids)

    def run(self, items: Sequence[Tokens]) -> Sequence[Vector]:
        return [pooled(output, self._pooling) for output in self._transformer.run(items)]

    def size_bytes(self, made: Vector) -> int:
        return made.nbytes

    def tensor(self, made: Vector, type: TensorType, context: Context) -> Tensor:
        check_finite(made)
        return vector_tensor(made, type, normalize=self._normalize)


# `hugging-face-embedder`: any tokenizer of Hugging Face, any transformer, one vector a text.
#
# Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#huggingface-embedder, HuggingFaceEmbedder.java
# Differs: texts are run together where the model gives the same for them; that may change the last bits of a value.


@embedder("hugging-face-embedder")
class HuggingFaceEmbedder(VectorEmbedder):
    """Makes dense tensors of one dimension."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _transformer(settings))
        self._tokenizer = TextTokenizer(settings.model("tokenizer-model"), settings.integer("max-tokens", 512))
        self._said_tokens = settings.integer("max-tokens", 0) or None

    def notes(self) -> Iterator[str]:
        return self._tokenizer.notes("max-tokens", self._said_tokens)

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Tokens]:
        return self._tokenizer.encode(texts)


def _transformer(settings: Settings) -> Transformer:
    """The model. One with a single input has no attention mask, one with two has no types of tokens, as in Vespa."""
    file = settings.model("transformer-model")
    count = len(read_onnx(file.name, file.content).inputs)
    mask = settings.text("transformer-attention-mask", "attention_mask") if count > 1 else ""
    types = settings.text("transformer-token-type-ids", "token_type_ids") if count > 2 else ""
    ids = settings.text("transformer-input-ids", "input_ids")
    output = settings.text("transformer-output", "last_hidden_state")
    return Transformer(file, settings.session(), ids, mask, types, output)


# `bert-embedder`: word pieces of a vocabulary, a transformer like BERT, one vector a text.
#
# Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#bert-embedder, BertBaseEmbedder.java
# Differs: of int8, values are packed into bits or rounded as `hugging-face-embedder` does it; Vespa cuts off their
# fractions.


@embedder("bert-embedder")
class BertEmbedder(VectorEmbedder):
    """Makes dense tensors of one dimension."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _bert_transformer(settings))
        self._words = WordPieces(settings.model("tokenizer-vocab"))
        self._most = settings.integer("max-tokens", 384)
        self._start = settings.integer("transformer-start-sequence-token", 101)
        self._end = settings.integer("transformer-end-sequence-token", 102)

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Tokens]:
        most_words = max(self._most - 2, 0)
        all_ids = [[self._start, *self._words.encode(text, most_words), self._end] for text in texts]
        return [Tokens(ids, [int(each > 0) for each in ids], [0] * len(ids)) for ids in all_ids]


def _bert_transformer(settings: Settings) -> Transformer:
    return Transformer(
        settings.model("transformer-model"),
        settings.session(),
        settings.text("transformer-input-ids", "input_ids"),
        settings.text("transformer-attention-mask", "attention_mask"),
        settings.text("transformer-token-type-ids", "token_type_ids"),
        settings.text("transformer-output", "output_0"),
    )
