"""A data directory, file by file: whole, or what is damaged and what can be done. Works beside a running service."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import Final

import orjson
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.admin.backup.placing import RESTORING, UNFINISHED
from paperwasp.base.patterns import compile_later
from paperwasp.content.checkpoints.checkpoint import read_manifest
from paperwasp.content.checkpoints.node_files import files_of
from paperwasp.content.layouts.codec import type_of_id
from paperwasp.content.layouts.layout import Layout
from paperwasp.content.log.records import EntryKind, decode_entries
from paperwasp.content.state.bitmaps import lids_of
from paperwasp.coordination import log_format
from paperwasp.coordination.config_store import read_key_file
from paperwasp.coordination.log_end import LogEnd, read_log_end
from paperwasp.coordination.log_format import START, FileHeader, Mark, RawRecord, RecordKind
from paperwasp.errors import Corruption, LogDamage, OtherVersion, PaperwaspError
from paperwasp.server.doctor.findings import Area, Finding
from paperwasp.server.roles.data_version import check_version
from paperwasp.storage.attributes.array_file import read_arrays
from paperwasp.storage.documents.document_store import DocumentStore, StoredForm
from paperwasp.storage.index.files import check_file

_AREA: Final = Area("data")
_TRIES: Final = 3
"""A service that runs replaces files while they are read; damage is still there the next time."""
_FIRST: Final = frozenset({"keys", "lock", "logs", "version"})
"""The names that may be there before a service has been: `paperwasp key` makes keys."""
_ACTIVE: Final = "active%"
_SERVED: Final = "served%"
_PORTS: Final = "container-ports%"
Note = Callable[[int], None]


def check_data(directory: Path, note: Note = lambda _: None) -> Iterator[Finding]:
    """The findings. `note` gets the bytes that were read, of about `data_bytes(directory)`."""
    if not (directory / "config").is_dir():
        others = {entry.name for entry in directory.iterdir()} - _FIRST if directory.is_dir() else set()
        if others and not list(unfinished(directory)):
            yield _AREA.error(
                "directory", f"'{directory}' is not a data directory: it has no 'config'", "Name another: --data-dir"
            )
            return
        yield _AREA.ok("directory", f"'{directory}' holds nothing yet")
    owner = lock_owner(directory)
    yield _AREA.ok("lock", f"held by process {owner}" if owner else "free")
    yield from unfinished(directory)
    try:
        check_version(directory)
    except Corruption as error:
        yield _AREA.error("version", error.message, error.remedy)
        return
    yield from check_config(directory / "config")
    for cluster in sorted(path for path in (directory / "content").glob("*/*") if path.is_dir()):
        yield from check_cluster(cluster, note, is_served=owner is not None)


def data_bytes(directory: Path) -> int:
    """How much `check_data` reads, about: each content cluster's log and checkpoints."""
    found = [*directory.glob("content/*/*/log/*.log"), *directory.glob("content/*/*/node/checkpoints/**/*")]
    found += directory.glob("content/*/*/node/index-*/*.bin")
    size_bytes = 0
    for path in found:
        try:
            size_bytes += path.stat().st_size if path.is_file() else 0
        except FileNotFoundError:
            continue
    return size_bytes


