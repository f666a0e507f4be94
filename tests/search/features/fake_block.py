"""A block of hits over plain Python lists: documents are the words of their fields, and numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from paperwasp.document.types import ArrayType, DataType, DocumentType
from paperwasp.ranking import CompiledProfile, RankValue
from paperwasp.schema.model import AttributeSettings, Field, IndexSettings, RankProfile, Schema
from paperwasp.search.features import compile_profile, evaluate_all
from paperwasp.search.features.block import Block
from paperwasp.search.features.setting import QuerySetting, RankTerm
from paperwasp.search.operators.field_match import Bitmap, FieldMatch, Lids, Occurrences
from paperwasp.search.operators.operator import Operator, SearchSpace, TermOperator
from paperwasp.search.yql_syntax import DEFAULT_ANNOTATIONS
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.index import IndexSnapshot

Document = Mapping[str, object]


class _Place(NamedTuple):
    """Where a term stands."""

    position: int
    """In the field."""
    element: int
    place: int
    """In the element."""
    length: int
    """Of the element."""
    weight: int
    """Of the element."""


class FakeMatch(FieldMatch):
    """Some words in a row in the documents, whose lids are their numbers from 1."""

    def __init__(self, documents: Sequence[Document], field: str, words: Sequence[str]) -> None:
        self.field = field
        self.places = [_places(document, field, words) for document in documents]

    def add_to(self, bitmap: Bitmap) -> None:
        raise AssertionError("features ask for no bitmap")

    def frequency(self) -> int:
        return sum(map(bool, self.places))

    def occurrences(self, lids: Lids) -> NDArray[np.int32]:
        return np.array([len(self.places[lid - 1]) for lid in lids], np.int32)

    def positions(self, lids: Lids) -> Occurrences:
        found = [self.places[lid - 1] for lid in lids]
        offsets = np.cumsum([0, *map(len, found)]).astype(np.uint32)
        return offsets, np.array([place.position for places in found for place in places], np.uint32)

    def match_weights(self, lids: Lids) -> NDArray[np.int64]:
        return self.occurrences(lids).astype(np.int64)


class FakeColumn:
    """What features read of a column."""

    def __init__(self, documents: Sequence[Document], name: str) -> None:
        self._values = [document.get(name) for document in documents]

    def as_float64(self, lids: Lids) -> NDArray[np.float64]:
        return np.array([np.nan if value is None else value for value in self._of(lids)], np.float64)

    def counts(self, lids: Lids) -> NDArray[np.float64]:
        return np.array([len(value or ()) for value in self._of(lids)], np.float64)  # type: ignore[arg-type]

    def element(self, lids: Lids, element: int) -> NDArray[np.float64]:
        arrays = [value or [] for value in self._of(lids)]
        return np.array([a[element] if element < len(a) else 0 for a in arrays], np.float64)  # type: ignore[arg-type,index]

    def weights(self, lids: Lids, key: str | int) -> NDArray[np.float64]:
        return np.array([(value or {}).get(key, np.nan) for value in self._of(lids)], np.float64)  # type: ignore[attr-defined]

    def _of(self, lids: Lids) -> list[object]:
        return [self._values[lid - 1] for lid in lids]


class FakeIndex:
    """What features read of the index of a field."""

    reader = None
    """There are no postings."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents
        self._fields: list[str] = []

    def has(self, key: tuple[str, str]) -> bool:
        return True

    def number_of(self, key: tuple[str, str]) -> int:
        if key[1] not in self._fields:
            self._fields.append(key[1])
        return self._fields.index(key[1])

    def field_lengths(self, number: int, lids: Lids) -> NDArray[np.int32]:
        return np.array([sum(self._lengths(number, lid)) for lid in lids], np.int32)

    def live_lengths(self, number: int, accept: Bitmap, dead: bool) -> tuple[float, float]:
        lengths = [self._lengths(number, lid) for lid in range(1, len(self._documents) + 1)]
        total = float(sum(map(sum, lengths)))
        return total / max(1, len(lengths)), total / max(1, sum(map(len, lengths)))

    def locate(self, number: int, lids: Lids, offsets: NDArray[np.uint32], positions: NDArray[np.uint32]) -> _Located:
        """The element of each position, with its bounds and its weight."""
        rows = []
        for hit, lid in enumerate(lids):
            elements = _elements(self._documents[lid - 1], self._fields[number])
            ends = np.cumsum([len(tokens) for tokens, _ in elements])
            for position in positions[offsets[hit] : offsets[hit + 1]]:
                at = int(np.searchsorted(ends, position, "right"))
                rows.append((at, ends[at] - len(elements[at][0]), ends[at], elements[at][1]))
        found = np.ascontiguousarray(np.array(rows, np.int64).reshape(-1, 4).T)
        elements, starts, ends = found[:3].astype(np.uint32)
        return _Located(elements, starts, ends, found[3].astype(np.int32))

    def _lengths(self, number: int, lid: int) -> list[int]:
        return [len(tokens) for tokens, _ in _elements(self._documents[lid - 1], self._fields[number])]


