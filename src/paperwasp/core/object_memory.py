"""Where the many small objects of a large document lie: object_memory.cpp says why."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from paperwasp.core import _core

_CHECKED: Final = sys.flags.dev_mode or "debug" in os.environ.get("PYTHONMALLOC", "")
"""Whether the interpreter checks each block that it frees: it must have made it then."""


@contextmanager
def outside_arenas(is_large: bool = True) -> Iterator[None]:
    """Where `is_large`, the objects that the work inside makes lie in the C library's memory, which gives back each
    free page, where the interpreter keeps 1 MiB for as long as one small object is left in it. Any thread, also within
    another such block. Cost: to make and free 200,000 strings takes up to 6 ms more."""
    if _CHECKED or not is_large:
        yield
        return
    _core.begin_outside_arenas()
    try:
        yield
    finally:
        _core.end_outside_arenas()
