"""Kills a process at each step of its work on files: feeding, checkpoints, a stop, a start with compaction.

A step is a call that changes files: sync, rename, remove, link, make, cut, open for writing. A child process ends
itself just before its n-th. By default every 29th is tried, beginning at a random one; PAPERWASP_ALL_STEPS=1 tries
all.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import pytest

from paperwasp.content.state.bitmaps import lids_of
from paperwasp.content.views.view import View
from tests.chance import SEED
from tests.children import start_child
from tests.content.killed_worker import KILLED
from tests.content.nodes import doc_id, start
from tests.content.row_checks import check_rows

STRIDE = 1 if os.environ.get("PAPERWASP_ALL_STEPS") else 29
DONE = 0


def expected(batches: int) -> dict[int, Any]:
    documents: dict[int, Any] = {}
    if batches > 0:
        documents |= {k: {"year": k, "title": f"word{k}", "tags": ["a"]} for k in range(30)}
    if batches > 1:
        documents |= {k: documents[k] | {"year": -k} for k in range(1, 5)}
        documents |= {0: documents[0] | {"year": 0}}
        documents |= {k: documents[k] | {"note": "n"} for k in range(5, 10)}
    if batches > 2:
        documents = {k: {n: v for n, v in fields.items() if n != "tags"} for k, fields in documents.items()}
    if batches > 3:
        documents = {k: fields for k, fields in documents.items() if k not in range(10, 15)}
        documents |= {k: {"genre": "g"} for k in range(20, 40)}
    return documents


def run_until(path: Path, step: int) -> tuple[int, int]:
    """How the child ended, and how many batches it had acknowledged."""
    child, reading = start_child("tests.content.killed_worker", path, step)
    acknowledged = b""
    while more := os.read(reading, 100):
        acknowledged += more
    os.close(reading)
    return child.wait(), max(acknowledged, default=0)


def check_columns(view: View, documents: dict[int, Any]) -> None:
    """What columns have is what documents show, under whatever layout."""
    lids = {view.gid(int(lid)): int(lid) for lid in lids_of(view.live)}
    for (kind, field), column in view.columns.items():
        if kind == "music":
            assert {k: column.get(lids[doc_id(k).gid]) for k in documents} == {
                k: fields.get(field) for k, fields in documents.items()
            }


@pytest.mark.crash
def test_killed_at_each_step(tmp_path: Path) -> None:
    step, ending = random.Random(SEED).randrange(1, STRIDE + 1), KILLED
    print(f"steps {step}, {step + STRIDE}, …")  # noqa: T201
    while ending == KILLED:
        path = tmp_path / str(step)
        ending, acknowledged = run_until(path, step)
        assert ending in (KILLED, DONE), f"the child failed at step {step}"
        for _ in range(2):
            node = start(path, None)
            found = {k: fields for k in range(40) if (fields := node.get(k)) is not None}
            possible = [expected(batches) for batches in range(acknowledged, min(acknowledged, 4) + 2)]
            view = node.node.reader.view()
            check_columns(view, found)
            view.rows.open(view.gids[: view.limit])
            check_rows(view)
            node.close()
            assert found in possible, f"step {step}: {acknowledged} batches were acknowledged"
            assert view.live_count == len(found)
        step += STRIDE
    assert ending == DONE and acknowledged == 5 and step > 50
