"""The config store, which keeps sessions, packages and the choice of the active application.

Whoever decides something that must hold after a crash, or that two could decide at once, decides it here, by
`create` or `compare_and_set`. Embedded, the store is a folder of files (`FileConfigStore`); in a cluster it is the
key-value and object store of the message system. Nothing else knows which.

The contract, which `tests/coordination/config_store_conformance.py` runs on every implementation:

* A change that has returned is durable, and seen by every later read.
* A change that raised, or was cut off by a crash, has happened whole or not at all.
* Revisions rise over the whole store and are never used twice, not even for a key that was deleted between.
* Watchers are notified of every change under their prefix, once it is durable, in order, and never under a lock.
* Announcements are for what is true only while a process runs: they are not durable, cost no sync, and end with the
  process that made them.

Threads: every method may be called from any thread.
"""

from __future__ import annotations

import hashlib
import struct
import threading
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple, Protocol

from paperwasp.base.file_snapshot import SourceFile, held, open_file
from paperwasp.coordination.disk import REAL_DISK, Disk
from paperwasp.errors import Conflict, Corruption, InvalidInput
from paperwasp.limits import CONFIG_KEY_LENGTH


class Entry(NamedTuple):
    """A value and the revision of the change that set it."""

    value: bytes
    revision: int


Watcher = Callable[[str, Entry | None], None]
"""(key, what it holds now, at revision 0 where that is announced; None: deleted)."""


class ConfigStore(Protocol):
    """Small values under keys, changed one at a time, and large blobs that never change.

    A key is segments of letters, digits and `_-.=` joined by `/`; a segment does not begin with `.`.
    """

    def get(self, key: str) -> Entry | None:
        """The entry of `key`, or None where it has none."""

    def create(self, key: str, value: bytes) -> int:
        """Sets a key that is not there. Returns the revision. Errors: Conflict if it is there."""

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        """Sets a key that nobody changed since `expected_revision`. Returns the new revision. Errors: Conflict."""

    def delete(self, key: str) -> None:
        """Removes the key; one that is not there is no error."""

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        """The keys that begin with `prefix`, sorted."""

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        """Tells `watcher` of each change and announcement from now on; call the result to stop.

        A store elsewhere may tell late, twice, or lose what was told while the connection was broken: whoever watches
        reads what the key holds now, and looks again from time to time.
        """

    def announce(self, key: str, value: bytes | None) -> None:
        """Has everybody know the value until this process ends or withdraws it (None). A key that is announced holds
        nothing else."""

    def announced(self, prefix: str = "") -> dict[str, bytes]:
        """Return the announcements under keys that begin with `prefix`, by key, sorted."""

    def open_files(self) -> list[SourceFile]:
        """Open the files that a backup keeps of the store, as it is now, between two changes."""

    def put_blob(self, content: bytes) -> str:
        """Keeps the bytes and returns their name, which depends on the content only."""

    def get_blob(self, name: str) -> bytes | None:
        """The bytes of that name, or None. Errors: Corruption if they are not those that were put."""

    def delete_blob(self, name: str) -> None:
        """Removes the blob; one that is not there is no error."""

    def blobs(self) -> tuple[str, ...]:
        """The names of all blobs, sorted."""


_SEGMENT_CHARACTERS: Final = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-.=")
_HEADER: Final = struct.Struct("<4sI")
"""Magic, CRC-32 of the rest of the file."""
_CHANGE: Final = struct.Struct("<QB")
"""Revision, 1 for a value and 0 for a deleted key. The value follows."""
_MAGIC: Final = b"pwc1"


