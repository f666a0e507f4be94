"""Puts restored data in the place of what a data directory holds, so that a crash leaves the one or the other.

    .restoring/   is being unpacked: what is there still counts
    .restored/    is whole: from this name on it counts, and what was there goes
    .placing/     what was there is gone; its entries are renamed to where they belong

Whoever opens a data directory first calls `finish_restore`, which takes the steps that a crash has left out. The
process that calls has the lock of the data directory.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Final

from msgspec import Struct

from paperwasp.base.env import sync_directory

RESTORING: Final = ".restoring"
_RESTORED: Final = ".restored"
_PLACING: Final = ".placing"
KEPT: Final = frozenset({"lock", "logs"})
"""Names that belong to the directory, whatever data it holds."""
UNFINISHED: Final = (_RESTORED, _PLACING)
"""Of these there is one where a restore was broken off once it counted."""
_STEPS: Final = frozenset({RESTORING, _RESTORED, _PLACING})


class Steps(Struct, frozen=True):
    """The calls that change a directory, which a test can let end anywhere."""

    rename: Callable[[Path, Path], None] = os.rename
    remove: Callable[[Path], None] = lambda path: _remove(path)
    sync: Callable[[Path], None] = sync_directory


_STEPS_OF_SYSTEM: Final = Steps()


def holds_data(directory: Path) -> bool:
    """Whether a data directory holds anything that a restore would replace."""
    return any(entry.name not in KEPT | _STEPS for entry in directory.iterdir())


def place(directory: Path, steps: Steps = _STEPS_OF_SYSTEM) -> None:
    """Replace the content of the data directory by that of `.restoring`, which is synced."""
    steps.rename(directory / RESTORING, directory / _RESTORED)
    steps.sync(directory)
    finish_restore(directory, steps)


def finish_restore(directory: Path, steps: Steps = _STEPS_OF_SYSTEM) -> bool:
    """Finishes a restore that was broken off once it counted. Returns whether there was one."""
    restored, placing = directory / _RESTORED, directory / _PLACING
    found = restored.is_dir() or placing.is_dir()
    if restored.is_dir():
        for entry in list(directory.iterdir()):
            if entry.name not in KEPT and entry != restored:
                steps.remove(entry)
        steps.sync(directory)
        steps.rename(restored, placing)
        steps.sync(directory)
    if placing.is_dir():
        for entry in list(placing.iterdir()):
            steps.rename(entry, directory / entry.name)
        steps.sync(directory)
        steps.remove(placing)
        steps.sync(directory)
    return found


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
