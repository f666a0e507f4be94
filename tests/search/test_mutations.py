"""Changes of numbers of many documents by one operation: what becomes of the numbers, restarts, and documents that are
gone meanwhile."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from paperwasp.content.log.records import Mutate
from paperwasp.document.ids import DocumentId, partition_of
from paperwasp.errors import Overload
from paperwasp.schema.model import Mutation
from paperwasp.search.mutations import ON_MATCH, ON_SUMMARY, Touched, mutate
from paperwasp.search.query import SearchResponse
from tests.content.nodes import doc_id, put, remove, start, started, update

COUNTERS = [f"d{number}" for number in range(40)]


def operations(names: list[str], *changes: tuple[str, str, float]) -> list[Mutate]:
    """For documents by name; one a partition."""
    touched = Touched([Mutation(ON_MATCH, *change) for change in changes])
    gids = np.frombuffer(b"".join(doc_id(name).gid for name in names), np.uint8).reshape(-1, 12)
    touched.note(ON_MATCH, np.arange(len(names), dtype=np.uint32))
    return list(touched.operations("music", gids))


@pytest.mark.parametrize(
    ("field", "before", "change", "after"),
    [
        ("year", 7, ("+=", 2.0), 9),
        ("year", None, ("+=", 2.0), 2),
        ("year", None, ("-=", 2.0), -2),
        ("year", 7, ("=", -1.0), -1),
        ("year", 7, ("+=", 0.9), 7),
        ("year", 2**31 - 1, ("+=", 2.0), -(2**31) + 1),
        ("rating", 127, ("+=", 2.0), -127),
        ("plays", 2**60 + 1, ("+=", 1.0), 2**60 + 2),
        ("score", 0.5, ("-=", 0.25), 0.25),
        ("weight", None, ("+=", 0.1), 0.1),
        ("live", None, ("+=", 1.0), True),
        ("live", True, ("=", 0.0), None),
    ],
)
def test_what_becomes_of_numbers(
    tmp_path: Path, field: str, before: Any, change: tuple[str, float], after: Any
) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", **({} if before is None else {field: before})), put("b"))
        node.apply(*operations(["a"], (field, *change)))
        found = node.get("a").get(field)
        assert found == after if after is not None else not found
        assert node.get("b") == {}


def test_all_documents_of_a_partition_share_an_operation_and_survive_a_crash(tmp_path: Path) -> None:
    node = start(tmp_path)
    node.apply(*(put(name, year=number, note=name) for number, name in enumerate(COUNTERS)))
    wanted = operations([*COUNTERS, "gone"], ("year", "+=", 1.0), ("plays", "=", 3.0), ("absent", "+=", 1.0))
    assert len(wanted) == len({partition_of(doc_id(name).gid) for name in [*COUNTERS, "gone"]})
    node.apply(update("d1", year=100), *wanted, update("d2", year=200), remove("d3"))
    expected = [{"year": number + 1, "plays": 3, "note": f"d{number}"} for number in range(40)]
    expected[1]["year"], expected[2]["year"] = 101, 200
    assert [node.get(name) for name in COUNTERS] == [*expected[:3], None, *expected[4:]]
    node.crash()
    with started(tmp_path) as node:
        assert [node.get(name) for name in COUNTERS] == [*expected[:3], None, *expected[4:]]


def test_times_of_documents_stay(tmp_path: Path) -> None:
    with started(tmp_path) as node:
        node.apply(put("a", year=1))
        times = node.node.reader.view().timestamps.copy()
        node.apply(*operations(["a"], ("year", "+=", 1.0)))
        assert np.array_equal(node.node.reader.view().timestamps, times)


class Refusing:
    """A node that takes nothing more after some operations."""

    def __init__(self, room: int) -> None:
        self.room = room
        self.taken: list[Any] = []

    def submit(self, operation: Mutate, reply: Any, size_bytes: int = 0) -> None:
        if len(self.taken) == self.room:
            raise Overload("full")
        self.taken.append(reply)


@pytest.mark.parametrize("room", [0, 1, 2])
def test_a_query_is_answered_when_its_changes_are_applied_or_refused(room: int) -> None:
    node = Refusing(room)
    answers: list[object] = []
    one = Mutate(DocumentId("-", "music", "-", number=1), (("year", "+=", 1.0),), b"")
    mutate(node, SearchResponse(3, 5, (), mutations=(one, one)), answers.append)
    for taken in node.taken:
        assert not answers
        taken(None)
    assert answers == [SearchResponse(3, 5, ())]


def test_only_phases_that_the_profile_names_are_noted() -> None:
    touched = Touched([Mutation(ON_MATCH, "year", "+=", 1.0)])
    touched.note(ON_SUMMARY, np.arange(3, dtype=np.uint32))
    assert list(touched.operations("music", np.zeros((3, 12), np.uint8))) == []