class FileConfigStore:
    """The config store as a folder: one file per key under `keys/`, one per blob under `blobs/`.

    One process owns the folder at a time (the service holds a lock on the data directory). A deleted key leaves a file
    that says so until the next change, so that its revision is not used again. Format:
    docs/internals/formats/config-store.md.
    """

    def __init__(self, directory: Path, disk: Disk = REAL_DISK) -> None:
        self._keys_directory = directory / "keys"
        self._blobs_directory = directory / "blobs"
        self._disk = disk
        self._lock = threading.RLock()
        self._watchers: dict[object, tuple[str, Watcher]] = {}
        self._changes: deque[tuple[str, Entry | None]] = deque()
        self._announced: dict[str, bytes] = {}
        self._telling = threading.Lock()
        for folder in (directory, self._keys_directory, self._blobs_directory):
            disk.make_directory(folder)
        disk.remove_temporary(self._keys_directory)
        disk.remove_temporary(self._blobs_directory)
        self._deletion: Path | None = None
        """The file of the last change, if that was a deletion."""
        self._revision = self._recover()

    # Values

    def get(self, key: str) -> Entry | None:
        path = self._path(key)
        with self._lock:
            return _live(_read(path))

    def create(self, key: str, value: bytes) -> int:
        path = self._path(key)
        with self._lock:
            if _live(_read(path)) is not None:
                raise Conflict(f"'{key}' exists already")
            revision = self._write(key, path, value)
        self._tell()
        return revision

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        path = self._path(key)
        with self._lock:
            entry = _live(_read(path))
            if entry is None or entry.revision != expected_revision:
                found = f"is at revision {entry.revision}" if entry else "does not exist"
                raise Conflict(f"'{key}' {found}, not at revision {expected_revision}")
            revision = self._write(key, path, value)
        self._tell()
        return revision

    def delete(self, key: str) -> None:
        path = self._path(key)
        with self._lock:
            if _live(_read(path)) is not None:
                self._write(key, path, None)
        self._tell()

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        with self._lock:
            return tuple(key for key, path in self._files() if key.startswith(prefix) and _live(_read(path)))

    # Watching

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        token = object()
        with self._lock:
            self._watchers[token] = (prefix, watcher)

        def stop() -> None:
            with self._lock:
                self._watchers.pop(token, None)

        return stop

    def announce(self, key: str, value: bytes | None) -> None:
        check_key(key)
        with self._lock:
            if self._announced.get(key) == value:
                return
            if value is None:
                del self._announced[key]
            else:
                self._announced[key] = value
            self._changes.append((key, None if value is None else Entry(value, 0)))
        self._tell()

    def announced(self, prefix: str = "") -> dict[str, bytes]:
        with self._lock:
            return {key: self._announced[key] for key in sorted(self._announced) if key.startswith(prefix)}

    def _tell(self) -> None:
        """Delivers what is waiting. One thread delivers at a time, so that the order of changes holds."""
        while self._changes and self._telling.acquire(blocking=False):
            try:
                while self._changes:
                    self._tell_one(*self._changes.popleft())
            finally:
                self._telling.release()

    def _tell_one(self, key: str, entry: Entry | None) -> None:
        """Call the watchers of a key. A store that tells late, twice or not at all replaces this."""
        with self._lock:
            watchers = [watcher for prefix, watcher in self._watchers.values() if key.startswith(prefix)]
        for watcher in watchers:
            watcher(key, entry)

    # Blobs

    def put_blob(self, content: bytes) -> str:
        name = hashlib.sha256(content).hexdigest()
        with self._lock:
            self._disk.write_whole(self._blobs_directory / name, content)
        return name

    def get_blob(self, name: str) -> bytes | None:
        path = self._blob_path(name)
        try:
            content = path.read_bytes()
        except FileNotFoundError:
            return None
        if hashlib.sha256(content).hexdigest() != name:
            raise Corruption(f"{path}: the content does not have the checksum that is its name")
        return content

    def delete_blob(self, name: str) -> None:
        self._disk.remove(self._blob_path(name))

    def blobs(self) -> tuple[str, ...]:
        return tuple(sorted(path.name for path in self._blobs_directory.iterdir() if _is_blob_name(path.name)))

    def _blob_path(self, name: str) -> Path:
        if not _is_blob_name(name):
            raise InvalidInput(f"'{name}' is not the name of a blob")
        return self._blobs_directory / name

    # Files

    def open_files(self) -> list[SourceFile]:
        with self._lock:
            keys = [held(f"keys/{path.name}", path.read_bytes()) for _, path in self._files()]
            blobs: list[SourceFile] = []
            for name in self.blobs():
                with suppress(FileNotFoundError):  # blobs that no key names any more go without the lock
                    blobs.append(open_file(f"blobs/{name}", self._blob_path(name)))
            return [*keys, *blobs]

    def _path(self, key: str) -> Path:
        check_key(key)
        return self._keys_directory / key.replace("/", "%")

    def _files(self) -> Iterator[tuple[str, Path]]:
        for path in sorted(self._keys_directory.iterdir()):
            yield path.name.replace("%", "/"), path

    def _write(self, key: str, path: Path, value: bytes | None) -> int:
        self._revision += 1
        body = _CHANGE.pack(self._revision, value is not None) + (value or b"")
        self._disk.write_whole(path, _HEADER.pack(_MAGIC, zlib.crc32(body)) + body)
        self._changes.append((key, None if value is None else Entry(value, self._revision)))
        before, self._deletion = self._deletion, path if value is None else None
        if before is not None and before != path:
            self._disk.remove(before)
        return self._revision

    def _recover(self) -> int:
        """The highest revision in the folder. Forgets deleted keys, except one that holds that revision."""
        revisions = {path: (_revision(path), _live(_read(path)) is None) for _, path in self._files()}
        highest = max((revision for revision, _ in revisions.values()), default=0)
        for path, (revision, deleted) in revisions.items():
            if deleted and revision != highest:
                self._disk.remove(path)
            elif deleted:
                self._deletion = path
        return highest


def check_key(key: str) -> None:
    """Errors: InvalidInput where `key` is not a key of a config store."""
    segments = key.split("/")
    fits = all(s and not s.startswith(".") and _SEGMENT_CHARACTERS.issuperset(s) for s in segments)
    if not fits or len(key) > CONFIG_KEY_LENGTH:
        raise InvalidInput(f"{key!r} is not a key of the config store")


def _is_blob_name(name: str) -> bool:
    return len(name) == 64 and set("0123456789abcdef").issuperset(name)


def _read(path: Path) -> tuple[int, bytes | None] | None:
    """(revision, value; None: deleted), or None where there is no such file. Errors: Corruption."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return None
    if len(content) < _HEADER.size + _CHANGE.size:
        raise Corruption(f"{path}: {len(content)} bytes are too few for a value of the config store")
    magic, checksum = _HEADER.unpack_from(content)
    body = content[_HEADER.size :]
    if magic != _MAGIC or checksum != zlib.crc32(body):
        raise Corruption(f"{path}, offset 0: the checksum does not fit the content")
    revision, has_value = _CHANGE.unpack_from(body)
    return revision, body[_CHANGE.size :] if has_value else None


def read_key_file(path: Path) -> bytes | None:
    """The value in the file of a key; None where it says that the key was deleted, or is gone. Errors: Corruption."""
    found = _read(path)
    return found[1] if found else None


def _live(found: tuple[int, bytes | None] | None) -> Entry | None:
    if found is None or found[1] is None:
        return None
    return Entry(found[1], found[0])


def _revision(path: Path) -> int:
    found = _read(path)
    return found[0] if found else 0
