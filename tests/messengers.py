"""Which messenger the services of tests have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from pathlib import Path
from unittest import mock

import pytest

from paperwasp.server.process import ServerProcess, piped_backends

ENABLED = os.environ.get("PAPERWASP_MESSENGER") == "pipe"
PRELUDE = (
    f"import sys; sys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    "from tests.messengers import over_pipe; piped = over_pipe(); piped.__enter__()\n"
)
"""What a process executes first whose services are to send bytes."""
WITHIN_PROCESS = pytest.mark.skipif(ENABLED, reason="compiled plans and routes are of one process")


@contextmanager
def over_pipe() -> Iterator[None]:
    """All services that this process makes meanwhile send their messages as bytes through another process."""
    with mock.patch.object(ServerProcess, "__init__", partialmethod(ServerProcess.__init__, connect=piped_backends)):
        yield
