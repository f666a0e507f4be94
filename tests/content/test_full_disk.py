"""A disk that is full, or fails: operations are refused, nothing is half done, and the node goes on when it can."""

from __future__ import annotations

import errno
import os
import random
from pathlib import Path

import pytest
from nodes import doc_id, put, remove, start, started, update

from paperwasp import limits
from paperwasp.document.operations import Outcome
from paperwasp.errors import InternalError, NoSpace


@pytest.mark.parametrize(("broken", "code", "error"), [
    ("write", errno.ENOSPC, NoSpace), ("fdatasync", errno.ENOSPC, NoSpace), ("fdatasync", errno.EIO, InternalError),
])  # fmt: skip
def test_operations_are_refused_until_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, broken: str, code: int, error: type[Exception]
) -> None:
    def fail(*_: object) -> None:
        raise OSError(code, "no")

    node = start(tmp_path)
    node.apply(put("a", year=1))
    before = node.node.view()
    with monkeypatch.context() as patch:
        patch.setattr(os, broken, fail)
        refused = node.outcomes(put("a", year=2), update("a", year=3), remove("a"), put("b"))
        assert [type(answer) for answer in refused] == [error] * 4
        assert node.get("a") == {"year": 1} and node.get("b") is None
        assert node.node.view().live_count == before.live_count == 1
    assert node.outcomes(update("a", year=4)) == [Outcome(True)]
    node.crash()
    with started(tmp_path) as again:
        assert again.get("a") == {"year": 4} and again.get("b") is None
        assert again.node.view().store.get(doc_id("b").gid) is None


def test_a_disk_that_fails_at_random_loses_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever call fails: what was acknowledged is there, and what was refused is not."""
    seed = random.SystemRandom().randrange(2**32)
    print(f"seed {seed}")  # noqa: T201
    chance = random.Random(seed)
    monkeypatch.setattr(limits, "LOG_FILE_BYTES", 2_000)
    years: dict[int, int] = {}
    is_failing = False

    def sometimes(name: str) -> None:
        real = getattr(os, name)

        def call(*arguments: object) -> object:
            if is_failing and chance.random() < 0.2:
                raise OSError(chance.choice((errno.ENOSPC, errno.EIO)), f"{name} fails")
            return real(*arguments)

        monkeypatch.setattr(os, name, call)

    for name in ("write", "fdatasync", "ftruncate"):
        sometimes(name)
    node = start(tmp_path)
    refused = 0
    for year in range(400):
        name, is_failing = chance.randrange(9), True
        (answer,) = node.outcomes(
            put(name, year=year) if chance.random() < 0.5 else update(name, create=True, year=year)
        )
        is_failing = False
        if isinstance(answer, Outcome):
            years[name] = year
        else:
            assert isinstance(answer, NoSpace | InternalError)
            refused += 1
        if year % 100 == 99:
            node.apply(put("last"))  # a process that dies before it could cut off what it refused may find it again
            node.crash()
            node = start(tmp_path)
        assert {name: (node.get(name) or {}).get("year") for name in range(9)} == {
            name: years.get(name) for name in range(9)
        }, f"seed {seed}"
    node.close()
    assert refused > 20
