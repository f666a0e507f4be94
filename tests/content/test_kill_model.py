"""Operations of every kind on fields of every type, under changing schemas, by a process that is killed again and
again: after each death every document must be as the plain model has it.

PAPERWASP_MODEL_OPERATIONS says how many operations (default: a few thousand), PAPERWASP_SEED which.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path

import pytest

from paperwasp import limits
from tests.chance import SEED
from tests.children import start_child
from tests.content.document_checks import (
    build_graphs,
    check_columns,
    check_graphs,
    check_searches,
    check_stored,
    shown_of,
    stored_of,
)
from tests.content.document_model import Fields, shown
from tests.content.document_schemas import attributes_of, variant_schema
from tests.content.killed_modeler import DOCUMENTS, IN_FLIGHT, attributes_at, deed_of, set_limits, variant_of
from tests.content.nodes import TestNode, start
from tests.content.row_checks import check_rows, fill_rows

OPERATIONS = int(os.environ.get("PAPERWASP_MODEL_OPERATIONS", "6000"))
LONGEST_LIFE = 30_000
"""Operations that one child acknowledges at most before it is killed."""

LIMITS = (
    "CHECKPOINT_DOCUMENTS",
    "LOG_FILE_BYTES",
    "DEAD_ROWS_LEAST",
    "DEAD_ROWS_SERVED_LEAST",
    "DEAD_ROWS_SHARE",
    "ROW_CHUNK_LEAST",
    "ROW_FILE_LEAST_BYTES",
)

Documents = dict[int, Fields | None]


@pytest.mark.crash
def test_no_operation_is_lost_or_done_by_half(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    print(f"seed {SEED}")  # noqa: T201
    keep_limits(monkeypatch)
    moments = random.Random(SEED)
    documents: Documents = dict.fromkeys(range(DOCUMENTS))
    first = 0
    while first < OPERATIONS:
        life = moments.randrange(1, max(2, min(LONGEST_LIFE, OPERATIONS // 3)))
        acknowledged = work_and_kill(tmp_path, first, life)
        submitted = max(acknowledged, default=first) + IN_FLIGHT + 1
        node = start(tmp_path, None)
        documents = check(node, documents, first, acknowledged, submitted)
        first = submitted
        node.node.configure(first, {"thing": variant_schema(variant_of(first))})
        for _ in range(2):
            assert {name: stored_of(node, name) for name in documents} == documents, f"seed {SEED}, {first} operations"
            attributes = attributes_of(variant_of(first))
            assert {name: shown_of(node, name) for name in documents} == {
                name: None if fields is None else shown(fields, attributes) for name, fields in documents.items()
            }, f"seed {SEED}, {first} operations"
            check_columns(node.node.reader.view(), documents)
            check_stored(node.node.reader.view(), documents)
            build_graphs(node)
            check_graphs(node.node.reader.view())
            fill_rows(node.node)
            check_rows(node.node.reader.view())
            check_searches(node.node.reader.view(), documents, variant_of(first))
            if moments.random() < 0.5:
                break
            node.node.compact()
        (node.crash if moments.random() < 0.7 else node.close)()
    print(f"{first} operations")  # noqa: T201


def keep_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the child, here and until the end of the test."""
    for name in LIMITS:
        monkeypatch.setattr(limits, name, getattr(limits, name))
    set_limits()


def work_and_kill(path: Path, first: int, acknowledgements: int) -> set[int]:
    """The numbers that a child acknowledged before it was killed, soon after it had acknowledged so many."""
    child, reading = start_child("tests.content.killed_modeler", path, SEED, first)
    data = bytearray()
    while len(data) < 4 * acknowledgements and (some := os.read(reading, 65536)):
        data += some
    child.send_signal(signal.SIGKILL)
    while some := os.read(reading, 65536):
        data += some
    os.close(reading)
    assert child.wait() == -signal.SIGKILL, f"seed {SEED}: the child ended by itself"
    return {int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data) - 3, 4)}


def check(node: TestNode, before: Documents, first: int, acknowledged: set[int], submitted: int) -> Documents:
    """What is stored now: each document as its operations left it up to some point, and no acknowledged one beyond."""
    possible: dict[int, list[Fields | None]] = {name: [fields] for name, fields in before.items()}
    latest = dict(before)
    for number in range(first, submitted):
        deed = deed_of(SEED, number)
        latest[deed.name] = deed.after(latest[deed.name], attributes_at(number))
        if number in acknowledged:
            possible[deed.name] = []
        possible[deed.name].append(latest[deed.name])
    found = {name: stored_of(node, name) for name in before}
    lost = {name: (fields, possible[name]) for name, fields in found.items() if fields not in possible[name]}
    assert not lost, f"seed {SEED}, {first}..{submitted}: documents in none of the states they may be in: {lost}"
    return found
