"""Whose requests are taken next: who asks once does not wait for all that others have sent ahead."""

from __future__ import annotations

import asyncio

from paperwasp import limits
from paperwasp.http.turns import Turns


def test_a_round_serves_for_its_time_and_the_rest_waits_in_line() -> None:
    """Four connections with three requests each, of half a round's time: two are served in a round, in turn, and what
    the loop has to do meanwhile comes between."""
    seen: list[str] = []

    async def run() -> None:
        loop = asyncio.get_running_loop()
        turns, left, done = Turns(loop), dict.fromkeys("abcd", 3), asyncio.Event()

        def advance(name: str) -> None:
            seen.append(name)
            left[name] -= 1
            turns.spend(limits.HTTP_ROUND_SECONDS / 2)
            if left[name]:
                turns.join(calls[name])
            elif not any(left.values()):
                done.set()

        def note() -> None:
            seen.append(" ")
            if not done.is_set():
                loop.call_soon(note)

        calls = {name: lambda name=name: advance(name) for name in left}
        for call in calls.values():
            turns.join(call)
            turns.join(call)  # once is enough
        note()
        await done.wait()

    asyncio.run(run())
    rounds = "".join(seen).split()
    assert rounds == ["ab", "cd"] * 3


def test_a_round_that_has_begun_is_over_in_the_next_one() -> None:
    async def run() -> None:
        turns = Turns(asyncio.get_running_loop())
        turns.spend(limits.HTTP_ROUND_SECONDS)
        assert turns.spent_seconds == limits.HTTP_ROUND_SECONDS
        while turns.spent_seconds:
            await asyncio.to_thread(lambda: None)

    asyncio.run(run())
