"""hugging-face-tei-embedder: a server of Hugging Face's Text Embeddings Inference.

Vespa: HuggingFaceTEIEmbedder.java
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.http_embedder import HttpEmbedder, indexed
from paperwasp.components.embedders.http_vectors import Sent
from paperwasp.components.embedders.quantization import check_vector
from paperwasp.components.embedders.settings import Settings
from paperwasp.document.tensor.types import TensorType
from paperwasp.errors import Unavailable
from paperwasp.indexing.context import Context

_PATH: Final = "/embed"
_PATHS: Final = (_PATH, "/v1/embeddings")


@embedder("hugging-face-tei-embedder")
class TeiEmbedder(HttpEmbedder):
    """Asks for vectors of as many dimensions as are configured, or as the tensor has."""

    default_endpoint = "http://localhost:8080/embed"
    texts_at_once = 32

    def __init__(self, settings: Settings) -> None:
        super().__init__(settings)
        self._dimensions = settings.integer("dimensions", 0)
        self._prompts = {True: settings.text("query-prompt-name"), False: settings.text("document-prompt-name")}
        self._prompt = settings.text("prompt-name")
        self._asked = {
            "normalize": settings.flag("normalize", True),
            "truncate": settings.flag("truncate", False),
            "truncation_direction": settings.text("truncation-direction", "right").capitalize(),
        }

    def endpoint(self, url: str) -> str:
        """With the path of the interface, where none is given."""
        return url if url.endswith(_PATHS) else url.removesuffix("/") + _PATH

    def form(self, type: TensorType) -> Sent:
        """Floats."""
        check_vector(type)
        if type.cell_type not in ("float", "bfloat16"):
            supported = "HuggingFace TEI embedder only supports tensor<float> and tensor<bfloat16>"
            raise ValueError(f"{supported}, got {type}.")
        if self._dimensions and type.shape[0] != self._dimensions:
            problem = f"Tensor dimension {type.shape[0]} does not match configured dimension {self._dimensions}."
            raise ValueError(problem)
        return "float"

    def key(self, size: int, form: Sent, context: Context) -> Hashable:
        """A prompt changes the vector."""
        return size, self._prompt_of(context)

    def body(self, texts: Sequence[str], size: int, form: Sent, context: Context) -> Mapping[str, Any]:
        """A single text is sent as a string, several as an array."""
        prompt = self._prompt_of(context)
        named = {"prompt_name": prompt} if prompt else {}
        inputs = texts[0] if len(texts) == 1 else list(texts)
        return {"inputs": inputs, **self._asked, **named, "dimensions": self._dimensions or size}

    def embeddings(self, answer: Any) -> list[Any]:
        """The vectors in an array, in one of OpenAI's form, or the only one itself."""
        if isinstance(answer, dict):
            return indexed(answer, self.name)
        if not isinstance(answer, list):
            raise Unavailable(f"{self.name} answered without embeddings: {str(answer)[:200]}")
        return [answer] if answer and isinstance(answer[0], int | float) else answer

    def _prompt_of(self, context: Context) -> str:
        return self._prompts[context.is_query].strip() or self._prompt.strip()
