"""Reading one partition out of a node that serves: a picture of it, then the records that its log has after that.

    with node.export_partition(3) as export:
        send(export.picture())       # all documents and removals as of export.mark
        send(export.records())       # what was logged since; as often as wanted

The picture is read from the checkpoint that was written last, beside the node, which goes on meanwhile; the log keeps
what it has after it as long as the export is open. To move a partition, the caller sends the picture, then records
again and again, stops feeding the partition to this node, sends the last records, and only then feeds the other node.
Frames that were lost on the way are sent again after the mark that the other node gives: `export.records(mark)`.
This node keeps its documents until it is told that the other one has them (`ContentNode.drop_partition`). Who decides
that, and who routes, is not known here.

Cost: columns of all partitions are loaded a second time, and the document store is scanned; a chunk of documents is in
memory at a time. Threads: one at a time, any but the writer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from hashlib import blake2b
from typing import Any, Final

import orjson

from paperwasp import limits
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.log.moved_records import MovedRecord, PartitionMark, read_imported
from paperwasp.content.log.records import NO_OPERATIONS, Entry, EntryKind, records_of, without
from paperwasp.content.partitions.frames import (
    MAGIC,
    FrameKind,
    encode_frame,
    encode_record,
)
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.state.replay import refused_entries
from paperwasp.coordination.operation_log import LogRecord, Mark, OperationLog, RecordKind
from paperwasp.document.ids import partition_of
from paperwasp.errors import Conflict
from paperwasp.storage.documents.document_store import StoredDocument

VERSION: Final = 2
DIGEST_BYTES: Final = 16


class PartitionExport:
    """A partition of a node, as of the last checkpoint, and the log after it. Close it, or use it as a context."""

    def __init__(
        self,
        partition: int,
        state: NodeState,
        release: Callable[[], object],
        log: OperationLog,
        find_applied: Callable[[], Mark],
    ) -> None:
        """`state` was loaded for this alone; `release` lets the log forget again what the export needs of it;
        `find_applied` gives the last record of the partition that the node has applied, or raises why it cannot apply
        what is logged."""
        self._partition = partition
        self._state = state
        self._log = log
        self._release = release
        self._find_applied = find_applied
        self.mark: Final = PartitionMark(log.identity(), state.layout.fingerprint, state.applied[partition])
        """The last record of the log that the picture has."""
        self._given = self.mark.mark

    def __enter__(self) -> PartitionExport:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()

    def picture(self) -> Iterator[bytes]:
        """The bytes of the picture, a chunk of documents at a time. Errors: Corruption."""
        state = self._state
        header: dict[str, Any] = {
            "version": VERSION,
            "partition": self._partition,
            "log": self.mark.log,
            "mark": list(self.mark.mark),
            "timestamp_us": state.timestamp_us,
            "layout": orjson.loads(state.layout.to_bytes()),
        }
        yield MAGIC + encode_frame(FrameKind.HEADER, orjson.dumps(header))
        digest, count = blake2b(digest_size=DIGEST_BYTES), 0
        for chunk in self._chunks():
            count += len(chunk)
            payload = bytes((chunk[0].form,)) + records_of(chunk)[0].payload
            digest.update(payload)
            yield encode_frame(FrameKind.DOCUMENTS, payload)
        yield encode_frame(FrameKind.END, orjson.dumps({"entries": count, "digest": digest.hexdigest()}))

    def records(self, after: PartitionMark | None = None) -> Iterator[bytes]:
        """The frames of the records after the picture, or after the last that was given; after `after`, where the
        other node says that it has come to that record. A frame is given once the next one is asked for. Operations
        that the log refuses are left out.

        Errors: Corruption; Conflict for a mark of another log; NoSpace or InternalError while this node cannot apply
        what it has logged, since what of that will be refused is not known yet.
        """
        if after is not None and after.log != self.mark.log:
            raise Conflict(f"record {after.sequence} is of another log: begin with a new picture")
        last = self._find_applied()
        applied = list(self._log.last())
        applied[self._partition] = after.mark if after is not None else self._given
        refused = refused_entries(self._log, applied)
        for record in self._log.read(applied, self._partition):
            if record.sequence <= last.sequence:
                kind, payload = _moved(record, refused.get((record.partition, record.sequence), ()))
                yield encode_record(MovedRecord(self.mark.log, record.mark, kind, payload))
                self._given = record.mark

    def close(self) -> None:
        """Let go of what was read."""
        self._release()
        self._state.index.close()
        self._state.store.remove_when_unread()()

    def _chunks(self) -> Iterator[list[Entry]]:
        """Yield chunks of entries that put the documents, or remove them; those of a chunk have one form."""
        chunk: list[Entry] = []
        size_bytes = 0
        for gid, document in self._state.store.scan(removes=True, in_passing=True):
            document_type = type_of_id(document.id)
            if partition_of(gid) != self._partition or document_type not in self._state.layout.types:
                continue
            entry = self._entry(gid, document, document_type)
            is_full = len(chunk) >= limits.PARTITION_CHUNK_DOCUMENTS or size_bytes >= limits.PARTITION_CHUNK_BYTES
            if chunk and (is_full or entry.form is not chunk[0].form):
                yield chunk
                chunk, size_bytes = [], 0
            chunk.append(entry)
            size_bytes += len(entry.body)
        if chunk:
            yield chunk

    def _entry(self, gid: bytes, document: StoredDocument, document_type: str) -> Entry:
        if document.is_removed:
            return Entry(EntryKind.REMOVE, document.id, gid, document_type, document.timestamp_us)
        timestamp_us, body = int(self._state.timestamps.array[document.lid]), self._state.fields_of(document)
        return Entry(EntryKind.PUT, document.id, gid, document_type, timestamp_us, body, form=document.form)


def _moved(record: LogRecord, refused: Sequence[int]) -> tuple[int, bytes]:
    """Kind and payload of a record as it is moved on: one that had come from a third node is sent as one of this node's
    log, and of one that refuses operations it is said that it was there."""
    payload = record.payload
    if record.kind == RecordKind.CONFIGURATION:
        return record.kind, payload
    if record.kind == RecordKind.REFUSED:
        payload = NO_OPERATIONS
    elif record.kind == RecordKind.IMPORTED:
        _, payload = read_imported(payload)
    return RecordKind.OPERATIONS, without(payload, refused) if refused else payload
