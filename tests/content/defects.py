"""A defect that keeps some documents from being applied, once they are logged."""

from __future__ import annotations

from functools import partial
from threading import Event
from typing import Any

import pytest

from paperwasp.content.state import apply
from paperwasp.core._core import PlainChange
from paperwasp.document.operations import Operation
from tests.content.nodes import TestNode

POISON = "poison"
"""The title of documents that cannot be applied."""


@pytest.fixture
def defect(monkeypatch: pytest.MonkeyPatch) -> pytest.MonkeyPatch:
    """Has the defect until what is given is undone."""
    poison(monkeypatch)
    return monkeypatch


def poison(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows of documents with this title fail when most of their columns are written already."""
    written = apply._Batch._give_lids

    def give_lids(batch: Any, rows: Any) -> None:
        for _, entry, values, _ in batch._run:
            title = entry.fields.get("title") if isinstance(entry, PlainChange) else values.get("title")
            if title == POISON:
                raise TypeError("a defect")
        written(batch, rows)

    monkeypatch.setattr(apply._Batch, "_give_lids", give_lids)


def together(node: TestNode, *operations: Operation) -> list[Any]:
    """The outcomes, or errors, of operations that are logged as one batch."""
    answers: list[Any] = [None] * len(operations)
    waiting, done = set(range(len(operations))), Event()

    def answer(place: int, outcome: object) -> None:
        answers[place] = outcome
        waiting.discard(place)
        if not waiting:
            done.set()

    with node.node.operations.adding() as add:
        for place, operation in enumerate(operations):
            add(operation, partial(answer, place), 0)
    assert done.wait(30)
    return answers
