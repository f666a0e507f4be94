"""Significance models: how many documents of some large collection have a word, by language, for ranking by words that
are rare in general instead of rare here.

Vespa: https://docs.vespa.ai/en/ranking/significance.html#significance-model-file
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from typing import Any, Final

import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.text.linguistics.detection import ENGLISH, language_of

NO_LANGUAGE: Final = "un"
"""The tag in a model for words of no known language."""
_COMPRESSED: Final = b"\x28\xb5\x2f\xfd"


class SignificanceModel(Struct, frozen=True):
    """The words of one language."""

    documents: int
    frequencies: Mapping[str, int]
    """Word in lower case → how many documents have it."""

    def document_frequency(self, word: str) -> tuple[int, int]:
        """(documents with the word, documents). A word that is not in it is in one."""
        return self.frequencies.get(word.lower(), 1), self.documents


class SignificanceModels(Struct, frozen=True):
    """The models of a container by language: of several for one, the last."""

    by_language: Mapping[str, SignificanceModel]

    @classmethod
    def read(cls, files: Iterable[bytes]) -> SignificanceModels:
        """Errors: ValueError."""
        found: dict[str, SignificanceModel] = {}
        for content in files:
            found |= _models_in(content)
        return cls(found)

    def chosen(self, given: str, detected: str) -> SignificanceModel:
        """The model for a query whose language is `given`, or else `detected` (tags). Errors: ValueError: none fits."""
        language = language_of(given) or NO_LANGUAGE if given else detected or ENGLISH
        found = self.by_language.get(language)
        if found is None and given and language != NO_LANGUAGE:
            raise ValueError(f"No significance model available for set language {given}")
        found = found or self.by_language.get(NO_LANGUAGE) or self.by_language.get(ENGLISH)
        if found is None:
            raise ValueError("No significance model available for unknown or english language")
        return found


NO_MODELS: Final = SignificanceModels({})


def _models_in(content: bytes) -> dict[str, SignificanceModel]:
    try:
        document = orjson.loads(_from_zstandard(content) if content.startswith(_COMPRESSED) else content)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"not JSON: {error}") from None
    languages = document.get("languages") if isinstance(document, dict) else None
    if not isinstance(languages, dict):
        raise ValueError("a significance model has an object 'languages'")
    found: dict[str, SignificanceModel] = {}
    for tags, model in languages.items():
        for tag in tags.split(","):
            found[language_of(tag.strip()) or NO_LANGUAGE] = _model(tag, model)
    return found


def _model(tag: str, content: Any) -> SignificanceModel:
    documents = content.get("document-count") if isinstance(content, dict) else None
    frequencies = content.get("document-frequencies") if isinstance(content, dict) else None
    if type(documents) is not int or not _is_count(documents):
        raise ValueError(f"language '{tag}' has no number 'document-count'")
    if not isinstance(frequencies, dict) or not all(map(_is_count, frequencies.values())):
        raise ValueError(f"'document-frequencies' of language '{tag}' is no object of numbers")
    return SignificanceModel(documents, frequencies)


def _is_count(value: object) -> bool:
    return type(value) is int and 0 <= value < 1 << 63


def _from_zstandard(content: bytes) -> bytes:
    import zstandard

    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(content), read_across_frames=True) as reader:
            inflated: bytes = reader.read(limits.SIGNIFICANCE_MODEL_BYTES + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"not compressed by zstandard: {error}") from None
    if len(inflated) > limits.SIGNIFICANCE_MODEL_BYTES:
        raise ValueError(f"more than {limits.SIGNIFICANCE_MODEL_BYTES} bytes when it is inflated")
    return inflated
