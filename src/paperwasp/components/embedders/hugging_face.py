"""`hugging-face-embedder`: any tokenizer of Hugging Face, any transformer, one vector a text.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#huggingface-embedder, HuggingFaceEmbedder.java
Differs: texts are run together where the model gives the same for them; that may change the last bits of a value.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.settings import Settings
from paperwasp.components.embedders.text_tokenizer import TextTokenizer, Tokens
from paperwasp.components.embedders.transformer import Transformer
from paperwasp.components.embedders.vectors import VectorEmbedder
from paperwasp.ranking.onnx.file import read_onnx


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
