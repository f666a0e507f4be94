"""Where temporary data directories are."""

from __future__ import annotations

import shutil
from pathlib import Path
from types import SimpleNamespace

import pytest

from paperwasp.embedded import temporary
from paperwasp.embedded.temporary import TemporaryDirectory, memory_directory


@pytest.fixture
def memory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder that stands for the one in memory."""
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(temporary, "_MEMORY", tmp_path)
    return tmp_path


@pytest.mark.parametrize(("free", "is_taken"), [(2**30, True), (2**30 - 1, False)])
def test_memory_is_taken_where_it_has_room(
    memory: Path, monkeypatch: pytest.MonkeyPatch, free: int, is_taken: bool
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=free))
    assert memory_directory() == (memory if is_taken else None)


def test_memory_is_not_taken_where_somebody_says_otherwise_or_there_is_none(
    memory: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda path: SimpleNamespace(free=2**40))
    monkeypatch.setenv("TMPDIR", str(memory))
    assert memory_directory() is None
    monkeypatch.undo()
    monkeypatch.delenv("TMPDIR", raising=False)
    monkeypatch.setattr(temporary, "_MEMORY", memory / "absent")
    assert memory_directory() is None


def test_a_directory_is_made_within_its_parent_and_removed(tmp_path: Path) -> None:
    directory = TemporaryDirectory(tmp_path)
    (directory.path / "file").touch()
    assert directory.path.parent == tmp_path
    directory.close()
    assert list(tmp_path.iterdir()) == []
