"""Room on the disk that is kept for one purpose: a start on a full disk, after which documents can be read and removed.

To open its store, RocksDB writes some small files, even where nothing is to be changed; before that, files of the
checkpoint are copied.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import TypeVar

from paperwasp.base.env import sync_directory
from paperwasp.errors import NoSpace
from paperwasp.limits import STORE_RESERVE_BYTES

T = TypeVar("T")
_LOG = logging.getLogger(__name__)


def with_reserve(reserve: Path, open_all: Callable[[], T]) -> T:
    """What `open_all` gives, which may use the room of the file `reserve` where there is no other. The file is there
    again afterwards, unless there is no room for it. Errors: those of `open_all`; NoSpace says what helps."""
    try:
        opened = open_all()
    except NoSpace as error:
        if not reserve.exists():
            raise _without_reserve(reserve, error) from error
        reserve.unlink()
        _LOG.warning("The disk is full: the room that was kept for a start is used (%s)", reserve)
        try:
            opened = open_all()
        except NoSpace as again:
            raise _without_reserve(reserve, again) from again
    _keep(reserve)
    return opened


def _without_reserve(reserve: Path, error: NoSpace) -> NoSpace:
    return NoSpace(
        f"The disk is full, and the room that is kept for a start is used: make {STORE_RESERVE_BYTES >> 20} MiB of "
        f"room on the disk of '{reserve.parent}', and start again. Nothing that was acknowledged is lost "
        f"({error.message})"
    )


def _keep(reserve: Path) -> None:
    """Makes the file, where it is not there and can be."""
    if reserve.exists():
        return
    try:
        with reserve.open("xb") as file:
            os.posix_fallocate(file.fileno(), 0, STORE_RESERVE_BYTES)
            os.fsync(file.fileno())
        sync_directory(reserve.parent)
    except OSError:
        with suppress(OSError):
            reserve.unlink()
