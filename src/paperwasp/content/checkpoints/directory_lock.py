"""A data directory belongs to one process, and to one content node in it, at a time."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path

from paperwasp.errors import Conflict


def lock_directory(directory: Path) -> int:
    """Takes the directory until the returned descriptor is closed. Errors: Conflict when another process, or node, has
    it."""
    descriptor = os.open(directory / "LOCK", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(descriptor)
        raise Conflict(f"{directory} is in use by another process") from None
    return descriptor
