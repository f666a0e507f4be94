"""`bert-embedder`: word pieces of a vocabulary, a transformer like BERT, one vector a text.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#bert-embedder, BertBaseEmbedder.java
Differs: of int8, values are packed into bits or rounded as `hugging-face-embedder` does it; Vespa cuts off their
fractions.
"""

from __future__ import annotations

from collections.abc import Sequence

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.settings import Settings
from paperwasp.components.embedders.text_tokenizer import Tokens
from paperwasp.components.embedders.transformer import Transformer
from paperwasp.components.embedders.vectors import VectorEmbedder
from paperwasp.components.embedders.word_pieces import WordPieces


@embedder("bert-embedder")
class BertEmbedder(VectorEmbedder):
    """Makes dense tensors of one dimension."""

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings, _transformer(settings))
        self._words = WordPieces(settings.model("tokenizer-vocab"))
        self._most = settings.integer("max-tokens", 384)
        self._start = settings.integer("transformer-start-sequence-token", 101)
        self._end = settings.integer("transformer-end-sequence-token", 102)

    def encode(self, texts: Sequence[str], *, is_query: bool) -> Sequence[Tokens]:
        return [self._encode(text) for text in texts]

    def _encode(self, text: str) -> Tokens:
        ids = [self._start, *self._words.encode(text, max(self._most - 2, 0)), self._end]
        return Tokens(ids, [int(each > 0) for each in ids], [0] * len(ids))


def _transformer(settings: Settings) -> Transformer:
    return Transformer(
        settings.model("transformer-model"),
        settings.session(),
        settings.text("transformer-input-ids", "input_ids"),
        settings.text("transformer-attention-mask", "attention_mask"),
        settings.text("transformer-token-type-ids", "token_type_ids"),
        settings.text("transformer-output", "output_0"),
    )
