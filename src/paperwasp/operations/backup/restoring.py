"""Restores a backup into a data directory: unpacked beside what is there, verified, and only then put in its place."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

from paperwasp.errors import Conflict
from paperwasp.operations.backup.destination import sync_tree, write_file
from paperwasp.operations.backup.manifest import DamagedBackup, Manifest
from paperwasp.operations.backup.placing import KEPT, RESTORING, holds_data, place
from paperwasp.operations.backup.reading import read_backup
from paperwasp.operations.backup.stream import Note


def restore_backup(
    backup: Path,
    directory: Path,
    *,
    replace: bool = False,
    note: Note = lambda _: None,
    check: Callable[[Path], None] = lambda _: None,
) -> Manifest:
    """Makes `directory` hold what the backup does. The caller has the lock of the data directory.

    `check` is given the folder that holds the unpacked data, and raises where that is not to be restored.

    Errors: Conflict where it holds data and `replace` is not said; DamagedBackup, UnknownBackup, OSError. Then what
    was there is there as before.
    """
    if holds_data(directory) and not replace:
        raise Conflict(f"'{directory}' holds data already: --replace puts the backup in its place, and deletes it")
    staged = directory / RESTORING
    shutil.rmtree(staged, ignore_errors=True)
    staged.mkdir()
    try:
        manifest = read_backup(backup, lambda name, pieces: _unpack(staged, name, pieces), note)
        check(staged)
        sync_tree(staged)
    except BaseException:
        shutil.rmtree(staged, ignore_errors=True)
        raise
    place(directory)
    return manifest


def _unpack(staged: Path, name: str, pieces: Iterator[bytes]) -> None:
    first = name.partition("/")[0]
    if first in KEPT or first.startswith("."):
        raise DamagedBackup(f"the backup is damaged: it has a file '{name}', which does not belong to the data")
    try:
        write_file(staged / name, pieces)
    except (FileExistsError, NotADirectoryError):
        raise DamagedBackup(f"the backup is damaged: '{name}' is there twice") from None
