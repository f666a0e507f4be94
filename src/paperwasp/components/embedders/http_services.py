"""Embedders that are services elsewhere: OpenAI, Mistral, Voyage, and Text Embeddings Inference."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import Any, Final, cast

from paperwasp.components.embedders.base import Settings, embedder
from paperwasp.components.embedders.http_embedder import HttpEmbedder, indexed
from paperwasp.components.embedders.sent_vectors import Quantization, VectorForm, sent_as
from paperwasp.components.embedders.vectors import check_vector
from paperwasp.document.tensor.types import TensorType
from paperwasp.document.tensor.value import Tensor
from paperwasp.errors import Unavailable
from paperwasp.indexing.components import Context

# openai-embedder: OpenAI's embeddings, and those of services with the same interface.
#
# Vespa: OpenAIEmbedder.java


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

    def form(self, type: TensorType) -> VectorForm:
        """Floats."""
        return sent_as(type, self._dimensions, "float")

    def body(self, texts: Sequence[str], size: int, form: VectorForm, context: Context) -> Mapping[str, Any]:
        """`dimensions` is left out for the one model that refuses it."""
        dimensions = {} if self.model == _FIXED_MODEL else {"dimensions": self._dimensions}
        return {"input": list(texts), "model": self.model, **dimensions, "encoding_format": "base64"}


# mistral-embedder: Mistral's embeddings.
#
# Vespa: MistralEmbedder.java


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

    def form(self, type: TensorType) -> VectorForm:
        """As `quantization` says, or as fits the type."""
        return sent_as(type, self._dimensions, self._quantization)

    def body(self, texts: Sequence[str], size: int, form: VectorForm, context: Context) -> Mapping[str, Any]:
        """`output_dimension` is for models that have several."""
        dimension = {} if self.model.startswith(_FIXED_MODELS) else {"output_dimension": self._dimensions}
        return {"input": list(texts), "model": self.model, **dimension, "output_dtype": form}


# voyage-ai-embedder: Voyage's embeddings of texts, of chunks in their document's context, and of texts among images.
#
#     voyage-…              /v1/embeddings                 each text by itself
#     voyage-context-…      /v1/contextualizedembeddings   the texts of a call together, as chunks of one document
#     voyage-multimodal-…   /v1/multimodalembeddings       each text by itself
#
# Vespa: VoyageAIEmbedder.java
# Differs: several texts go in one request.


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

    def form(self, type: TensorType) -> VectorForm:
        """As `quantization` says, or as fits the type."""
        return sent_as(type, self._dimensions, self._quantization)

    def key(self, size: int, form: VectorForm, context: Context) -> Hashable:
        """Texts of queries and of documents have other vectors."""
        return size, form, context.is_query

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text, which in context depends on all of them."""
        if self._kind != _CONTEXT:
            return super().embed(texts, type, context)
        return self.embed_together(texts, type, context)

    def body(self, texts: Sequence[str], size: int, form: VectorForm, context: Context) -> Mapping[str, Any]:
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


# hugging-face-tei-embedder: a server of Hugging Face's Text Embeddings Inference.
#
# Vespa: HuggingFaceTEIEmbedder.java


_TEI_PATH: Final = "/embed"
_TEI_PATHS: Final = (_TEI_PATH, "/v1/embeddings")


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
        return url if url.endswith(_TEI_PATHS) else url.removesuffix("/") + _TEI_PATH

    def form(self, type: TensorType) -> VectorForm:
        """Floats."""
        check_vector(type)
        if type.cell_type not in ("float", "bfloat16"):
            supported = "HuggingFace TEI embedder only supports tensor<float> and tensor<bfloat16>"
            raise ValueError(f"{supported}, got {type}.")
        if self._dimensions and type.shape[0] != self._dimensions:
            problem = f"Tensor dimension {type.shape[0]} does not match configured dimension {self._dimensions}."
            raise ValueError(problem)
        return "float"

    def key(self, size: int, form: VectorForm, context: Context) -> Hashable:
        """A prompt changes the vector."""
        return size, self._prompt_of(context)

    def body(self, texts: Sequence[str], size: int, form: VectorForm, context: Context) -> Mapping[str, Any]:
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
