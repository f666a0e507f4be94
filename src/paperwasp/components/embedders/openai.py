"""openai-embedder: OpenAI's embeddings, and those of services with the same interface.

Vespa: OpenAIEmbedder.java
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.http_embedder import HttpEmbedder
from paperwasp.components.embedders.http_vectors import Sent, sent_as
from paperwasp.components.embedders.settings import Settings
from paperwasp.document.tensor.types import TensorType
from paperwasp.indexing.context import Context

_FIXED_MODEL: Final = "text-embedding-ada-002"
_FIXED_DIMENSIONS: Final = 1536


@embedder("openai-embedder")
class OpenAIEmbedder(HttpEmbedder):
    """Asks for vectors of a number of dimensions, as 32-bit floats."""

    default_endpoint = "https://api.openai.com/v1/embeddings"
    texts_at_once = 2048

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._dimensions = settings.integer("dimensions", 0)
        if self.model == _FIXED_MODEL and self._dimensions != _FIXED_DIMENSIONS:
            fixed = f"has a fixed output size of {_FIXED_DIMENSIONS}; configure dimensions={_FIXED_DIMENSIONS}"
            raise ValueError(f"Model '{self.model}' {fixed}")

    def form(self, type: TensorType) -> Sent:
        """Floats."""
        return sent_as(type, self._dimensions, "float")

    def body(self, texts: Sequence[str], size: int, form: Sent, context: Context) -> Mapping[str, Any]:
        """`dimensions` is left out for the one model that refuses it."""
        dimensions = {} if self.model == _FIXED_MODEL else {"dimensions": self._dimensions}
        return {"input": list(texts), "model": self.model, **dimensions, "encoding_format": "base64"}