def lock_owner(directory: Path) -> str | None:
    """The number of the process that serves the data directory; None where none does."""
    try:
        descriptor = os.open(directory / "lock", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.read(descriptor, 20).decode(errors="replace").strip() or "unknown"
    finally:
        os.close(descriptor)
    return None


def unfinished(directory: Path) -> Iterator[Finding]:
    """Restores that were broken off."""
    if any((directory / name).is_dir() for name in UNFINISHED):
        message = "a restore was broken off when the backup counted already"
        yield _AREA.warning("restore", message, "Start the service, which finishes it, or restore again")
    if (directory / RESTORING).is_dir():
        message = f"a restore was broken off, and left '{RESTORING}'; it does not count"
        yield _AREA.warning("restore", message, f"Restore again, or remove '{directory / RESTORING}'")


def check_config(config: Path) -> Iterator[Finding]:
    """The config store: every key, every package, and that no application is lost."""
    keys: dict[str, bytes] = {}
    found: set[str] = set()
    damage = []
    for path in sorted((config / "keys").glob("*")):
        found.add(path.name)
        try:
            value = read_key_file(path)
        except Corruption as error:
            damage.append(error.message)
            continue
        if value is not None:
            keys[path.name] = value
    for path in sorted((config / "blobs").glob("*")):
        try:
            with path.open("rb") as file:
                if len(path.name) == 64 and hashlib.file_digest(file, "sha256").hexdigest() != path.name:
                    damage.append(f"{path}: the content does not have the checksum that is its name")
        except FileNotFoundError:
            continue
    served = {name.removeprefix(_SERVED) for name in keys if name.startswith(_SERVED)}
    active = {name.removeprefix(_ACTIVE) for name in keys if name.startswith(_ACTIVE)}
    lost = sorted(_ACTIVE + name for name in served - active if _ACTIVE + name not in found)
    damage += [
        f"the config store has lost the key '{key.replace('%', '/')}', which says what is active" for key in lost
    ]
    for message in damage:
        yield _AREA.error("config store", message, Corruption.remedy)
    if not damage:
        yield _AREA.ok("config store", f"{len(keys)} keys; applications: {len(active)}")
        yield from _ports(keys)


def _ports(keys: dict[str, bytes]) -> Iterator[Finding]:
    """The ports that containers were given."""
    given: list[str] = []
    for name, value in keys.items():
        if name.startswith(_PORTS):
            try:
                ports = orjson.loads(value)
                given += [f"{cluster} {port or 'of the command line'}" for cluster, port in sorted(ports.items())]
            except (ValueError, AttributeError):
                remedy = "Stop the service, remove this key, and start: the ports are given again"
                yield _AREA.error("port record", f"config/keys/{name} cannot be read", remedy)
                return
    yield _AREA.ok("port record", ", ".join(given) or "no container was given a port")


def check_cluster(directory: Path, note: Note, *, is_served: bool) -> Iterator[Finding]:
    """A content cluster's log and checkpoint, and that they belong together."""
    name = f"{directory.parent.name}/{directory.name}"
    for attempt in range(_TRIES if is_served else 1):
        try:
            checkpoint, log = _read_cluster(directory, note if attempt == 0 else lambda _: None, is_served=is_served)
        except (PaperwaspError, OSError) as error:
            found = error
            continue
        yield from _describe(name, checkpoint, log)
        return
    if isinstance(found, PaperwaspError):
        message = found.message
    else:
        reason = "the file is missing" if isinstance(found, FileNotFoundError) else found.strerror
        message = f"{found.filename}: {reason}"
    yield _AREA.error(name, message, found.remedy if isinstance(found, Corruption) else Corruption.remedy)


def _read_cluster(directory: Path, note: Note, *, is_served: bool) -> tuple[CheckedCheckpoint | None, CheckedLog]:
    node = directory / "node"
    current = checkpoint_directory(node)
    checkpoint = check_checkpoint(node, current, note) if current is not None else None
    applied: tuple[Mark, ...] = checkpoint.applied if checkpoint is not None else (START,) * limits.PARTITIONS
    return checkpoint, check_log(directory / "log", applied, note, is_served=is_served)


def _describe(name: str, checkpoint: CheckedCheckpoint | None, log: CheckedLog) -> Iterator[Finding]:
    if checkpoint is None:
        yield _AREA.ok(f"{name} checkpoint", "none yet: all is in the log")
    else:
        size = f"{checkpoint.size_bytes / 1e6:.1f} MB in {checkpoint.files} files"
        yield _AREA.ok(f"{name} checkpoint", f"{checkpoint.documents} documents, {size}, number {int(checkpoint.name)}")
        if checkpoint.timestamp_us > time.time_ns() // 1000 + 60_000_000:
            message = "the last operation is of a time to come: the clock was set back"
            yield _AREA.warning(f"{name} clock", message, "Set the clock: later operations get times after that one")
    after = log.records - _covered(checkpoint, log)
    yield _AREA.ok(f"{name} log", f"{log.records} records, {log.size_bytes / 1e6:.1f} MB; {after} after the checkpoint")
    if log.torn_bytes:
        message = f"{log.torn_bytes} bytes at its end are of an append that was not acknowledged"
        yield _AREA.warning(f"{name} log", message, "Nothing: the next start cuts them off")
    yield from _missing_words(name, checkpoint, log)


def _missing_words(name: str, checkpoint: CheckedCheckpoint | None, log: CheckedLog) -> Iterator[Finding]:
    """Documents that were stored without their empty values: what indexing made of these again has lost words."""
    layout = log.layout or (checkpoint.layout if checkpoint is not None else None)
    of_checkpoint: Mapping[str, int] = {} if checkpoint is None else checkpoint.bare
    makers = () if layout is None else [kind.name for kind in layout.types.values() if kind.fed is not None]
    for kind in makers:
        documents, puts = of_checkpoint.get(kind, 0), log.bare[kind]
        if documents or puts:
            counts = [f"{documents} documents"] * bool(documents) + [f"{puts} puts in the log"] * bool(puts)
            message = (
                f"{' and '.join(counts)} of '{kind}' are of a version that did not keep empty values: fields that"
                " indexing makes of several may lack words of those that were reindexed since"
            )
            remedy = f"Start the service and reindex: POST .../reindex?documentType={kind} on the port of deployments"
            yield _AREA.warning(f"{name} words", message, remedy)


def _covered(checkpoint: CheckedCheckpoint | None, log: CheckedLog) -> int:
    if checkpoint is None:
        return 0
    pairs = zip(checkpoint.applied, log.bases, strict=True)
    return sum(mark.sequence - base.sequence for mark, base in pairs)


# The checkpoint of a content node, with all of its files, read and compared with their checksums.


class CheckedCheckpoint(Struct, frozen=True):
    """The contents of a checkpoint, in figures."""

    name: str
    applied: tuple[Mark, ...]
    timestamp_us: int
    documents: int
    """By its live rows."""
    files: int
    size_bytes: int
    layout: Layout
    bare: Counter[str]
    """By document type, how many documents earlier versions stored without their empty values."""


def checkpoint_directory(node: Path) -> Path | None:
    """The folder of the checkpoint that counts; None where there is none. Errors: Corruption."""
    current = node / "checkpoints" / "CURRENT"
    try:
        name = current.read_bytes().decode(errors="replace")
    except FileNotFoundError:
        return None
    directory = node / "checkpoints" / name
    if not name.isdecimal() or not (directory / "manifest.json").is_file():
        raise Corruption(f"{current}: offset 0: names {name!r}, which is not a checkpoint")
    return directory


def check_checkpoint(node: Path, directory: Path, note: Note) -> CheckedCheckpoint:
    """Reads all files of a checkpoint. Errors: Corruption by file and offset; FileNotFoundError."""
    manifest = read_manifest(directory)
    layout = Layout.from_bytes(orjson.dumps(manifest["layout"]))
    sizes = [_check_arrays(directory / file, note) for *_, file in manifest["columns"]]
    rows = directory / "rows.arrays"
    sizes.append(_check_arrays(rows, note))
    index = node / manifest["index_directory"]
    for file in files_of(manifest["index"]):
        check_file(index, file)
        sizes.append(file["size_bytes"])
        note(file["size_bytes"])
    live = read_arrays(rows)["live"]
    documents = len(lids_of(live))
    bare: Counter[str] = Counter()
    stored, stored_bytes = _check_store(directory / "store", note, bare)
    if stored != documents:
        raise Corruption(
            f"{directory / 'store'}: holds {stored} documents; the checkpoint has {documents} rows of them"
        )
    return CheckedCheckpoint(
        name=directory.name,
        applied=tuple(Mark(*mark) for mark in manifest["applied"]),
        timestamp_us=manifest["timestamp_us"],
        documents=documents,
        files=len(sizes) + sum(1 for _ in (directory / "store").iterdir()),
        size_bytes=sum(sizes) + stored_bytes,
        layout=layout,
        bare=bare,
    )


def _check_arrays(path: Path, note: Note) -> int:
    try:
        read_arrays(path)
    except (KeyError, ValueError) as error:
        raise Corruption(f"{path}: offset 0: a damaged header: {error}") from None
    size_bytes = path.stat().st_size
    note(size_bytes)
    return size_bytes


def _check_store(directory: Path, note: Note, bare: Counter[str]) -> tuple[int, int]:
    """How many documents there are, and bytes on disk; counts those that are `bare`. RocksDB compares the checksum of
    each block that is read.

    It writes small files beside those that it opens: so it is given a folder of links to them. Errors: Corruption.
    """
    with tempfile.TemporaryDirectory(prefix="paperwasp-doctor-") as folder:
        for file in directory.iterdir():
            if file.suffix == ".json":
                shutil.copyfile(file, Path(folder, file.name))
            else:
                Path(folder, file.name).symlink_to(file.absolute())
        try:
            with closing(DocumentStore(Path(folder), read_only=True)) as store:
                documents, size_bytes = 0, store.size_bytes()
                for _, document in store.scan():
                    documents += 1
                    if document.form is StoredForm.BARE:
                        bare[type_of_id(document.id)] += 1
        except PaperwaspError as error:
            message = error.message.replace(folder, str(directory))
            raise Corruption(message if isinstance(error, Corruption) else f"{directory}: {message}") from error
    note(size_bytes)
    return documents, size_bytes


# An operation log, read as a start reads it, with nothing changed (docs/internals/formats/operation-log.md).


_FILE_NAME: Final = compile_later(r"\d{16}\.log")


class CheckedLog(Struct):
    """The log, as far as it is whole."""

    files: int = 0
    size_bytes: int = 0
    records: int = 0
    torn_bytes: int = 0
    """At the end, and acknowledged to no client: the next start cuts them off."""
    bases: tuple[Mark, ...] = ()
    """The records before the first file, one for each partition."""
    marks: list[Mark] = field(default_factory=lambda: [START] * limits.PARTITIONS)
    """The last ones."""
    layout: Layout | None = None
    """The last one that a start would apply; None: there is none."""
    bare: Counter[str] = field(default_factory=Counter)
    """By document type, how many puts a start would apply that earlier versions logged without empty values."""


def check_log(directory: Path, applied: Sequence[Mark], note: Note, *, is_served: bool = False) -> CheckedLog:
    """Reads all of a log, and compares it with what a checkpoint has applied of it (nothing: `START`s).

    `is_served`: a service appends to it meanwhile. Errors: LogDamage, as a start would raise; FileNotFoundError where
    a service removes files meanwhile.
    """
    end = read_log_end(directory)
    paths = sorted(path for path in directory.glob("*.log") if _FILE_NAME.fullmatch(path.name))
    if not paths:
        _check_last_file(directory / "none", 0, end)
        raise LogDamage(f"{directory}: the operation log is missing, with all that came after the last checkpoint")
    checked = CheckedLog(files=len(paths))
    for path in paths:
        data = path.read_bytes()
        header = _header(path, data, checked)
        if not checked.bases:
            checked.bases, checked.marks = header.bases, list(header.bases)
            _check_bases(path, checked.bases, applied)
        records = list(log_format.scan(data))
        _check_records(path, records, checked, applied)
        _check_payloads(path, data, records, checked, applied)
        _check_tail(path, data, records, checked, end, may_be_torn=path == paths[-1], is_served=is_served)
        note(len(data))
    _check_end(paths[-1], checked, applied, end)
    return checked


def _header(path: Path, data: bytes, checked: CheckedLog) -> FileHeader:
    header = log_format.decode_file_header(data)
    if header is None:
        if (version := log_format.version_of(data)) not in (None, log_format.FILE_VERSION):
            raise OtherVersion(f"{path}: a log of version {version}; known is {log_format.FILE_VERSION}")
        raise LogDamage(f"{path}: offset 0: a damaged file header")
    if int(path.stem) != header.number:
        raise LogDamage(f"{path}: offset 0: this file says it is number {header.number}")
    if checked.bases and list(header.bases) != checked.marks:
        raise LogDamage(f"{path}: offset 0: records are missing between the file before it and this one")
    return header


def _check_bases(path: Path, bases: Sequence[Mark], applied: Sequence[Mark]) -> None:
    for partition, (base, mark) in enumerate(zip(bases, applied, strict=True)):
        if mark.sequence < base.sequence:
            missing = f"{mark.sequence + 1}..{base.sequence}"
            raise LogDamage(f"{path}: records {missing} of partition {partition} are missing before this file")
        if mark.sequence == base.sequence and mark.crc != base.crc:
            raise LogDamage(_other(f"{path}: header", partition, mark))


def _check_records(path: Path, records: list[RawRecord], checked: CheckedLog, applied: Sequence[Mark]) -> None:
    """Moves the marks over the records."""
    if gap := log_format.first_gap(records, checked.marks):
        due = checked.marks[gap.partition].sequence + 1
        message = f"record {gap.mark.sequence} of partition {gap.partition} where {due} is due"
        raise LogDamage(f"{path}: offset {gap.offset}: {message}")
    for record in records:
        mark = applied[record.partition]
        if record.mark.sequence == mark.sequence and record.mark.crc != mark.crc:
            raise LogDamage(_other(f"{path}: offset {record.offset}", record.partition, mark))
    checked.records += len(records)


def _check_payloads(
    path: Path, data: bytes, records: list[RawRecord], checked: CheckedLog, applied: Sequence[Mark]
) -> None:
    """Read all records that a start would apply. Errors: Corruption; OtherVersion."""
    for record in records:
        if record.mark.sequence <= applied[record.partition].sequence:
            continue
        payload = data[record.offset + log_format.RECORD_HEADER_BYTES : record.end]
        where = f"{path}: offset {record.offset}"
        if record.kind == RecordKind.OPERATIONS:
            for entry in decode_entries(payload, partial(str, where)):
                if entry.kind is EntryKind.PUT and entry.form is StoredForm.BARE:
                    checked.bare[entry.document_type] += 1
        elif record.kind == RecordKind.CONFIGURATION:
            checked.layout = Layout.from_bytes(payload)
        else:
            raise Corruption(f"{where}: a record of unknown kind {record.kind}")


def _check_tail(
    path: Path,
    data: bytes,
    records: list[RawRecord],
    checked: CheckedLog,
    end: LogEnd | None,
    *,
    may_be_torn: bool,
    is_served: bool,
) -> None:
    stop = records[-1].end if records else log_format.FILE_HEADER_BYTES
    acknowledged = end.size_bytes if end is not None and end.number == int(path.stem) else 0
    checked.size_bytes += stop
    if stop < acknowledged:
        what = "the file ends here" if stop == len(data) else "a damaged record"
        raise LogDamage(f"{path}: offset {stop}: {what}; {acknowledged} bytes of this file were acknowledged")
    if stop == len(data):
        return
    if not may_be_torn or not (is_served or log_format.is_torn(data, stop)):
        raise LogDamage(f"{path}: offset {stop}: a damaged record")
    checked.torn_bytes = 0 if is_served else len(data) - stop


def _check_end(last: Path, checked: CheckedLog, applied: Sequence[Mark], end: LogEnd | None) -> None:
    _check_last_file(last, int(last.stem), end)
    for partition, (mark, found) in enumerate(zip(applied, checked.marks, strict=True)):
        if mark.sequence > found.sequence:
            missing = f"{found.sequence + 1}..{mark.sequence}"
            raise LogDamage(
                f"{last}: the log ends here; records {missing} of partition {partition} are applied and not in the log"
            )


def _check_last_file(last: Path, number: int, end: LogEnd | None) -> None:
    if end is not None and end.number > number:
        path = last.with_name(f"{end.number:016d}.log")
        raise LogDamage(f"{path}: offset 0: this file is missing; {end.size_bytes} bytes of it were acknowledged")


def _other(where: str, partition: int, mark: Mark) -> str:
    return f"{where}: record {mark.sequence} of partition {partition} is another than the one that was applied"
