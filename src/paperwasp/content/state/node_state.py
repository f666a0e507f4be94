"""The state of a content node: all its documents, as the writer holds them.

`apply` changes it by the entries of the operation log, `relayout` where the schemas change. One thread, the writer's.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

import numpy as np
from numpy.typing import NDArray

from paperwasp import limits
from paperwasp.content.layouts.codec import DocumentCodec, changed_fields, type_of_id
from paperwasp.content.layouts.layout import EMPTY, Layout
from paperwasp.content.log.moved_records import PartitionMark
from paperwasp.content.state.bitmaps import GrowingBitmap
from paperwasp.content.state.references import References
from paperwasp.coordination.operation_log import START, Mark, RecordKind
from paperwasp.storage.attributes import Column
from paperwasp.storage.attributes.growable import GrowableArray
from paperwasp.storage.documents.document_store import DocumentStore, StoredDocument
from paperwasp.storage.documents.gid_map import GID_BYTES, GidMap
from paperwasp.storage.documents.row_store import RowStore
from paperwasp.storage.index.text_index import TextIndex

_NO_LIDS: Final = np.zeros(0, np.uint32)


class NodeState:
    """All documents of one content node, as the writer holds them."""

    def __init__(self, index: TextIndex, store: DocumentStore, index_directory: Path) -> None:
        self.index = index
        self.index_directory = index_directory
        self.store = store
        self.rows = RowStore(index_directory)
        self.layout: Layout = EMPTY
        self.codecs: dict[str, DocumentCodec] = {}
        self.columns: dict[tuple[str, str], Column] = {}
        self.references = References()
        self.limit = 0
        self.live = GrowingBitmap()
        self.live_counts: dict[str, int] = {}
        self.gid_map = GidMap()
        self.document_types = GrowableArray(np.uint16)
        self.gids = GrowableArray(np.uint8, row_shape=(GID_BYTES,))
        self.changed = GrowableArray(np.uint8)
        self.timestamps = GrowableArray(np.uint64)
        """By lid, when the document was changed last, in place too. Microseconds since 1970."""
        self.row_bytes = GrowableArray(np.uint32)
        """By lid, the size of the document's JSON when it was put: about how much memory the row takes."""
        self.live_bytes = 0
        """The sum of those of live rows."""
        self.dead_bytes = 0
        """The sum of those of dead rows, and the sizes of updates in place that left values behind."""
        self.given_back_bytes = 0
        """How many of the dead bytes, about, columns have given back by themselves."""
        self._buried: list[NDArray[np.uint32]] = []
        """Rows that died since `settle`."""
        self.conform_below: dict[str, int] = {}
        """By document type: what is stored of rows below may be of an earlier layout. None where absent."""
        self.applied: list[Mark] = [START] * limits.PARTITIONS
        self.imported: dict[int, PartitionMark] = {}
        """By partition that comes from another node: the last record of the log there that is in the documents."""
        self.timestamp_us = 0
        """The time of the last entry applied."""

    @property
    def paged_directory(self) -> Path:
        """The folder of the files of paged attributes, which have no names."""
        return self.index_directory / "paged"

    def stored_fields_of(self, document: StoredDocument) -> bytes:
        """The JSON object that is stored of a document, with what was changed in place since."""
        if not self.changed.array[document.lid]:
            return document.fields
        name = type_of_id(document.id)
        is_of_earlier_layout = self._is_of_earlier_layout(document.lid, name)
        return changed_fields(document, self.layout.types[name], self.codecs[name], self.columns, is_of_earlier_layout)

    def fields_of(self, document: StoredDocument) -> bytes:
        """The JSON object of a document's fields, as the present layout has them."""
        fields, name = self.stored_fields_of(document), type_of_id(document.id)
        return self.codecs[name].conform(fields) if self._is_of_earlier_layout(document.lid, name) else fields

    def _is_of_earlier_layout(self, lid: int, document_type: str) -> bool:
        return lid < self.conform_below.get(document_type, 0)

    def bury(self, lids: NDArray[np.uint32]) -> None:
        """Mark rows as dead."""
        self.live.clear(lids)
        self._buried.append(lids)
        size_bytes = int(self.row_bytes.array[lids].sum(dtype=np.int64))
        self.live_bytes -= size_bytes
        self.dead_bytes += size_bytes

    def settle(self) -> None:
        """Give every column, of any type, a row for every lid, and bring up to date what columns derive from rows."""
        dead = np.concatenate([_NO_LIDS, *self._buried])
        self._buried = []
        for column in self.columns.values():
            column.pad(self.limit)
            self.given_back_bytes += column.settle(dead)

    def note_imported(self, partition: int, mark: Mark) -> None:
        """Go on after a record of the other log, which was made under the present layout."""
        if (taken := self.imported.get(partition)) is not None:
            self.imported[partition] = PartitionMark(taken.log, self.layout.fingerprint, mark)

    def note_own(self, partition: int, kind: int) -> None:
        """Take no more of the other log once a record of this kind has operations that were put here."""
        if kind == RecordKind.OPERATIONS:
            self.imported.pop(partition, None)

    @property
    def live_count(self) -> int:
        return self.gid_map.count
