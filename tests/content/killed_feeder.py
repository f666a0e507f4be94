"""The child of test_kill.py: feeds a content node until it is killed.

It writes the number of each acknowledged operation to a pipe.
"""

from __future__ import annotations

import os
import sys
from functools import partial
from pathlib import Path
from threading import Semaphore

from paperwasp import limits
from paperwasp.document.operations import Operation
from tests.content.nodes import put, remove, start, update

DOCUMENTS = 150
IN_FLIGHT = 300


def operation(number: int) -> Operation:
    """The same operation for the same number, always. Every state of a document is unlike its others."""
    scrambled = number * 2654435761 % 2**32
    name, choice = scrambled % DOCUMENTS, scrambled // DOCUMENTS % 10
    if choice < 4:
        return put(name, year=number, title=f"word{number} common", tags=[str(number)])
    if choice < 6:
        return update(name, plays=number, genre=f"g{number}")
    if choice < 8:
        return update(name, create=True, title=f"word{number} common", note=f"n{number}")
    return remove(name)


def feed(path: Path, first: int, descriptor: int) -> None:
    limits.CHECKPOINT_DOCUMENTS = 400  # type: ignore[misc]
    limits.LOG_FILE_BYTES = 20_000  # type: ignore[misc]
    node = start(path)
    room = Semaphore(IN_FLIGHT)

    def acknowledge(number: int, outcome: object) -> None:
        if isinstance(outcome, BaseException):
            os._exit(3)
        os.write(descriptor, number.to_bytes(4, "little"))
        room.release()

    number = first
    while True:
        room.acquire()
        node.node.operations.submit(operation(number), partial(acknowledge, number))
        number += 1


if __name__ == "__main__":
    feed(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]))
