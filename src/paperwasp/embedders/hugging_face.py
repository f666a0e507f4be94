"""`hugging-face-embedder`: any tokenizer of Hugging Face, any transformer, one vector a text.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#huggingface-embedder, HuggingFaceEmbedder.java
Differs: texts are run together where the model gives the same for them; that may change the last bits of a value.
"""

from __future__ import annotations

from collections.abc import Sequence

from paperwasp.embedders.base import TextEmbedder, embedder
from paperwasp.embedders.pooling import Vector, pooled
from paperwasp.embedders.quantization import check_vector, vector_tensor
from paperwasp.embedders.settings import Settings
from paperwasp.embedders.text_tokenizer import TextTokenizer, Tokens
from paperwasp.embedders.transformer import Transformer
from paperwasp.errors import LanguageError
from paperwasp.indexing.context import Context
from paperwasp.ranking.onnx_file import read_onnx
from paperwasp.tensor.types import TensorType
from paperwasp.tensor.value import Tensor


@embedder("hugging-face-embedder")
class HuggingFaceEmbedder(TextEmbedder[Tokens, Vector]):
    """Makes dense tensors of one dimension."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._pooling = settings.text("pooling-strategy", "mean")
        self._normalize = settings.flag("normalize")
        self._transformer = _transformer(settings)
        self._tokenizer = TextTokenizer(settings.model("tokenizer-model"), settings.integer("max-tokens", 512))

    def check(self) -> None:
        """Errors: LanguageError."""
        check_pooling(self._transformer.check(), self._pooling)

    def load(self) -> None:
        self._transformer.load()

    def check_type(self, type: TensorType, context: Context) -> None:
        check_vector(type)

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Tokens]:
        return self._tokenizer.encode(texts)

    def length(self, item: Tokens) -> int:
        return len(item.ids)

    def run(self, items: Sequence[Tokens]) -> Sequence[Vector]:
        return [pooled(output, self._pooling) for output in self._transformer.run(items)]

    def size_bytes(self, made: Vector) -> int:
        return made.nbytes

    def tensor(self, made: Vector, type: TensorType, context: Context) -> Tensor:
        return vector_tensor(made, type, normalize=self._normalize)


def check_pooling(shape: Sequence[int], strategy: str) -> None:
    """Errors: LanguageError where an output of this shape cannot be pooled so."""
    if len(shape) == 2 and strategy != "none":
        raise LanguageError("Expected pooling-strategy 'none' with 2 output dimensions")
    if len(shape) == 3 and strategy == "none":
        raise LanguageError("Unexpected pooling-strategy 'none' with 3 output dimensions")
    if len(shape) not in (2, 3):
        raise LanguageError(f"Expected 2 or 3 output dimensions, but got {len(shape)}")


def _transformer(settings: Settings) -> Transformer:
    """The model. One with a single input has no attention mask, one with two has no types of tokens, as in Vespa."""
    file = settings.model("transformer-model")
    count = len(read_onnx(file.name, file.content).inputs)
    mask = settings.text("transformer-attention-mask", "attention_mask") if count > 1 else ""
    types = settings.text("transformer-token-type-ids", "token_type_ids") if count > 2 else ""
    ids = settings.text("transformer-input-ids", "input_ids")
    output = settings.text("transformer-output", "last_hidden_state")
    return Transformer(file, settings.session(), ids, mask, types, output)
