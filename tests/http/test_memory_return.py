"""When free memory is given back to the system: by what has been freed, not by how large requests are."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

from paperwasp import limits
from paperwasp.base.env import release_memory, unused_bytes
from paperwasp.http.memory_return import MemoryReturn

MUCH = limits.MEMORY_FREED_BYTES


def count_releases(resident: list[int], unused: int) -> int:
    """How often memory is given back when these bytes of the process are seen one after the other."""
    now, released = [resident[0]], []
    loop = asyncio.new_event_loop()
    try:
        memory = MemoryReturn(loop, lambda: unused, lambda: released.append(now[0]), lambda: now[0])
        for bytes_now in resident[1:]:
            now[0] = bytes_now
            memory.return_freed()
    finally:
        loop.close()
    return len(released)


@pytest.mark.parametrize(
    ("free", "releases"),
    [
        ([0, MUCH - 1], 0),
        ([0, MUCH], 1),
        ([5 * MUCH, 5 * MUCH, 5 * MUCH + 10], 0),  # what was free at the start, and is not asked for again
        ([MUCH, 10, MUCH + 9, MUCH + 10], 1),  # since it was least
        ([0, MUCH, MUCH, MUCH + 10], 1),  # what was given back counts as free still
        ([0, MUCH, 2 * MUCH], 2),
    ],
)
def test_it_is_given_back_when_much_has_been_freed(free: list[int], releases: int) -> None:
    now, released = [free[0]], []
    loop = asyncio.new_event_loop()
    try:
        memory = MemoryReturn(loop, lambda: now[0], lambda: released.append(now[0]), lambda: 0)
        for bytes_now in free[1:]:
            now[0] = bytes_now
            memory.return_freed()
    finally:
        loop.close()
    assert len(released) == releases


@pytest.mark.parametrize(
    ("resident", "unused", "releases"),
    [
        ([0, MUCH - 1], MUCH, 0),
        ([0, MUCH], MUCH, 1),
        ([0, MUCH], MUCH - 1, 0),  # what has grown is used
        ([0, MUCH, MUCH + 10, 2 * MUCH + 10], MUCH, 2),
        ([9 * MUCH, MUCH, 2 * MUCH], MUCH, 1),  # since it was least
        ([64 * MUCH, 66 * MUCH], 9 * MUCH, 0),  # a thirty-second of a large process is more
        ([64 * MUCH, 69 * MUCH], 9 * MUCH, 1),
    ],
)
def test_it_is_given_back_when_the_process_has_grown_although_much_is_free(
    resident: list[int], unused: int, releases: int
) -> None:
    """What was given back counts as free still: work that takes it again frees nothing by that count."""
    assert count_releases(resident, unused) == releases


REST = limits.MEMORY_RESTING_BYTES


@pytest.mark.parametrize(
    ("resident", "unused", "releases"),
    [
        ([0, 2 * REST, 2 * REST], 3 * REST, 1),
        ([0, 2 * REST, 2 * REST, 2 * REST, 2 * REST], 3 * REST, 1),  # once
        ([0, 2 * REST, 2 * REST], REST - 1, 0),  # there is nothing to give back
        ([0, REST - 1, REST - 1], 3 * REST, 0),
        ([0, REST, 2 * REST, 3 * REST], 3 * REST, 0),  # it works still
        ([4 * REST, 2 * REST, 2 * REST], 3 * REST, 1),  # it has become smaller
        ([4 * REST, 4 * REST, 4 * REST], 3 * REST, 1),  # what was freed before it began
        ([4 * REST, 4 * REST, 4 * REST], REST - 1, 0),
    ],
)
def test_it_is_given_back_once_when_work_rests(resident: list[int], unused: int, releases: int) -> None:
    assert count_releases(resident, unused) == releases


@pytest.mark.skipif(not Path("/proc/self/statm").exists(), reason="of Linux")
def test_the_system_says_what_is_of_no_file() -> None:
    """Asked in a process of its own, where no thread of another test frees memory meanwhile."""
    program = (
        "from paperwasp.base.env import anonymous_bytes; before = anonymous_bytes(); "
        "kept = b'x' * 64_000_000; print(anonymous_bytes() - before)"
    )
    grown = int(subprocess.run([sys.executable, "-c", program], check=True, capture_output=True).stdout)
    assert 64_000_000 * 0.9 < grown < 64_000_000 * 1.1


def test_it_is_done_on_a_thread_and_once_at_a_time() -> None:
    async def look() -> int:
        counts = iter([0, MUCH, MUCH])
        released: list[None] = []
        loop = asyncio.get_running_loop()
        memory = MemoryReturn(loop, lambda: next(counts), lambda: released.append(None), lambda: 0)
        memory.look()
        memory.look()
        assert memory._looking is not None
        await memory._looking
        return len(released)

    assert asyncio.run(look()) == 1


def test_it_is_given_back_between_large_requests_that_follow_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async def requests() -> int:
        released = asyncio.Event()
        memory = MemoryReturn(asyncio.get_running_loop(), lambda: 0, released.set, lambda: 0)
        asked = 0
        async with asyncio.timeout(30):
            while not released.is_set():
                memory.return_soon()
                asked += 1
                await asyncio.to_thread(lambda: None)
        return asked

    monkeypatch.setattr(limits, "MEMORY_RETURN_SECONDS", 0.02)
    assert asyncio.run(requests()) > 1


def test_the_c_library_says_what_is_free() -> None:
    kept = [bytes(1000) for _ in range(20_000)]
    above = [bytes(1000) for _ in range(100)]  # what is free at the end of the heap goes back at once
    before = unused_bytes()
    del kept[:]
    if before:
        assert unused_bytes() - before >= 5_000_000
    assert len(above) == 100
    release_memory()
