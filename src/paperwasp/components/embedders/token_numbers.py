"""`hugging-face-tokenizer`: the numbers of a text's tokens as a tensor, by a tokenizer for the text's language.

Vespa: https://docs.vespa.ai/en/reference/rag/embedding.html#huggingface-tokenizer-embedder, HuggingFaceTokenizer.java
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from paperwasp.components.embedders.base import embedder
from paperwasp.components.embedders.settings import Settings
from paperwasp.components.embedders.text_tokenizer import TextTokenizer
from paperwasp.document.tensor.types import Dimension, TensorType
from paperwasp.document.tensor.value import Tensor, as_cells
from paperwasp.indexing.context import Context

_UNKNOWN = "unknown"


@embedder("hugging-face-tokenizer")
class TokenNumbers:
    """Makes dense tensors of one dimension: as long as the type says, cut or filled with 0; or as long as the text."""

    def __init__(self, settings: Settings) -> None:
        """Errors: NotFound, LanguageError, ValueError."""
        self._tokenizers = {
            settings.text(f"{name}@language", _UNKNOWN): TextTokenizer(settings.model(name), None)
            for name in settings.repeated("model")
        }

    def embed(self, texts: Sequence[str], type: TensorType, context: Context) -> list[Tensor]:
        """One tensor of the type for each text. Errors: ValueError."""
        self.check_type(type, context)
        return [_tensor(tokens.ids, type) for tokens in self._tokenizer(context.language).encode(texts)]

    def check_type(self, type: TensorType, context: Context) -> None:
        """Errors: ValueError for a type that is not one dense dimension."""
        if len(type.dimensions) != 1 or type.mapped:
            raise ValueError(f"Don't know how to embed with target tensor type {type}")

    def check(self) -> None:
        """Nothing: all files are read before."""

    def load(self) -> None:
        """Nothing."""

    def _tokenizer(self, language: str) -> TextTokenizer:
        """The one for a language; that for unknown ones where it is the only one, or there is none for the language."""
        found = self._tokenizers.get(language or _UNKNOWN) or self._tokenizers.get(_UNKNOWN)
        if found is None:
            raise ValueError(f"No model for language {language or _UNKNOWN}")
        return found


def _tensor(ids: Sequence[int], type_: TensorType) -> Tensor:
    (dimension,) = type_.dimensions
    size = dimension.size or len(ids)
    values = np.zeros((1, size), np.float64)
    kept = ids[:size]
    values[0, : len(kept)] = kept
    bound = type_ if dimension.size else TensorType.of([Dimension(dimension.name, size)], type_.cell_type)
    return Tensor(bound, ((),), as_cells(values, type_.cell_type))
