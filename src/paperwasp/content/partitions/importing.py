"""Taking one partition from another node: first a picture of its documents, then the records of the log there.

    importer = node.partition_importer(3)
    importer.take_picture(file)      # this node has exactly these documents of the partition when it returns
    importer.take_records(frames)    # and what was logged there since; as often as wanted

The whole picture is checked before anything changes: what is cut, damaged or of other schemas is an error, and this
node is as it was. The documents are not written to the log here: they count once a checkpoint has them, and a crash
before that leaves what was. Records are logged here, with their marks there, so that each is applied once, also after
a crash: those up to the mark of the picture are in it, and are passed over.

The caller gives both nodes the same schemas before. This node is given others once it has taken what was logged there
under those; operations under other schemas than its own are refused, also after a start, and so are records of any
other log. The caller keeps operations of the partition away from this node until the last records are taken: with the
first one that is put here, the partition is this node's own, and it takes no records of it any more. Where the caller
has failed, it begins with a new picture. So it must where this node refuses operations for good, which may be others
than the other one refuses: the partition counts no longer as taken then.

Cost: every document is decoded twice, once to be checked. Operations of this node wait while a picture is applied.
Threads: one at a time, any but the writer's; changes are made on the writer's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from hashlib import blake2b
from typing import Any, BinaryIO, Final

import orjson
from msgspec import Struct

from paperwasp import limits
from paperwasp.content.consumer import Consumer
from paperwasp.content.layouts.codec import Codecs
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.log.moved_records import MovedRecord, PartitionMark
from paperwasp.content.log.operation_queue import OperationQueue
from paperwasp.content.log.producer import Producer
from paperwasp.content.log.records import NO_OPERATIONS, Entry, EntryKind, LoggedBatch, decode_entries
from paperwasp.content.partitions.dropping import drop_documents
from paperwasp.content.partitions.exporting import DIGEST_BYTES, VERSION
from paperwasp.content.partitions.frames import FrameKind, decode_record, read_picture
from paperwasp.content.state.apply import apply_entries, has_unfit
from paperwasp.content.state.node_state import NodeState
from paperwasp.content.views.current_state import CurrentState
from paperwasp.coordination.operation_log import Mark, RecordKind
from paperwasp.document.ids import DocumentId, partition_of
from paperwasp.document.operations import Outcome
from paperwasp.errors import Conflict, Corruption, InvalidInput, OtherVersion
from paperwasp.storage.documents.document_store import StoredForm

_KINDS: Final = (EntryKind.PUT, EntryKind.REMOVE)
_UNREADABLE: Final = (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, InvalidInput)
"""Errors of reading what nobody wrote so."""


class _Header(Struct, frozen=True):
    partition: int
    log: str
    mark: Mark
    timestamp_us: int
    layout: Layout


class PartitionImporter:
    """Takes a partition into one node."""

    def __init__(
        self,
        partition: int,
        current: CurrentState,
        operations: OperationQueue,
        producer: Producer,
        consumer: Consumer,
        apply: Callable[[LoggedBatch], Iterable[Outcome]],
    ) -> None:
        """`apply` is that of the writer."""
        self._partition = partition
        self._current = current
        self._operations = operations
        self._producer = producer
        self._consumer = consumer
        self._apply = apply

    def take_picture(self, file: BinaryIO) -> PartitionMark:
        """Replace all documents of the partition by those of the picture, which is durable when it returns. Return the
        mark that it is of.

        Errors: InvalidInput for what is no picture of this partition, or of other schemas; Corruption for one that is
        cut or damaged; Conflict where this node has later records of that log already; those of applying it.
        """
        header = self._checked(file)
        mark = PartitionMark(header.log, header.layout.fingerprint, header.mark)

        def change(state: NodeState) -> None:
            self._check_fits(header, state)
            drop_documents(state, self._partition)
            for entries in _chunks(file):
                apply_entries(state, entries)
                if state.index.memory_bytes() >= limits.CHECKPOINT_INDEX_BYTES:
                    state.index.flush(state.index.freeze())
            state.imported[self._partition] = mark
            state.timestamp_us = max(state.timestamp_us, header.timestamp_us)
            self._producer.go_on_after(state.timestamp_us)

        self._operations.run(lambda: self._consumer.change_beside_log(change))
        return mark

    def take_records(self, frames: Iterable[bytes]) -> PartitionMark:
        """Log and apply records that follow what this node has of the other log; others are passed over, if they are
        older. Return the mark of the last one that it has.

        Errors: Corruption for records that are damaged or do not follow, or whose operations this node refuses for
        good: then a new picture is due; Conflict where the schemas are others than those that the records were made
        under, the records are of another log, or no picture was taken before; those of `frames`, of logging and
        applying. Records before one that is damaged, does not follow or cannot be read are taken.
        """
        for chunk in _records_of(frames):
            self._operations.run(partial(self._log_and_apply, chunk))
        return self._current.state.imported[self._partition]

    def _log_and_apply(self, chunk: list[MovedRecord]) -> None:
        """On the writer's thread."""
        self._consumer.check()
        taken = self._current.state.imported.get(self._partition)
        if taken is None:
            raise Conflict(
                f"partition {self._partition} has not been taken from another node, or was changed here since, or not"
                " all of it could be applied: its picture comes first"
            )
        records: list[MovedRecord] = []
        entries: list[Entry] = []
        try:
            for record in chunk:
                if record.log != taken.log:
                    raise Conflict(
                        f"record {record.mark.sequence} is of another log than partition {self._partition} was taken"
                        " from: begin with a new picture"
                    )
                if self._is_next(record, taken):
                    if record.kind == RecordKind.CONFIGURATION:  # of which this log keeps that it came
                        record = record._replace(kind=RecordKind.OPERATIONS, payload=NO_OPERATIONS)
                    entries += list(self._entries_of(record))
                    records.append(record)
                    taken = PartitionMark(taken.log, self._current.state.layout.fingerprint, record.mark)
        finally:  # what comes before a wrong record counts
            if records:
                outcomes = self._apply(self._producer.append_imported(self._partition, records, entries))
                self._note_taken(taken.mark, outcomes)

    def _note_taken(self, mark: Mark, outcomes: Iterable[Outcome]) -> None:
        """Errors: Corruption where operations were refused here for good: the documents may be others than there."""
        state = self._current.state
        if has_unfit(outcomes):
            state.imported.pop(self._partition, None)
            raise Corruption(
                f"partition {self._partition}: operations up to record {mark.sequence} cannot be applied by this node:"
                " begin with a new picture"
            )
        state.note_imported(self._partition, mark)

    def _is_next(self, record: MovedRecord, taken: PartitionMark) -> bool:
        """Return whether the record is to be taken. Errors: Corruption; Conflict where the schemas have changed."""
        ahead = record.mark.sequence - taken.sequence
        if ahead > 1:
            raise Corruption(f"partition {self._partition}: record {record.mark.sequence} comes after {taken.sequence}")
        if ahead == 0 and record.mark != taken.mark:
            raise Corruption(f"partition {self._partition}: record {taken.sequence} is another than was taken before")
        if ahead != 1:
            return False
        if record.kind == RecordKind.CONFIGURATION:
            _check_layout(Layout.from_bytes(record.payload).fingerprint, self._current.state)
        elif record.kind == RecordKind.OPERATIONS:
            _check_layout(taken.layout, self._current.state)
        else:
            raise Corruption(f"record {record.mark.sequence} of partition {self._partition} is of kind {record.kind}")
        return True

    def _entries_of(self, record: MovedRecord) -> Iterator[Entry]:
        for entry in decode_entries(record.payload, lambda: f"record {record.mark.sequence}"):
            if partition_of(entry.gid) != self._partition:
                raise Corruption(f"record {record.mark.sequence} has {entry.id}, which is of another partition")
            yield entry

    def _checked(self, file: BinaryIO) -> _Header:
        """Read the whole picture; nothing changes. Errors: InvalidInput, Conflict, Corruption."""
        frames = read_picture(file)
        first = next(frames)
        if first.kind != FrameKind.HEADER:
            raise Corruption(f"offset {first.offset}: a frame of kind {first.kind} where the header is due")
        header = _header_of(first.payload)
        self._check_fits(header, self._current.state)
        codecs, digest, count = Codecs(), blake2b(digest_size=DIGEST_BYTES), 0
        for frame in frames:
            if frame.kind == FrameKind.DOCUMENTS:
                digest.update(frame.payload)
                for entry in _entries(frame.payload, frame.offset):
                    self._check_entry(entry, header.layout, codecs, frame.offset)
                    count += 1
            elif frame.kind != FrameKind.END:
                raise Corruption(f"offset {frame.offset}: a frame of kind {frame.kind} in a picture")
            elif frame.payload != orjson.dumps({"entries": count, "digest": digest.hexdigest()}):
                raise Corruption(f"offset {frame.offset}: documents of the picture are missing, or are others")
        return header

    def _check_entry(self, entry: Entry, layout: Layout, codecs: Codecs, offset: int) -> None:
        kind = layout.types.get(entry.document_type)
        try:
            is_ours = DocumentId.parse(entry.id).gid == entry.gid and partition_of(entry.gid) == self._partition
            if kind is None or not is_ours or entry.kind not in _KINDS:
                raise ValueError("it is not of this partition")
            if entry.kind == EntryKind.PUT:
                codecs.of(kind).decode(entry.body)
        except _UNREADABLE as error:
            raise Corruption(f"offset {offset}: the document {entry.id} cannot be taken: {error}") from error

    def _check_fits(self, header: _Header, state: NodeState) -> None:
        """Errors: InvalidInput, Conflict."""
        if header.partition != self._partition:
            raise InvalidInput(f"this is partition {header.partition}, not {self._partition}")
        _check_layout(header.layout.fingerprint, state)
        taken = state.imported.get(self._partition)
        if taken is not None and taken.log == header.log and taken.sequence > header.mark.sequence:
            raise Conflict(
                f"the picture is of record {header.mark.sequence}, and record {taken.sequence} was taken already"
            )


