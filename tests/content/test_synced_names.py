"""What a power cut may take: the name of a folder that was made is durable only when the folder around it is synced.

A checkpoint counts from when CURRENT names it, and then the log before it goes: by then the names of all that it needs
must be durable, for POSIX promises no order between them and the name of CURRENT.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import orjson
import pytest

from paperwasp import limits
from paperwasp.content import node as node_module
from paperwasp.content.checkpoints import checkpoint as checkpoint_module
from paperwasp.coordination.disk import Disk
from paperwasp.server.roles import data_directory as data_directory_module
from paperwasp.server.roles.data_directory import DataDirectory
from tests.content.nodes import put, remove, start


class Names:
    """The folders whose names are not durable yet, by the calls that make folders and sync them."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.unsynced: set[Path] = set()
        self._mkdir, self._fsync = os.mkdir, os.fsync
        monkeypatch.setattr(os, "mkdir", self.mkdir)
        monkeypatch.setattr(os, "fsync", self.fsync)

    def mkdir(self, path: str | Path, *mode: int) -> None:
        self._mkdir(path, *mode)
        self.unsynced.add(Path(path))

    def fsync(self, descriptor: int) -> None:
        self._fsync(descriptor)
        synced = os.fstat(descriptor)
        self.unsynced = {path for path in self.unsynced if not os.path.samestat(path.parent.stat(), synced)}

    def disk(self, replace: Callable[[Path, Path], None] = os.replace) -> Disk:
        """The calls of the operating system, watched."""
        return Disk(mkdir=self.mkdir, fsync=self.fsync, replace=replace)


def test_a_checkpoint_counts_when_the_names_of_its_folders_are_durable(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names, counted = Names(monkeypatch), list[str]()
    folder = tmp_path / "new" / "node"

    def replace(source: Path, target: Path) -> None:
        if target.name == "CURRENT":
            checkpoint = target.parent / source.read_text()
            index = orjson.loads((checkpoint / "manifest.json").read_bytes().partition(b"\n")[2])["index_directory"]
            needed = {folder.parent, folder, target.parent, checkpoint, folder / index}
            assert needed.isdisjoint(names.unsynced)
            counted.append(index)
        source.replace(target)

    disk = names.disk(replace)
    monkeypatch.setattr(checkpoint_module, "REAL_DISK", disk)
    monkeypatch.setattr(node_module, "REAL_DISK", disk)
    monkeypatch.setattr(limits, "DEAD_ROWS_LEAST", 1)
    node = start(folder)
    node.apply(*(put(number, title="a") for number in range(4)))
    node.close()
    node = start(folder)
    node.apply(*(remove(number) for number in range(3)))
    node.crash()
    node = start(folder)  # which gives all documents new rows, in another folder of the index
    node.close()
    assert counted == ["index-1", "index-2"]


def test_a_data_directory_is_durable_before_it_holds_anything(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(monkeypatch)
    monkeypatch.setattr(data_directory_module, "REAL_DISK", names.disk())
    directory = DataDirectory(tmp_path / "some" / "data")
    assert not names.unsynced and directory.path.is_dir()
    directory.close()
