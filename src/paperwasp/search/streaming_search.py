"""Searching document types of mode streaming: the documents of one group are read and searched, without an index.

Documents are read from the store in the order of their global ids, and those of one group, or number, stand together
there. A batch of them becomes a small index and columns in memory, and so a view of its own, which is searched as any
other; so whatever works for types of mode index works here. Batches bound the memory: of each only the hits stay.

As in Vespa words may be matched by a part of them, there is no stemming, and there are no statistics of terms.

Vespa: https://docs.vespa.ai/en/performance/streaming-search.html
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final, cast

import numpy as np
from msgspec import Struct

from paperwasp import limits
from paperwasp.base.records import replace
from paperwasp.content.layouts.layout import EMPTY, INDEX_MODE, ColumnSource, Layout, TypeLayout
from paperwasp.content.layouts.parts import is_one_of_each, set_part_reader, streamed_part_reader
from paperwasp.content.views.view import View
from paperwasp.content.views.visiting import filter_of, span
from paperwasp.coordination.messages.documents import VisitRequest
from paperwasp.document.types import BOOL, NumericType
from paperwasp.errors import IllegalQuery
from paperwasp.ranking import CompiledProfile
from paperwasp.schema.model import Field, Schema
from paperwasp.schema.streaming import is_streamed_part
from paperwasp.search.query import Streaming
from paperwasp.search.query_resources import QueryClock
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.attributes.array import ArrayView, PartView
from paperwasp.storage.documents.document_store import DocumentStore, StoredDocument
from paperwasp.storage.documents.gid_map import GID_BYTES
from paperwasp.storage.index.text_index import TextIndex

STREAMING_MODE: Final = "streaming"
_NO_INDEX_DIRECTORY: Final = Path("/nonexistent")
"""The index of a batch is never written."""


class StreamedType(Struct, frozen=True):
    """A document type as its batches are searched: all fields indexed and with columns, and no stemming."""

    schema: Schema
    kind: TypeLayout
    parts: tuple[tuple[str, str, Callable[[Any], Any]], ...]
    """The name of each part, the field that it is a part of, and what reads its values in one of the field."""
    elements: Mapping[str, tuple[str, Callable[[Any], list[Any]]]]
    """By name of a part that each element of an array or a map may have once: the field, and what reads the parts of
    its elements, None where one has none."""

    @classmethod
    def of(cls, schema: Schema) -> StreamedType:
        schema = replace(schema, fields={name: _without_linguistics(field) for name, field in schema.fields.items()})
        name = schema.document.name
        parts = tuple(
            (part.name, part.outer, streamed_part_reader(schema.fields[part.outer].type, part.name))
            for part in schema.fields.values()
            if is_streamed_part(part)
        )
        elements = {
            part: (outer, set_part_reader(schema.fields[outer].type, part))
            for part, outer, _ in parts
            if is_one_of_each(schema.fields[outer].type, part)
        }
        return cls(schema, EMPTY.changed(0, [schema], {name: INDEX_MODE}).types[name], parts, elements)

    def with_parts(self, document: dict[str, Any]) -> dict[str, Any]:
        """A document with the values of its parts."""
        for name, outer, read in self.parts:
            value = document.get(outer)
            if value:
                document[name] = read(value)
        return document


def ranked_in_one_phase(profile: CompiledProfile) -> CompiledProfile:
    """The profile as streaming search runs it: a second phase ranks all matches, and the first phase none.

    Vespa: streamingvisitors' rankprocessor.cpp (`init`). The first phase's drop limit is kept, for these scores.
    """
    if profile.second_phase is None:
        return profile
    return replace(profile, first_phase=profile.second_phase, second_phase=None, bm25_sum=None)


def _without_linguistics(field: Field) -> Field:
    """A field as streaming search sees it: nothing that linguistics does when documents are fed is done to it."""
    if field.index is None:
        return field
    unbounded = limits.FIELD_MATCH_CHARACTERS
    settings = replace(field.match_settings, max_occurrences=unbounded, max_token_length=unbounded)
    return replace(field, index=replace(field.index, stemming="none"), match_settings=settings)


class Batch(Struct, frozen=True):
    """Documents to search. `progress`: the share of the documents that are read once these are, by their global ids."""

    view: View
    progress: float
    gids: Sequence[bytes]
    """The global ids of its documents, rising."""


def batches_of(view: View, streamed: StreamedType, wanted: Streaming | None, clock: QueryClock) -> Iterator[Batch]:
    """All documents of a type that a query is about; ends early where the time is over.

    Errors: IllegalQuery where the query does not say whose documents, InvalidInput for a selection that is none.
    """
    name = streamed.schema.document.name
    request = VisitRequest((name,), selection=_selection(wanted), now_us=int(clock.now_seconds * 1e6))
    start, end = span(request)
    gathered = _Gathered(view, streamed)
    if end is not None and start >= end:
        yield gathered.batch(1.0)
        return
    accepts = filter_of(view, request)
    for scanned, (gid, document) in enumerate(view.store.scan(start, end), 1):
        if scanned % limits.STREAMED_BETWEEN_CLOCKS == 0 and clock.is_over():
            yield gathered.batch(_progress(gid, start, end))
            return
        if accepts(gid, document):
            gathered.add(gid, document)
            if gathered.is_full:
                yield gathered.batch(_progress(gid, start, end))
                gathered = _Gathered(view, streamed)
    yield gathered.batch(1.0)


def _selection(wanted: Streaming | None) -> str:
    """Return the wanted documents as a document selection."""
    said = wanted or Streaming()
    ways = [bool(said.group), said.userid is not None, bool(said.selection)]
    if sum(ways) != 1:
        raise IllegalQuery(
            "Streaming search requires either streaming.groupname or streaming.selection"
            + (
                ": there may be only one of streaming.groupname, streaming.userid, streaming.selection"
                if any(ways)
                else ""
            )
        )
    if said.group:
        escaped = said.group.replace("\\", "\\\\").replace('"', '\\"')
        return f'id.group == "{escaped}"'
    return said.selection if said.userid is None else f"id.user == {said.userid}"


def _progress(gid: bytes, start: bytes, end: bytes | None) -> float:
    first = int.from_bytes(start, "big")
    last = 1 << 8 * GID_BYTES if end is None else int.from_bytes(end, "big")
    return (int.from_bytes(gid, "big") - first) / max(1, last - first)


class _Gathered:
    """The documents of a batch while it grows."""

    def __init__(self, view: View, streamed: StreamedType) -> None:
        self._view = view
        self._streamed = streamed
        self._gids: list[bytes] = []
        self._documents: list[StoredDocument] = []
        self._lids: list[int] = []
        self._size_bytes = 0

    @property
    def is_full(self) -> bool:
        return len(self._documents) >= limits.STREAMED_DOCUMENTS or self._size_bytes >= limits.STREAMED_BYTES

    def add(self, gid: bytes, document: StoredDocument) -> None:
        fields = self._view.fields_of(document)
        self._gids.append(gid)
        self._lids.append(document.lid)
        self._documents.append(document._replace(lid=len(self._documents), fields=fields))
        self._size_bytes += len(fields)

    def batch(self, progress: float) -> Batch:
        view, kind, count = self._view, self._streamed.kind, len(self._documents)
        name = kind.name
        codec = view.codecs[name]
        values = [self._streamed.with_parts(codec.decode(document.fields)) for document in self._documents]
        live = np.zeros((count + 63) // 64 * 64, np.bool_)
        live[:count] = True
        columns = _columns_of(kind, values)
        batch_view = replace(
            view,
            limit=count,
            live=np.packbits(live, bitorder="little").view(np.uint64),
            live_count=count,
            live_counts={name: count},
            index=_index_of(kind, values),
            columns=columns,
            grouped=GroupedColumns(self._streamed, values, columns),
            document_types=np.full(count, kind.number, np.uint16),
            gids=np.frombuffer(b"".join(self._gids), np.uint8).reshape(-1, GID_BYTES),
            changed=np.zeros(count, np.uint8),
            timestamps=np.array([document.timestamp_us for document in self._documents], np.uint64),
            store=cast(DocumentStore, _BatchStore(self._gids, self._documents)),
            layout=Layout(view.layout.generation, {name: kind}),
            schemas={name: self._streamed.schema},
            conform_below={},
            modes={},
            own_lids=np.array(self._lids, np.uint32),
            derived={},  # what is known of the whole view is untrue of a batch
        )
        return Batch(batch_view, progress, self._gids)


def _index_of(kind: TypeLayout, values: Sequence[dict[str, Any]]) -> Any:
    index = TextIndex(_NO_INDEX_DIRECTORY)
    index.configure(found for field in kind.indexed for found in field.indexed_fields(kind.name))
    if values:
        index.add_batch(0, kind.name, values, kind.languages_of(values))
    return index.snapshot()


def _columns_of(kind: TypeLayout, values: Sequence[dict[str, Any]]) -> dict[tuple[str, str], Any]:
    columns = {}
    for source in kind.columns:
        column = source.field.create_column()
        column.append(source.values(values))
        columns[kind.name, source.name] = column.snapshot()
    return columns


class GroupedColumns(Mapping[str, ColumnView]):
    """The columns by name that documents are grouped by which are read for one query, but with 0 for single
    integers that are not set, and with the knowledge which elements of arrays of structs and of maps have a part. These
    are made when they are asked for.

    Vespa: searchlib/expression/documentfieldnode.cpp (`SingleHandler`, `MultiHandler`); such documents have no
    attributes, which would have the least number there. Numbers with a fraction are NaN (its pull request 37892).
    """

    def __init__(
        self,
        streamed: StreamedType,
        documents: Sequence[dict[str, Any]],
        columns: Mapping[tuple[str, str], ColumnView],
    ) -> None:
        self._columns = {name: column for (_, name), column in columns.items()}
        self._documents = documents
        self._integers = {source.name: source for source in streamed.kind.columns if _is_integer(source)}
        self._elements = streamed.elements
        self._made = set[str]()

    def __getitem__(self, name: str) -> ColumnView:
        if name not in self._made:
            self._made.add(name)
            if (source := self._integers.get(name)) is not None:
                column = source.field.create_column()
                column.append([0 if value is None else value for value in source.values(self._documents)])
                self._columns[name] = column.snapshot()
            elif name in self._elements and name in self._columns:
                self._columns[name] = self._part(name)
        return self._columns[name]

    def _part(self, name: str) -> ColumnView:
        outer, read = self._elements[name]
        values = [read(value) if value else [] for value in (document.get(outer) for document in self._documents)]
        is_set = np.array([each is not None for found in values for each in found], np.bool_)
        view = self._columns[name]
        assert isinstance(view, ArrayView)
        return view if is_set.all() else PartView(view, is_set)

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)


def _is_integer(source: ColumnSource) -> bool:
    type_ = source.field.type
    return source.read is None and isinstance(type_, NumericType) and type_ != BOOL and type_.low is not None


class _BatchStore:
    """The documents of a batch as summaries read them."""

    def __init__(self, gids: Iterable[bytes], documents: Iterable[StoredDocument]) -> None:
        self._documents = dict(zip(gids, documents, strict=True))

    def multi_get(self, gids: Sequence[bytes]) -> list[StoredDocument | None]:
        return [self._documents.get(gid) for gid in gids]

    def get(self, gid: bytes) -> StoredDocument | None:
        return self._documents.get(gid)
