"""Kills a feeding process at random moments, and looks for every write that it had acknowledged.

PAPERWASP_KILL_ROUNDS says how often (default 3); PAPERWASP_SEED chooses the moments.
"""

from __future__ import annotations

import os
import random
import signal
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperwasp.document.operations import Operation, Put, Update
from tests.chance import SEED
from tests.children import start_child
from tests.content.killed_feeder import DOCUMENTS, IN_FLIGHT, operation
from tests.content.nodes import TestNode, assigned, doc_id, start

ROUNDS = int(os.environ.get("PAPERWASP_KILL_ROUNDS", "3"))

Fields = dict[str, Any] | None


@pytest.mark.crash
def test_every_acknowledged_write_survives(tmp_path: Path) -> None:
    print(f"seed {SEED}")  # noqa: T201
    moments = random.Random(SEED)
    documents: dict[int, Fields] = dict.fromkeys(range(DOCUMENTS))
    first = 0
    for _ in range(ROUNDS):
        acknowledged = feed_and_kill(tmp_path, first, moments.randrange(1, 4000))
        node = start(tmp_path)
        submitted = max(acknowledged, default=first) + IN_FLIGHT + 1
        check(node, documents, first, acknowledged, submitted)
        documents = {name: node.get(name) for name in documents}
        check_index_and_columns(node, documents)
        (node.crash if moments.random() < 0.7 else node.close)()
        first = submitted


def feed_and_kill(path: Path, first: int, acknowledgements: int) -> set[int]:
    """The numbers that a child acknowledged before it was killed, soon after it had acknowledged so many."""
    child, reading = start_child("tests.content.killed_feeder", path, first)
    data = b""
    while len(data) < 4 * acknowledgements and (some := os.read(reading, 4096)):
        data += some
    child.send_signal(signal.SIGKILL)
    while some := os.read(reading, 65536):
        data += some
    os.close(reading)
    assert child.wait() == -signal.SIGKILL, "the child ended by itself"
    return {int.from_bytes(data[at : at + 4], "little") for at in range(0, len(data) - 3, 4)}


def check(node: TestNode, before: dict[int, Fields], first: int, acknowledged: set[int], submitted: int) -> None:
    """Each document is as its operations left it up to some point, and no acknowledged one is beyond that point."""
    possible: dict[int, list[Fields]] = {name: [fields] for name, fields in before.items()}
    latest = dict(before)
    for number in range(first, submitted):
        change = operation(number)
        name = int(change.id.user_specified)
        latest[name] = after(latest[name], change)
        if number in acknowledged:
            possible[name] = []
        possible[name].append(latest[name])
    lost = {name: node.get(name) for name in before if node.get(name) not in possible[name]}
    assert not lost, f"seed {SEED}: these documents are in none of the states they may be in: {lost}"


def after(fields: Fields, change: Operation) -> Fields:
    if isinstance(change, Put):
        return dict(change.fields)
    if isinstance(change, Update):
        if fields is None and not change.create:
            return None
        return (fields or {}) | assigned(change)
    return None


def check_index_and_columns(node: TestNode, documents: dict[int, Fields]) -> None:
    """What is searched is what is stored."""
    view = node.node.reader.view()
    there = {name: fields for name, fields in documents.items() if fields is not None}
    live = np.flatnonzero(np.unpackbits(view.live.view(np.uint8), bitorder="little"))
    assert view.live_count == len(live) == len(there)
    lid_of = {view.gid(int(lid)): int(lid) for lid in live}
    title = view.index.number_of(("music", "title"))
    for name, fields in there.items():
        lid = np.array([lid_of[doc_id(name).gid]], np.uint32)
        assert view.columns["music", "year"].gather(lid) == [fields.get("year")]
        assert view.columns["music", "genre"].gather(lid) == [fields.get("genre")]
        word = fields.get("title", "nothing").split()[0]
        term = view.index.term_id(word)
        assert (term >= 0 and view.index.occurrences(title, term, lid).tolist() == [1]) == ("title" in fields)
