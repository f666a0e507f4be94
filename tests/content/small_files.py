"""Feeds a node in a process whose files may not grow beyond a size, until its store fails; then ends that limit.

The log starts a new file often, so that it stays below. Prints how many documents were acknowledged.
"""

from __future__ import annotations

import resource
import signal
import sys
from pathlib import Path

from paperwasp import limits
from paperwasp.errors import InternalError
from tests.content.nodes import put, start

FILE_BYTES = 40_000


def main() -> None:
    limits.LOG_FILE_BYTES = 8_000  # type: ignore[misc]
    limits.STORE_WRITE_BUFFER_BYTES = 64 * 1024  # type: ignore[misc]
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    node = start(Path(sys.argv[1]))
    resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_BYTES, resource.RLIM_INFINITY))
    number = 0
    while node.fault() is None:
        (answer,) = node.outcomes(put(number, note=f"{number:x}" * 300))
        number += 1
        assert number < 5_000, "the store does not fail"
    assert isinstance(answer, InternalError), answer
    assert "File too large" in answer.message, answer
    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
    node.node.fault._not_before_ns = 0
    node.node.recover_if_due()
    assert node.fault() is None
    assert node.get(number - 1) is not None, "what was logged is applied"
    assert node.apply(put(number)) == [False]
    print(number + 1)  # noqa: T201
    node.close()


if __name__ == "__main__":
    main()
