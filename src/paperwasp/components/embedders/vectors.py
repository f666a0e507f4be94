"""What embedders share that make one vector of a text: pooling, and the tensor of the type that is wanted."""

from __future__ import annotations

from collections.abc import Sequence

from paperwasp.components.embedders.base import TextEmbedder
from paperwasp.components.embedders.pooling import Vector, check_finite, check_pooling, pooled
from paperwasp.components.embedders.quantization import check_size, check_vector, vector_tensor
from paperwasp.components.embedders.settings import Settings
from paperwasp.components.embedders.text_tokenizer import Tokens
from paperwasp.components.embedders.transformer import Transformer
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.indexing.context import Context


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
