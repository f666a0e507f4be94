"""`splade-embedder`: a weight for each word piece that says something of a text, whether it is in the text or not.

    weight of a word piece = log(1 + max(0, its largest logit of any token))

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#splade-embedder, SpladeEmbedder.java
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from paperwasp.components.embedders.base import Settings, TextEmbedder, embedder
from paperwasp.components.embedders.text_tokenizer import TextTokenizer, Tokens
from paperwasp.components.embedders.transformer import Transformer
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.errors import LanguageError
from paperwasp.indexing.components import Context
from paperwasp.ranking.onnx.file import read_onnx


class Weights(NamedTuple):
    """The word pieces of a text above the threshold."""

    tokens: NDArray[np.int64]
    weights: NDArray[np.float64]


@embedder("splade-embedder")
class SpladeEmbedder(TextEmbedder[Tokens, Weights]):
    """Makes tensors of one mapped dimension, whose labels are word pieces."""

    batch_tokens: ClassVar[int] = 256
    """For each token there is a logit of each entry of the vocabulary."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._threshold = settings.number("term-score-threshold", 0.0)
        self._transformer = _transformer(settings)
        self._tokenizer = TextTokenizer(settings.model("tokenizer-model"), settings.integer("max-tokens", 512))
        self._said_tokens = settings.integer("max-tokens", 0) or None

    def check(self) -> None:
        """Errors: LanguageError."""
        if len(self._transformer.check()) != 3:
            raise LanguageError("The indexed tensor must be 3-dimensional")

    def notes(self) -> Iterator[str]:
        return self._tokenizer.notes("max-tokens", self._said_tokens)

    def load(self) -> None:
        self._transformer.load()

    def check_type(self, type: TensorType, context: Context) -> None:
        if len(type.dimensions) != 1 or not type.mapped:
            raise ValueError(f"Invalid splade embedder tensor destination. Wanted a mapped 1-d tensor, got {type}")

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Tokens]:
        return self._tokenizer.encode(texts)

    def length(self, item: Tokens) -> int:
        return len(item.ids)

    def run(self, items: Sequence[Tokens]) -> Sequence[Weights]:
        made: list[Weights] = []
        for logits in self._transformer.run(items):
            weights = np.log1p(np.maximum(logits.max(axis=0).astype(np.float64), 0.0))
            tokens = np.flatnonzero(weights > self._threshold)
            made.append(Weights(tokens, weights[tokens]))
        return made

    def size_bytes(self, made: Weights) -> int:
        return made.tokens.nbytes + made.weights.nbytes

    def tensor(self, made: Weights, type: TensorType, context: Context) -> Tensor:
        labelled = {
            self._tokenizer.decode(token): weight for token, weight in zip(*map(np.ndarray.tolist, made), strict=True)
        }
        cells = as_cells(np.array(list(labelled.values()), np.float64), type.cell_type)
        return Tensor(type, tuple((label,) for label in labelled), cells)


def _transformer(settings: Settings) -> Transformer:
    """The model; one with two inputs has no types of tokens."""
    file = settings.model("transformer-model")
    count = len(read_onnx(file.name, file.content).inputs)
    return Transformer(
        file,
        settings.session(),
        settings.text("transformer-input-ids", "input_ids"),
        settings.text("transformer-attention-mask", "attention_mask"),
        settings.text("transformer-token-type-ids", "token_type_ids") if count > 2 else "",
        settings.text("transformer-output", "logits"),
    )
