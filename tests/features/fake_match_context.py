"""A match context over plain Python lists: documents are the words of their fields, and numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.types import ArrayType, DataType, DocumentType
from paperwasp.features import compile_profile, evaluate_all
from paperwasp.features.base import ElementPlaces, FieldStatistics, RankTerm, WordLists, Worked
from paperwasp.ranking import CompiledProfile, RankValue
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, RankProfile, Schema
from paperwasp.tensor.batch import Labels
from tests.features.unasked_context import UnaskedContext

Words = Sequence[str]


class FakeMatchContext(UnaskedContext):
    """`documents`: for each, field → text (its words are the tokens), number, list, or weights of texts. All of them
    are hits.

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
        self.known: dict[object, Any] = {}
        self.element_gaps: dict[str, float] = {}
        self.labels = Labels()
        self.lids = np.arange(1, len(documents) + 1, dtype=np.uint32)

    @property
    def hits(self) -> int:
        return len(self.lids)

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

    def _elements(self, document: Mapping[str, object], field: str) -> list[tuple[list[str], int]]:
        """The tokens and the weight of each."""
        value = document.get(field, "")
        if isinstance(value, dict):
            return [(str(text).split(), weight) for text, weight in value.items()]
        return [(str(text).split(), 1) for text in (value if isinstance(value, list) else [value])]

    def _tokens(self, document: Mapping[str, object], field: str) -> list[str]:
        return [token for tokens, _ in self._elements(document, field) for token in tokens]

    def _places(self, term: int, document: Mapping[str, object], field: str) -> list[tuple[int, int, int, int, int]]:
        """(place in the field, element, place in it, its length, its weight)"""
        words, found, start = self.words[term], [], 0
        for number, (tokens, weight) in enumerate(self._elements(document, field)):
            there = [at for at in range(len(tokens)) if words and tokens[at : at + len(words)] == words]
            found += [(start + at, number, at, len(tokens), weight) for at in there]
            start += len(tokens)
        return found

    def _found(self, term: int, field: str) -> list[list[int]]:
        return [[place for place, *_ in self._places(term, document, field)] for document in self.documents]

    def document_frequency(self, term: int) -> tuple[int, int]:
        found = sum(1 for field in self.terms[term].fields for positions in self._found(term, field) if positions)
        return min(found, len(self.documents)), len(self.documents)

    @property
    def indexed_documents(self) -> int:
        return len(self.documents)

    def matched(self, term: int, field: str) -> NDArray[np.bool_]:
        return np.array([bool(positions) for positions in self._found(term, field)], np.bool_)

    def match_weights(self, term: int, field: str) -> NDArray[np.int64]:
        return self.occurrences(term, field).astype(np.int64)

    def occurrences(self, term: int, field: str) -> NDArray[np.int32]:
        return np.array([len(positions) for positions in self._found(term, field)], np.int32)

    def only_filters(self, term: int, field: str) -> bool:
        return False

    def positions(self, term: int, field: str) -> tuple[NDArray[np.uint32], NDArray[np.uint32]]:
        found = self._found(term, field)
        offsets = np.cumsum([0, *(len(positions) for positions in found)]).astype(np.uint32)
        return offsets, np.array([at for positions in found for at in positions], np.uint32)

    def element_places(self, term: int, field: str) -> ElementPlaces:
        found = [place for document in self.documents for place in self._places(term, document, field)]
        columns = np.ascontiguousarray(np.array(found, np.int64).reshape(-1, 5)[:, 1:].T)
        elements, positions, lengths = columns[:3].astype(np.uint32)
        offsets = self.positions(term, field)[0]
        return ElementPlaces(offsets, elements, positions, lengths, columns[3].astype(np.int32))

    def element_gap(self, field: str) -> float:
        return self.element_gaps.get(field, math.inf)

    def once(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        if key not in self.known:
            self.known[key] = work()
        found: Worked = self.known[key]
        return found

    def once_for_query(self, key: Hashable, work: Callable[[], Worked]) -> Worked:
        return self.once(key, work)

    def word_lists(self, field: str) -> WordLists | None:
        """There are no postings."""
        return None

    @property
    def score_floor(self) -> float:
        return -math.inf

    def field_length(self, field: str) -> NDArray[np.int32]:
        return np.array([len(self._tokens(document, field)) for document in self.documents], np.int32)

    def field_statistics(self, field: str) -> FieldStatistics:
        lengths = self.field_length(field)
        elements = sum(len(self._elements(document, field)) for document in self.documents)
        average = float(lengths.mean()) if len(lengths) else 0.0
        return FieldStatistics(len(lengths), average, float(lengths.sum()) / max(1, elements))


def schema_of(
    index: Sequence[str] = (),
    attributes: Mapping[str, DataType] | None = None,
    profile: RankProfile | None = None,
    arrays: Mapping[str, ArrayType] | None = None,
    index_types: Mapping[str, DataType] | None = None,
) -> Schema:
    """A schema with text indexes (bm25 enabled, but for a name that starts with `plain`), of strings or
    of what `index_types` says, and attributes."""
    from paperwasp.document.types import STRING

    fields = {
        name: Field(
            name,
            (index_types or {}).get(name, STRING),
            index=IndexSettings(enable_bm25=not name.startswith("plain")),
        )
        for name in index
    }
    for name, kind in {**(attributes or {}), **(arrays or {})}.items():
        fields[name] = Field(name, kind, attribute=AttributeSettings())
    fields["stored"] = Field("stored", STRING, summary=True)
    profiles = {profile.name: profile} if profile else {}
    document = DocumentType("test", {name: field.type for name, field in fields.items()})
    return Schema("test", document, fields, {}, profiles, {}, source="schemas/test.sd")


def compiled(schema: Schema, profile: RankProfile) -> CompiledProfile:
    """A profile that can be executed, as programs."""
    found = compile_profile(schema, profile)
    assert isinstance(found, CompiledProfile), found
    return found


def numbers(features: Mapping[str, RankValue], context: FakeMatchContext) -> dict[str, NDArray[np.float64]]:
    """name → the values of a feature that is a number."""
    columns: dict[str, NDArray[np.float64]] = {}
    for name, column in evaluate_all(features, context).items():
        assert isinstance(column, np.ndarray), f"{name} is a tensor"
        columns[name] = column
    return columns
