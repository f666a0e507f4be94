"""Hits are scored in blocks that take about as long: what is expensive is answered in part when time is over."""

from __future__ import annotations

import numpy as np
import pytest

from paperwasp.search.phases.scoring import (
    BLOCK_LIDS,
    BLOCK_NS,
    FIRST_BLOCK_LIDS,
    LEAST_BLOCK_LIDS,
    MANY_TERMS,
    blocks_of,
)


@pytest.mark.parametrize(
    ("hit_ns", "sizes"),
    [
        (1, [256, 1024, 4096, 16384, 16384]),
        (10_000, [256, 1000, 1000, 1000]),
        (BLOCK_NS // 100, [256, 100, 100]),
        (BLOCK_NS, [256, 64, 64]),
    ],
)
def test_blocks_take_about_as_long(hit_ns: int, sizes: list[int], monkeypatch: pytest.MonkeyPatch) -> None:
    assert (sizes[0], BLOCK_LIDS, LEAST_BLOCK_LIDS) == (FIRST_BLOCK_LIDS, 16_384, 64)
    now_ns = 0
    monkeypatch.setattr("paperwasp.search.phases.scoring.time.monotonic_ns", lambda: now_ns)
    lids = np.arange(sum(sizes), dtype=np.uint32)
    found = []
    for places in blocks_of(len(lids), 1):
        found.append(lids[places])
        now_ns += len(found[-1]) * hit_ns
    assert [len(block) for block in found] == sizes
    assert np.array_equal(np.concatenate(found), lids)


def test_no_block_is_larger_than_what_fits() -> None:
    assert list(blocks_of(25, MANY_TERMS * BLOCK_LIDS // 10)) == [slice(0, 10), slice(10, 20), slice(20, 25)]
    assert list(blocks_of(0, 1)) == []
