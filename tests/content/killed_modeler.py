"""The child of test_kill_model.py: does the operations of a seed, from a number on, until it is killed.

It writes the number of each acknowledged operation to a pipe. The schema changes at fixed numbers, when all before are
acknowledged, so that whoever reads the numbers knows which schema each operation met.
"""

from __future__ import annotations

import os
import random
import sys
from functools import partial
from pathlib import Path
from threading import Semaphore

from paperwasp import limits
from paperwasp.content.upkeep.row_filling import RowFilling
from paperwasp.document.operations import Outcome
from tests.content.document_model import Deed, random_deed
from tests.content.document_schemas import VARIANTS, attributes_of, variant_schema
from tests.content.nodes import start

DOCUMENTS = 200
IN_FLIGHT = 300
OPERATIONS_OF_SCHEMA = 4_000


def deed_of(seed: int, number: int) -> Deed:
    """The same operation for the same number, always."""
    return random_deed(random.Random(seed * 1_000_003 + number), DOCUMENTS)


def variant_of(number: int) -> int:
    """The schema that an operation meets."""
    return number // OPERATIONS_OF_SCHEMA * 7 // 3 % VARIANTS


def attributes_at(number: int) -> frozenset[str]:
    return attributes_of(variant_of(number))


def set_limits() -> None:
    """Small ones, so that all that happens seldom happens often."""
    limits.CHECKPOINT_DOCUMENTS = 1500  # type: ignore[misc]
    limits.LOG_FILE_BYTES = 200_000  # type: ignore[misc]
    limits.DEAD_ROWS_LEAST = 500  # type: ignore[misc]
    limits.DEAD_ROWS_SERVED_LEAST = 300  # type: ignore[misc]
    limits.DEAD_ROWS_SHARE = 0.6  # type: ignore[misc]
    limits.ROW_CHUNK_LEAST = 1  # type: ignore[misc]
    limits.ROW_FILE_LEAST_BYTES = 10_000  # type: ignore[misc]


def work(path: Path, seed: int, first: int, descriptor: int) -> None:
    set_limits()
    node = start(path, {"thing": variant_schema(variant_of(first))})
    room = Semaphore(IN_FLIGHT)

    def acknowledge(number: int, outcome: object) -> None:
        if not isinstance(outcome, Outcome):
            sys.stderr.write(f"operation {number}: {outcome!r}\n")
            os._exit(3)
        os.write(descriptor, number.to_bytes(4, "little"))
        room.release()

    filling, building = RowFilling(node.node.reader), node.node.graph_building()
    number = first
    while True:
        if number % OPERATIONS_OF_SCHEMA == 0 and number > first:
            for _ in range(IN_FLIGHT):
                room.acquire()
            node.node.configure(number, {"thing": variant_schema(variant_of(number))})
            room.release(IN_FLIGHT)
        if number % 500 == 0:
            filling()
            building()
        room.acquire()
        operation = deed_of(seed, number).operation()
        node.node.operations.submit(operation, partial(acknowledge, number))
        number += 1


if __name__ == "__main__":
    work(Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4]))
