"""A match context over plain Python lists: documents are the words of their fields, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.types import ArrayType, DataType, DocumentType
from paperwasp.features.base import FieldStatistics, RankTerm
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, RankProfile, Schema

Words = Sequence[str]


class FakeMatchContext:
    """`documents`: for each, field → text (its words are the tokens), number, or list. All of them are hits.

    `words`: the word (or words of a phrase) that each term searches, parallel to `terms`.
    """

    def __init__(
        self,
        documents: Sequence[Mapping[str, object]],
        terms: Sequence[tuple[str, RankTerm]] = (),
        inputs: Mapping[str, float] | None = None,
        properties: Mapping[str, str] | None = None,
        now_seconds: float = 0.0,
        relevance: Mapping[str, Sequence[float]] | None = None,
    ) -> None:
        self.documents = documents
        self.words = [words.split() for words, _ in terms]
        self.terms = [term for _, term in terms]
        self.inputs = inputs or {}
        self.properties = properties or {}
        self.now_seconds = now_seconds
        self._relevance = relevance or {}
        self.lids = np.arange(1, len(documents) + 1, dtype=np.uint32)

    def relevance(self, phase: str) -> NDArray[np.float64]:
        return np.array(self._relevance[phase], np.float64)

    def attribute(self, name: str) -> NDArray[np.float64]:
        return np.array([document.get(name, np.nan) for document in self.documents], np.float64)

    def attribute_count(self, name: str) -> NDArray[np.float64]:
        return np.array([len(document.get(name, ())) for document in self.documents], np.float64)  # type: ignore[arg-type]

    def attribute_element(self, name: str, element: int) -> NDArray[np.float64]:
        arrays = [document.get(name, []) for document in self.documents]
        return np.array([a[element] if element < len(a) else 0 for a in arrays], np.float64)  # type: ignore[arg-type,index]

    def attribute_weight(self, name: str, key: str | int) -> NDArray[np.float64]:
        sets = [document.get(name, {}) for document in self.documents]
        return np.array([each.get(key, np.nan) for each in sets], np.float64)  # type: ignore[attr-defined]

    def _tokens(self, document: Mapping[str, object], field: str) -> list[str]:
        value = document.get(field, "")
        if isinstance(value, str):
            return value.split()
        return [str(item) for item in value] if isinstance(value, list) else [str(value)]

    def _found(self, term: int, field: str) -> list[list[int]]:
        words = self.words[term]
        found = []
        for document in self.documents:
            tokens = self._tokens(document, field)
            found.append([at for at in range(len(tokens)) if tokens[at : at + len(words)] == words])
        return found

    def document_frequency(self, term: int, field: str) -> int:
        return sum(1 for positions in self._found(term, field) if positions)

    def matched(self, term: int, field: str) -> NDArray[np.bool_]:
        return np.array([bool(positions) for positions in self._found(term, field)], np.bool_)

    def occurrences(self, term: int, field: str) -> NDArray[np.int32]:
        return np.array([len(positions) for positions in self._found(term, field)], np.int32)

    def positions(self, term: int, field: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        found = self._found(term, field)
        offsets = np.cumsum([0, *(len(positions) for positions in found)]).astype(np.uint32)
        return offsets, np.array([at for positions in found for at in positions], np.uint32)

    def field_length(self, field: str) -> NDArray[np.int32]:
        return np.array([len(self._tokens(document, field)) for document in self.documents], np.int32)

    def field_statistics(self, field: str) -> FieldStatistics:
        lengths = self.field_length(field)
        return FieldStatistics(len(lengths), float(lengths.mean()) if len(lengths) else 0.0)


def schema_of(
    index: Sequence[str] = (),
    attributes: Mapping[str, DataType] | None = None,
    profile: RankProfile | None = None,
    arrays: Mapping[str, ArrayType] | None = None,
) -> Schema:
    """A schema with text indexes (bm25 enabled, but for a name that starts with `plain`) and attributes."""
    from paperwasp.document.types import STRING

    fields = {
        name: Field(name, STRING, index=IndexSettings(enable_bm25=not name.startswith("plain"))) for name in index
    }
    for name, kind in {**(attributes or {}), **(arrays or {})}.items():
        fields[name] = Field(name, kind, attribute=AttributeSettings())
    fields["stored"] = Field("stored", STRING, summary=True)
    profiles = {profile.name: profile} if profile else {}
    document = DocumentType("test", {name: field.type for name, field in fields.items()})
    return Schema("test", document, fields, {}, profiles, {}, source="schemas/test.sd")
