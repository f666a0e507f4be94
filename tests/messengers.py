"""Which messenger the services of tests have."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partialmethod
from unittest import mock

import pytest

from paperwasp.server.process import ServerProcess, piped_doors

WITHIN_PROCESS = pytest.mark.skipif(
    os.environ.get("PAPERWASP_MESSENGER") == "pipe", reason="compiled plans and routes are of one process"
)


@contextmanager
def over_pipe() -> Iterator[None]:
    """All services that this process makes meanwhile send their messages as bytes through another process."""
    with mock.patch.object(ServerProcess, "__init__", partialmethod(ServerProcess.__init__, open_doors=piped_doors)):
        yield
