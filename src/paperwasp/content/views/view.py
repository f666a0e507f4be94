"""The view of a content node that readers see: the documents of one moment, published by swapping one reference.

It fixes which rows there are and which of them are live, their index, the layout and the schemas. What updates change
in place moves on (`columns`, `changed`, `timestamps`): a reader sees a row's old or its new value. `store` is of now.
"""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence
from itertools import count
from secrets import randbits
from typing import Final

import numpy as np
from msgspec import Struct, field
from numpy.typing import NDArray

from paperwasp.content.layouts.codec import DocumentCodec, changed_fields, type_of_id
from paperwasp.content.layouts.layout import EMPTY, Layout
from paperwasp.content.layouts.selected import Selected
from paperwasp.document.shown import DEFAULT_FORM
from paperwasp.schema.model import Schema
from paperwasp.storage.attributes import ColumnView
from paperwasp.storage.documents.document_store import GID_BYTES, DocumentStore, StoredDocument
from paperwasp.storage.documents.gid_map import NO_LID
from paperwasp.storage.documents.row_store import NO_ROWS, RowStore
from paperwasp.storage.index.snapshot import IndexSnapshot

_STAMPS: Final = count(randbits(62))
"""From a number of chance on, so that views of two processes are not taken for each other."""


class View(Struct, frozen=True, eq=False):
    """Documents have lids below `limit`; those whose bit in `live` is set are there.

    Arrays by lid may be longer than `limit`: take what is below. `store` is not of this moment but of now: a document
    that was replaced since has another lid there.
    """

    limit: int
    live: NDArray[np.uint64]
    live_count: int
    live_counts: Mapping[str, int]
    """Documents by document type."""
    index: IndexSnapshot
    columns: Mapping[tuple[str, str], ColumnView]
    """By document type and field name."""
    document_types: NDArray[np.uint16]
    """The number of each lid's document type: see `type_numbers`."""
    gids: NDArray[np.uint8]
    """Twelve bytes a lid."""
    changed: NDArray[np.uint8]
    """1 where attributes were changed in place, so that the stored JSON is to be read through `fields_of`."""
    timestamps: NDArray[np.uint64]
    """When each lid's document was changed last, in place too: microseconds since 1970."""
    store: DocumentStore
    layout: Layout = EMPTY
    schemas: Mapping[str, Schema] = field(default_factory=dict)
    codecs: Mapping[str, DocumentCodec] = field(default_factory=dict)
    conform_below: Mapping[str, int] = field(default_factory=dict)
    """By document type: what is stored of rows below may be of an earlier layout, and is to be read through
    `fields_of`."""
    modes: Mapping[str, str] = field(default_factory=dict)
    """By document type, where it is not "index"."""
    timestamp_us: int = 0
    """The time of the last entry applied. A document whose timestamp is later was changed in place since."""
    distribution_key: int = 0
    """The distribution key of the node."""
    rows: RowStore = NO_ROWS
    """The documents by lid, as far as they are there: each as the operation put it that gave it the lid."""
    own_lids: NDArray[np.uint32] | None = None
    """The lids in the node of documents that are read for one query."""
    grouped: Mapping[str, ColumnView] | None = None
    """Of such documents: what they are grouped by; None: the columns of their type."""
    stamp: int = field(default_factory=_STAMPS.__next__)
    """No other view has it."""
    derived: dict[str, object] = field(default_factory=dict)
    """By document type: what the first query derives from the view for all that follow."""

    @property
    def generation(self) -> int:
        return self.layout.generation

    @property
    def type_numbers(self) -> Mapping[str, int]:
        return {name: kind.number for name, kind in self.layout.types.items()}

    def gid(self, lid: int) -> bytes:
        gid: bytes = self.gids[lid].tobytes()
        return gid

    def gids_of(self, lids: Sequence[int]) -> list[bytes]:
        gids: bytes = self.gids[lids].tobytes()
        return [gids[start : start + GID_BYTES] for start in range(0, len(gids), GID_BYTES)]

    def documents_of(self, lids: Sequence[int], gids: Sequence[bytes]) -> list[StoredDocument | None]:
        """The stored documents of some rows, which have these gids: those that were put of late are still in memory."""
        noted = self.rows.noted(lids) if self.own_lids is None else []
        if not any(noted):
            return self.store.multi_get(gids)
        stored = iter(self.store.multi_get([gid for gid, put in zip(gids, noted, strict=True) if put is None]))
        return [
            next(stored) if put is None else StoredDocument(put.id, put.timestamp_us, lid, put.body)
            for lid, put in zip(lids, noted, strict=True)
        ]

    def is_dead(self, lid: int) -> bool:
        """Return whether the document of a row was replaced or removed before this view: its values may be gone.
        Rows that came after the view are not."""
        return lid < self.limit and not int(self.live[lid >> 6]) >> (lid & 63) & 1

    def timestamp_of(self, document: StoredDocument) -> int:
        """When a stored document was changed last, or removed."""
        return int(self.timestamps[document.lid]) if document.lid < self.limit else document.timestamp_us

    def subject(self, document: StoredDocument) -> Selected:
        """A stored document as selections see it. Its type must be one of the view's."""
        name = type_of_id(document.id)
        lid = document.lid if document.lid < self.limit else NO_LID
        return Selected(
            document.id, lid, lambda: document.fields, self.layout.types[name], self.codecs[name], self.columns
        )

    def fields_of(self, document: StoredDocument) -> bytes:
        """The JSON object of a stored document's fields: as this view's layout has them, with what was changed in
        place since it was stored. Its tensors are as they are stored."""
        lid, fields = document.lid, document.fields
        name = type_of_id(document.id)
        codec = self.codecs.get(name)
        if codec is None:
            return b"{}"
        if lid < self.limit:
            if self.changed[lid]:
                fields = changed_fields(document, self.layout.types[name], codec, self.columns)
            if lid < self.conform_below.get(name, 0):
                fields = codec.conform(fields)
        return fields

    def fields_of_all(self, documents: Sequence[StoredDocument]) -> list[bytes]:
        """As `fields_of`, of documents of one type: most are as they are stored."""
        rows = [document.lid for document in documents if document.lid < self.limit]
        if rows:
            conform_below = self.conform_below.get(type_of_id(documents[0].id), 0)
            if min(rows) < conform_below or self.changed[rows].any():
                return [self.fields_of(document) for document in documents]
        return [document.fields for document in documents]

    def shown_fields_of(
        self, document: StoredDocument, names: Container[str] | None = None, tensor_form: str = DEFAULT_FORM
    ) -> bytes:
        """As `fields_of`, as a client sees it: with tensors in `tensor_form`, and of fields only these; without
        `names`, only what was fed, and nothing that indexing has made of it."""
        type_name = type_of_id(document.id)
        if (codec := self.codecs.get(type_name)) is None:
            return b"{}"
        if names is None:
            names = self.layout.types[type_name].fed
        return codec.render(self.fields_of(document), names, tensor_form)
