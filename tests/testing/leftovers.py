"""What a process makes, or leaves behind: that takes a moment, and tests wait for it, but not for ever."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path

_TRIES = 4000
_BETWEEN_SECONDS = 0.02


def is_gone(path: Path) -> bool:
    """Whether a file or folder is removed, or is so before long."""
    return _becomes(lambda: not path.exists())


def is_there(path: Path, unless: Callable[[], bool]) -> bool:
    """Whether a file is there, or is so before long. `unless`: whether it will not come any more."""
    return _becomes(lambda: path.exists() or unless()) and path.exists()


def _becomes(holds: Callable[[], bool]) -> bool:
    waited = threading.Event()
    return any(holds() or waited.wait(_BETWEEN_SECONDS) for _ in range(_TRIES))