class _Located(NamedTuple):
    """A number for each position."""

    elements: NDArray[np.uint32]
    starts: NDArray[np.uint32]
    ends: NDArray[np.uint32]
    weights: NDArray[np.int32]


class FakeColumns(dict[str, ColumnView]):
    """A column of every name."""

    def __init__(self, documents: Sequence[Document]) -> None:
        self._documents = documents

    def get(self, name: str, default: object = None) -> ColumnView:
        return cast(ColumnView, FakeColumn(self._documents, name))


def fake_block(
    documents: Sequence[Document],
    terms: Sequence[tuple[str, RankTerm]] = (),
    inputs: Mapping[str, float] | None = None,
    properties: Mapping[str, str] | None = None,
    now_seconds: float = 0.0,
    relevance: Mapping[str, Sequence[float]] | None = None,
    element_gaps: Mapping[str, float] | None = None,
) -> Block:
    """`documents`: for each, field → text (its words are the tokens), number, list, or weights of texts. All of them
    are hits.

    `terms`: the word (or words of a phrase) that each searches, with what ranking is to see of it. They have no
    postings, so that no kernel reads them.
    """
    count = len(documents)
    space = SearchSpace(
        schema_of(),
        count + 1,
        np.zeros((count + 64) // 64, np.uint64),
        count,
        dead=False,
        index=cast(IndexSnapshot, FakeIndex(documents)),
        columns=FakeColumns(documents),
        element_gaps=element_gaps or {},
    )
    operators = []
    for words, term in terms:
        matches = [FakeMatch(documents, field, words.split()) for field in term.fields]
        operators.append(TermOperator(space, matches, DEFAULT_ANNOTATIONS))
    setting = QuerySetting(space, cast(Operator, None), tuple(operators), inputs or {}, properties or {}, now_seconds)
    setting.__dict__["rank_terms"] = tuple(term for _, term in terms)
    scores = {phase: np.array(values, np.float64) for phase, values in (relevance or {}).items()}
    return Block(setting, np.arange(1, count + 1, dtype=np.uint32), scores)


def _elements(document: Document, field: str) -> list[tuple[list[str], int]]:
    """The tokens and the weight of each."""
    value = document.get(field, "")
    if isinstance(value, dict):
        return [(str(text).split(), weight) for text, weight in value.items()]
    return [(str(text).split(), 1) for text in (value if isinstance(value, list) else [value])]


def _places(document: Document, field: str, words: Sequence[str]) -> list[_Place]:
    found, start = list[_Place](), 0
    for number, (tokens, weight) in enumerate(_elements(document, field)):
        there = [at for at in range(len(tokens)) if words and tokens[at : at + len(words)] == words]
        found += [_Place(start + at, number, at, len(tokens), weight) for at in there]
        start += len(tokens)
    return found


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


def numbers(features: Mapping[str, RankValue], block: Block) -> dict[str, NDArray[np.float64]]:
    """name → the values of a feature that is a number."""
    columns: dict[str, NDArray[np.float64]] = {}
    for name, column in evaluate_all(features, block).items():
        assert isinstance(column, np.ndarray), f"{name} is a tensor"
        columns[name] = column
    return columns
