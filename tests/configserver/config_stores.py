"""Config stores for tests: one without a disk, and one whose process dies at a change."""

from __future__ import annotations

from collections.abc import Callable

from paperwasp.base.file_snapshot import SourceFile
from paperwasp.coordination.config_store import ConfigStore, Entry, Watcher
from paperwasp.errors import Conflict


class Crash(BaseException):
    """The process was killed."""


class CrashingStore:
    """A config store whose process dies at change number `last`: right before it, or right after it."""

    def __init__(self, store: ConfigStore, last: int, after: bool) -> None:
        self._store = store
        self._last = last
        self._after = after
        self._changes = 0
        self.get, self.keys = store.get, store.keys
        self.watch, self.get_blob, self.blobs = store.watch, store.get_blob, store.blobs
        self.announce, self.announced = store.announce, store.announced
        self.open_files = store.open_files

    def _step(self, change: Callable[[], object]) -> None:
        self._changes += 1
        if self._changes == self._last:
            if self._after:
                change()
            raise Crash

    def create(self, key: str, value: bytes) -> int:
        self._step(lambda: self._store.create(key, value))
        return self._store.create(key, value)

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        self._step(lambda: self._store.compare_and_set(key, value, expected_revision))
        return self._store.compare_and_set(key, value, expected_revision)

    def delete(self, key: str) -> None:
        self._step(lambda: self._store.delete(key))
        self._store.delete(key)

    def put_blob(self, content: bytes) -> str:
        self._step(lambda: self._store.put_blob(content))
        return self._store.put_blob(content)

    def delete_blob(self, name: str) -> None:
        self._step(lambda: self._store.delete_blob(name))
        self._store.delete_blob(name)


class MemoryStore:
    """A config store without a disk."""

    def __init__(self) -> None:
        self._entries: dict[str, Entry] = {}
        self._announced: dict[str, bytes] = {}
        self._watchers: list[tuple[str, Watcher]] = []
        self._blobs: dict[str, bytes] = {}
        self._revision = 0

    def end_processes(self) -> None:
        """What processes announce and watch ends, as where all of them were killed."""
        self._announced.clear()
        self._watchers.clear()

    def get(self, key: str) -> Entry | None:
        return self._entries.get(key)

    def create(self, key: str, value: bytes) -> int:
        if key in self._entries:
            raise Conflict(key)
        return self._set(key, value)

    def compare_and_set(self, key: str, value: bytes, expected_revision: int) -> int:
        if key not in self._entries or self._entries[key].revision != expected_revision:
            raise Conflict(key)
        return self._set(key, value)

    def _set(self, key: str, value: bytes) -> int:
        self._revision += 1
        self._entries[key] = Entry(value, self._revision)
        self._tell(key, self._entries[key])
        return self._revision

    def delete(self, key: str) -> None:
        if self._entries.pop(key, None) is not None:
            self._tell(key, None)

    def keys(self, prefix: str = "") -> tuple[str, ...]:
        return tuple(sorted(key for key in self._entries if key.startswith(prefix)))

    def watch(self, prefix: str, watcher: Watcher) -> Callable[[], None]:
        found = (prefix, watcher)
        self._watchers.append(found)
        return lambda: self._watchers.remove(found)

    def _tell(self, key: str, entry: Entry | None) -> None:
        for prefix, watcher in list(self._watchers):
            if key.startswith(prefix):
                watcher(key, entry)

    def announce(self, key: str, value: bytes | None) -> None:
        if self._announced.get(key) == value:
            return
        if value is None:
            del self._announced[key]
        else:
            self._announced[key] = value
        self._tell(key, None if value is None else Entry(value, 0))

    def announced(self, prefix: str = "") -> dict[str, bytes]:
        return {key: value for key, value in sorted(self._announced.items()) if key.startswith(prefix)}

    def open_files(self) -> list[SourceFile]:
        return []

    def put_blob(self, content: bytes) -> str:
        self._blobs[str(hash(content))] = content
        return str(hash(content))

    def get_blob(self, name: str) -> bytes | None:
        return self._blobs.get(name)

    def delete_blob(self, name: str) -> None:
        self._blobs.pop(name, None)

    def blobs(self) -> tuple[str, ...]:
        return tuple(sorted(self._blobs))