def _records_of(frames: Iterable[bytes]) -> Iterator[list[MovedRecord]]:
    """The records in frames, a chunk at a time; those before a frame that cannot be read come before the error."""
    chunk: list[MovedRecord] = []
    size_bytes = 0
    try:
        for frame in frames:
            chunk.append(decode_record(frame))
            size_bytes += len(frame)
            if size_bytes >= limits.PARTITION_CHUNK_BYTES:
                yield chunk
                chunk, size_bytes = [], 0
    except Exception:
        yield chunk
        raise
    yield chunk


def _header_of(payload: bytes) -> _Header:
    """Errors: Corruption; OtherVersion."""
    try:
        found: dict[str, Any] = orjson.loads(payload)
        if found["version"] != VERSION:
            raise OtherVersion(f"a picture of a partition of version {found['version']}; known is {VERSION}")
        layout = Layout.from_bytes(orjson.dumps(found["layout"]))
        log, mark = bytes.fromhex(found["log"]).hex(), Mark(*found["mark"])
        return _Header(int(found["partition"]), log, mark, int(found["timestamp_us"]), layout)
    except _UNREADABLE as error:
        raise Corruption(f"the header of the picture cannot be read: {error}") from error


def _check_layout(there: str, state: NodeState) -> None:
    """Errors: Conflict where documents there are not laid out as here. Numbers of types may differ."""
    if there != state.layout.fingerprint:
        raise Conflict("the schemas are not those of this node: give it the same ones, and begin with a new picture")


def _chunks(file: BinaryIO) -> Iterator[list[Entry]]:
    """The entries of a picture that was checked, as many at a time as are in a frame."""
    for frame in read_picture(file):
        if frame.kind == FrameKind.DOCUMENTS:
            yield _entries(frame.payload, frame.offset)


def _entries(payload: bytes, offset: int) -> list[Entry]:
    """The entries in a frame of documents. Errors: Corruption."""
    try:
        form = StoredForm(payload[0])
    except (IndexError, ValueError) as error:
        raise Corruption(f"offset {offset}: documents of an unknown form") from error
    entries = list(decode_entries(payload[1:], lambda: f"offset {offset}"))
    for entry in entries:
        entry.form = form
    return entries
