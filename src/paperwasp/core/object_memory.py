"""Where the many small objects of a large document lie: object_memory.cpp says why."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Final

from paperwasp.core import _core

_FREES_ANY: Final = (
    os.environ.get("PYTHONMALLOC", "") in ("", "default", "malloc", "pymalloc")
    and not sys.flags.dev_mode
    and not {"d", "t"} & set(getattr(sys, "abiflags", ""))
)
"""Whether the interpreter frees a block that the C library made: not where it checks its own blocks, as when it is
built for debugging, and not by mimalloc, which it has where it is built without its lock."""

MOST_BYTES: Final = 4 << 20
"""The largest request or operation whose objects lie there: to free the million objects of one of 9 MB takes a third of
a second, with the interpreter's lock held, where in arenas it takes a tenth."""


def is_worth(size_bytes: int) -> bool:
    """Return whether the objects of a large request or operation of this size should lie outside the arenas."""
    return size_bytes <= MOST_BYTES


_AS_USUAL: Final = nullcontext()


def outside_arenas(is_large: bool = True) -> AbstractContextManager[None]:
    """Where `is_large`, the objects that the work inside makes lie in the C library's memory, which gives back each
    free page, where the interpreter keeps 1 MiB for as long as one small object is left in it. Any thread, also within
    another such block. Cost: to make and free 200,000 strings takes up to 6 ms more."""
    return _outside_arenas() if _FREES_ANY and is_large else _AS_USUAL


@contextmanager
def _outside_arenas() -> Iterator[None]:
    _core.begin_outside_arenas()
    try:
        yield
    finally:
        _core.end_outside_arenas()
