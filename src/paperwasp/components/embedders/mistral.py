"""mistral-embedder: Mistral's embeddings.

Vespa: MistralEmbedder.java
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.http_embedder import HttpEmbedder
from paperwasp.components.embedders.http_vectors import Quantization, Sent, sent_as
from paperwasp.components.embedders.settings import Settings
from paperwasp.document.tensor.types import TensorType
from paperwasp.indexing.context import Context

_FIXED_MODELS: Final = "mistral-embed"
"""How the names of models begin whose vectors have one size."""


@embedder("mistral-embedder")
class MistralEmbedder(HttpEmbedder):
    """Asks for vectors of a number of dimensions, in the form that the tensor's type needs."""

    default_endpoint = "https://api.mistral.ai/v1/embeddings"
    texts_at_once = 512

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        if not self.secret_name.strip():
            raise ValueError("'api-key-secret-ref' must be configured for Mistral embedder")
        self._dimensions = settings.integer("dimensions", 0)
        self._quantization = cast(Quantization, settings.text("quantization", "auto"))

    def form(self, type: TensorType) -> Sent:
        """As `quantization` says, or as fits the type."""
        return sent_as(type, self._dimensions, self._quantization)

    def body(self, texts: Sequence[str], size: int, form: Sent, context: Context) -> Mapping[str, Any]:
        """`output_dimension` is for models that have several."""
        dimension = {} if self.model.startswith(_FIXED_MODELS) else {"output_dimension": self._dimensions}
        return {"input": list(texts), "model": self.model, **dimension, "output_dtype": form}
