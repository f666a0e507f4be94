"""A data directory, file by file: whole, or what is damaged and what can be done. Works beside a running service."""

from __future__ import annotations

import fcntl
import hashlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Final

import orjson

from paperwasp import limits
from paperwasp.cluster.config_store import read_key_file
from paperwasp.cluster.log_format import START, Mark
from paperwasp.errors import Corruption, PaperwaspError
from paperwasp.operations.backup.placing import RESTORING, UNFINISHED
from paperwasp.server.doctor.checkpoint import CheckedCheckpoint, check_checkpoint, checkpoint_directory
from paperwasp.server.doctor.findings import Area, Finding
from paperwasp.server.doctor.log import CheckedLog, check_log
from paperwasp.server.roles.data_version import check_version

_AREA: Final = Area("data")
_TRIES: Final = 3
"""A service that runs replaces files while they are read; damage is still there the next time."""
_FIRST: Final = frozenset({"keys", "lock", "logs", "version"})
"""What may be there before a service has been: `paperwasp key` makes keys."""
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
    message = found.message if isinstance(found, PaperwaspError) else _describe_os_error(found)
    yield _AREA.error(name, message, found.remedy if isinstance(found, Corruption) else Corruption.remedy)


def _describe_os_error(error: OSError) -> str:
    reason = "the file is missing" if isinstance(error, FileNotFoundError) else error.strerror
    return f"{error.filename}: {reason}"


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
