"""voyage-ai-embedder: Voyage's embeddings of texts, of chunks in their document's context, and of texts among images.

    voyage-…              /v1/embeddings                 each text by itself
    voyage-context-…      /v1/contextualizedembeddings   the texts of a call together, as chunks of one document
    voyage-multimodal-…   /v1/multimodalembeddings       each text by itself

Vespa: VoyageAIEmbedder.java
Differs: several texts go in one request.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, cast

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.http_embedder import HttpEmbedder, indexed
from paperwasp.components.embedders.http_vectors import Quantization, Sent, sent_as
from paperwasp.components.embedders.settings import Settings
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Unavailable
from paperwasp.indexing.context import Context

_TEXT_PATH: Final = "https://api.voyageai.com/v1/embeddings"
_MULTIMODAL, _CONTEXT = "voyage-multimodal-", "voyage-context-"
_PATHS: Final = {
    _MULTIMODAL: "https://api.voyageai.com/v1/multimodalembeddings",
    _CONTEXT: "https://api.voyageai.com/v1/contextualizedembeddings",
}


@embedder("voyage-ai-embedder")
class VoyageEmbedder(HttpEmbedder):
    """Asks for vectors of queries or documents, in the form that the tensor's type needs."""

    default_endpoint = _TEXT_PATH
    texts_at_once = 128

    def __init__(self, settings: Settings) -> None:
        self._kind = next((kind for kind in _PATHS if settings.text("model").startswith(kind)), "")
        super().__init__(settings)
        self._dimensions = settings.integer("dimensions", 0)
        self._quantization = cast(Quantization, settings.text("quantization", "auto"))
        self._truncate = settings.flag("truncate", True)

    def endpoint(self, url: str) -> str:
        """That of the kind of model, where none is configured."""
        return _PATHS.get(self._kind, url) if url == _TEXT_PATH else url

    def form(self, type: TensorType) -> Sent:
        """As `quantization` says, or as fits the type."""
        return sent_as(type, self._dimensions, self._quantization)

    def key(self, size: int, form: Sent, context: Context) -> Hashable:
        """Texts of queries and of documents have other vectors."""
        return size, form, context.is_query

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text, which in context depends on all of them."""
        if self._kind != _CONTEXT:
            return super().embed(texts, type, context)
        return self.embed_together(texts, type, context)

    def body(self, texts: Sequence[str], size: int, form: Sent, context: Context) -> Mapping[str, Any]:
        """The request, as the interface of the model's kind has it."""
        common = {
            "model": self.model,
            "input_type": "query" if context.is_query else "document",
            "output_dimension": self._dimensions,
            "output_dtype": form,
        }
        if self._kind == _CONTEXT:
            return {"inputs": [list(texts)], **common}
        if self._kind == _MULTIMODAL:
            inputs = [{"content": [{"type": "text", "text": text}]} for text in texts]
            return {"inputs": inputs, **common, "truncation": self._truncate}
        return {"input": list(texts), **common, "truncation": self._truncate}

    def embeddings(self, answer: Any) -> list[Any]:
        """The vectors; in context those of the one document."""
        if self._kind != _CONTEXT:
            return indexed(answer, self.name)
        try:
            return indexed(answer["data"][0], self.name)
        except (LookupError, TypeError):
            raise Unavailable(f"{self.name} answered without embeddings: {str(answer)[:200]}") from None
