"""Folders of the data directory: their names are durable once they are made, whoever made them."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from paperwasp.coordination.disk import Disk


def test_the_name_of_a_folder_is_synced_also_where_it_was_there(tmp_path: Path) -> None:
    """A process that ended behind mkdir has left it to the next one to sync what it is in."""
    synced: list[int] = []

    def fsync(descriptor: int) -> None:
        synced.append(os.fstat(descriptor).st_ino)

    disk = Disk(fsync=fsync)
    disk.make_directory(tmp_path / "a" / "b")
    assert synced == [tmp_path.stat().st_ino, (tmp_path / "a").stat().st_ino]
    synced.clear()
    disk.make_directory(tmp_path / "a" / "b")
    assert synced == [(tmp_path / "a").stat().st_ino]


def test_a_folder_above_that_may_not_be_read_keeps_nobody_from_one_that_is_there(tmp_path: Path) -> None:
    def refuse(path: Path, flags: int, mode: int) -> int:
        raise PermissionError

    Disk(open=refuse).make_directory(tmp_path)
    with pytest.raises(PermissionError):
        Disk(open=refuse).make_directory(tmp_path / "new")
