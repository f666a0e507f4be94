"""The config store of files: the conformance suite, damage, and a crash at every call of the operating system."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from paperwasp.coordination.config_store import ConfigStore, FileConfigStore
from paperwasp.coordination.disk import Disk
from paperwasp.errors import Conflict, Corruption
from tests.coordination.config_store_conformance import ConfigStoreConformance


class TestFileConfigStore(ConfigStoreConformance):
    @pytest.fixture
    def reopen(self, tmp_path: Path) -> Callable[[], ConfigStore]:
        return lambda: FileConfigStore(tmp_path / "config")


class Crash(BaseException):
    """The machine stopped."""


class CrashingDisk:
    """A disk of a machine that stops before its call number `last`, and loses what was not synced.

    A file that was not synced is empty after the crash, even if it was renamed (as file systems may do). A rename or a
    removal whose folder was not synced is kept or undone, as `keep_names` says.
    """

    def __init__(self, last: int, keep_names: bool) -> None:
        self.calls = 0
        self._last = last
        self._keep_names = keep_names
        self._unsynced: dict[int, Path] = {}
        self._dirty: set[Path] = set()
        self._undo: list[tuple[Path, Path, bytes | None]] = []
        self.disk = Disk(self._open, self._write, self._fsync, os.close, self._replace, self._unlink, self._mkdir)

    def _step(self) -> None:
        self.calls += 1
        if self.calls == self._last:
            self._lose()
            raise Crash

    def _open(self, path: Path, flags: int, mode: int) -> int:
        self._step()
        descriptor = os.open(path, flags, mode)
        self._unsynced[descriptor] = path
        if flags & os.O_CREAT:
            self._dirty.add(path)
        return descriptor

    def _write(self, descriptor: int, content: memoryview) -> int:
        self._step()
        return os.write(descriptor, content[: max(1, len(content) // 2)])

    def _fsync(self, descriptor: int) -> None:
        self._step()
        path = self._unsynced[descriptor]
        self._dirty.discard(path)
        self._undo = [change for change in self._undo if change[0] != path]

    def _replace(self, source: Path, target: Path) -> None:
        self._step()
        before = target.read_bytes() if target.exists() else None
        source.replace(target)
        self._undo.append((target.parent, target, before))
        if source in self._dirty:
            self._dirty.add(target)

    def _unlink(self, path: Path) -> None:
        self._step()
        before = path.read_bytes()
        path.unlink()
        self._undo.append((path.parent, path, before))

    def _mkdir(self, path: Path) -> None:
        self._step()
        path.mkdir()

    def _lose(self) -> None:
        for path in self._dirty:
            if path.exists():
                path.write_bytes(b"")
        if not self._keep_names:
            for _, path, before in reversed(self._undo):
                if before is None:
                    path.unlink()
                else:
                    path.write_bytes(before)


def _states(store: ConfigStore) -> dict[str, bytes]:
    return {key: entry.value for key in store.keys("") if (entry := store.get(key))}


def _steps(store: FileConfigStore, done: list[str]) -> None:
    """A script of changes; says in `done` which have returned."""
    revision = store.create("a", b"one")
    done.append("create")
    store.compare_and_set("a", b"two", revision)
    done.append("set")
    store.put_blob(b"blob" * 100)
    done.append("blob")
    store.delete("a")
    done.append("delete")
    store.create("b", b"three")
    done.append("again")


AFTER: list[dict[str, bytes]] = [{}, {"a": b"one"}, {"a": b"two"}, {"a": b"two"}, {}, {"b": b"three"}]


@pytest.mark.parametrize("keep_names", [True, False])
def test_a_crash_at_any_call_leaves_the_state_before_or_after(tmp_path: Path, keep_names: bool) -> None:
    last = 1
    while True:
        directory = tmp_path / str(last)
        machine = CrashingDisk(last, keep_names)
        done: list[str] = []
        try:
            _steps(FileConfigStore(directory, machine.disk), done)
        except Crash:
            _check(directory, len(done))
            last += 1
            continue
        break
    assert last > 30


def _check(directory: Path, done: int) -> None:
    store = FileConfigStore(directory)
    assert _states(store) in AFTER[done : done + 2]
    assert not list(directory.rglob(".tmp-*"))
    for name in store.blobs():
        assert store.get_blob(name) is not None
    highest = max([entry.revision for key in store.keys("") if (entry := store.get(key))], default=0)
    assert store.create("new", b"") > highest


def test_an_error_of_the_disk_is_raised_and_the_old_value_stays(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path)
    revision = store.create("a", b"1")

    def full(descriptor: int, content: memoryview) -> int:
        raise OSError(28, "No space left on device")

    failing = FileConfigStore(tmp_path, Disk(write=full))
    with pytest.raises(OSError, match="No space"):
        failing.compare_and_set("a", b"2", revision)
    assert failing.get("a") == (b"1", revision)
    with pytest.raises(Conflict):
        failing.create("a", b"3")


@pytest.mark.parametrize("content", [b"", b"pwc1", b"pwc1" + b"\0" * 13, b"x" * 40])
def test_damage_is_told_by_file(tmp_path: Path, content: bytes) -> None:
    FileConfigStore(tmp_path).create("a", b"1")
    (tmp_path / "keys" / "a").write_bytes(content)
    with pytest.raises(Corruption, match="keys/a"):
        FileConfigStore(tmp_path)


def test_any_changed_byte_is_found(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path)
    store.create("a", b"some value")
    path = tmp_path / "keys" / "a"
    whole = path.read_bytes()
    for index in range(len(whole)):
        path.write_bytes(whole[:index] + bytes([whole[index] ^ 1]) + whole[index + 1 :])
        with pytest.raises(Corruption):
            store.get("a")


def test_a_damaged_blob_is_told_and_can_be_put_again(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path)
    name = store.put_blob(b"whole")
    (tmp_path / "blobs" / name).write_bytes(b"who")
    with pytest.raises(Corruption, match=name):
        store.get_blob(name)
    store.put_blob(b"whole")
    assert store.get_blob(name) == b"whole"


def test_deleted_keys_leave_at_most_one_file(tmp_path: Path) -> None:
    store = FileConfigStore(tmp_path)
    store.create("kept", b"")
    for number in range(50):
        store.create(f"k{number}", b"")
        store.delete(f"k{number}")
    assert len(list((tmp_path / "keys").iterdir())) == 2
    again = FileConfigStore(tmp_path)
    assert again.create("k49", b"") == 102
    assert sorted(path.name for path in (tmp_path / "keys").iterdir()) == ["k49", "kept"]
