"""Systems that lack what only Linux has: the functions are taken away, and all works by what is there."""

from __future__ import annotations

import mmap
import os
from pathlib import Path

import pytest

from paperwasp.base import env
from paperwasp.storage.attributes.array_file import FilePlace
from paperwasp.storage.attributes.growable import Reserved


@pytest.fixture(autouse=True)
def other_system(monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (os, "sched_getaffinity"),
        (os, "posix_fallocate"),
        (os, "fdatasync"),
        (mmap, "MADV_HUGEPAGE"),
    ):
        monkeypatch.delattr(module, name, raising=False)
    monkeypatch.setattr("paperwasp.storage.attributes.growable._MAP_NORESERVE", 0)


def test_processors_are_counted() -> None:
    assert env.processors() == os.cpu_count()


def test_arrays_are_reserved(tmp_path: Path) -> None:
    memory = Reserved(1 << 20, None).memory
    memory[100:103] = b"abc"
    assert memory[99:104] == b"\0abc\0"
    path = tmp_path / "array"
    path.write_bytes(b"0123456789")
    reserved = Reserved(1 << 20, None)
    skew = reserved.begin_with(FilePlace(path, 3), 4)
    assert reserved.memory[skew : skew + 4] == b"3456"


def test_paged_arrays_have_their_disk_space(tmp_path: Path) -> None:
    reserved = Reserved(1 << 26, tmp_path)
    reserved.allow(5)
    file = reserved._file
    assert file is not None
    assert os.fstat(file).st_blocks * 512 >= 16 << 20
    reserved.memory[:3] = b"abc"
    reserved.allow((16 << 20) + 1)
    assert reserved.memory[:4] == b"abc\0" and os.fstat(file).st_size == 1 << 26


def test_files_are_synced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fsync", synced.append)
    path = tmp_path / "file"
    with path.open("wb") as file:
        file.write(b"x")
        file.flush()
        env.sync_data(file.fileno())
        assert synced == [file.fileno()]
