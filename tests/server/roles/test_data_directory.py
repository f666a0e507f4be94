"""The lock of a data directory, which says whose it is where there is room for that."""

from __future__ import annotations

import errno
import os
from pathlib import Path
from typing import NoReturn

import pytest

from paperwasp.server.roles.data_directory import DataDirectory, DataLocked


def test_the_lock_says_whose_it_is(tmp_path: Path) -> None:
    (tmp_path / "lock").write_text("123456789012\n")
    first = DataDirectory(tmp_path)
    assert (tmp_path / "lock").read_text() == f"{os.getpid()}\n"
    with pytest.raises(DataLocked, match="by another service of this process"):
        DataDirectory(tmp_path)
    first.close()


def test_a_full_disk_keeps_nobody_from_the_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> NoReturn:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        first = DataDirectory(tmp_path)
    with pytest.raises(DataLocked, match="by process unknown"):
        DataDirectory(tmp_path)
    first.close()
