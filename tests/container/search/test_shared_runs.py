"""Runs of plans that several threads share have the answers of the general steps, byte for byte, as those of one have.

PAPERWASP_COMPILED_QUERIES says how many random queries, about.
"""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from typing import Any

import pytest

from paperwasp import limits
from paperwasp.document.operations import Put
from paperwasp.server.roles import plan_runs
from tests.chance import SEED
from tests.container.search.search_nodes import remove
from tests.container.search.text_peers import SCHEMA, Peers, document, grouping, peers

QUERIES = int(os.environ.get("PAPERWASP_COMPILED_QUERIES", "600")) // 4
DOCUMENTS = 20_000
"""So that what frequent words match has several parts."""
ASKED = {
    "yql": "select * from music where userQuery()",
    "query": "alpha beta",
    "type": "any",
    "ranking": "native",
    "nocache": "true",
}
SHARES = {"alpha": 0.9, "beta": 0.8, "gamma": 0.7, "delta": 0.1}
"""Word → about which share of the documents has it."""

PROFILES = {
    "zero": ("num-threads-per-search: 0", False),
    "one": ("num-threads-per-search: 1", False),
    "two": ("num-threads-per-search: 2", True),
    "alone": (f"min-hits-per-thread: {DOCUMENTS}", False),
    "hundred": ("min-hits-per-thread: 100", True),
}
"""Rank profile → what it says, and whether threads help then."""


@pytest.fixture(scope="module")
def shared() -> Iterator[Peers]:
    more = "\n".join(f"rank-profile {name} inherits native {{ {said} }}" for name, (said, _) in PROFILES.items())
    choice = random.Random(SEED)
    with peers(SCHEMA.replace("document-summary short", f"{more}\ndocument-summary short")) as found:
        for start in range(0, DOCUMENTS, 1000):
            found.compiled.apply(*(made(choice, number) for number in range(start, start + 1000)))
        found.compiled.apply(*(remove(number) for number in range(0, DOCUMENTS, 13)))
        found.fill_rows()
        yield found


@pytest.fixture(autouse=True)
def _everything_is_worth_other_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(limits, "INLINE_QUERY_NS", 0)
    monkeypatch.setattr(plan_runs, "THREAD_NS", 0)


def lent(shared: Peers) -> int:
    """How often a thread was asked to help."""
    pool = shared.service._runs._pool
    assert pool is not None
    return pool.threads.lent


def made(choice: random.Random, number: int) -> Put:
    """Frequent words are in most."""
    words = [word for word, share in SHARES.items() if choice.random() < share]
    found: Put = document(choice, number)
    return Put(found.id, {**found.fields, "body": " ".join(choice.choices(words or ["none"], k=choice.randint(1, 9)))})


def asked(choice: random.Random) -> dict[str, Any]:
    """Much is found by most."""
    words = " ".join(choice.sample(list(SHARES), choice.randint(1, 3)))
    found: dict[str, Any] = {
        "yql": "select * from music where userQuery()",
        "query": words,
        "type": choice.choice(("any", "all", "weakAnd")),
        "default-index": "body",
        "hits": choice.choice((0, 1, 10, 100)),
        "ranking": choice.choice(("native", "matching", "body")),
        "nocache": "true",
    }
    if choice.random() < 0.3:
        found["yql"] += f" and year < {choice.randrange(60)}"
    if choice.random() < 0.5:
        found["yql"] = f"{found['yql']} | {grouping(choice)}"
    return found


@pytest.mark.parametrize("threads", [1, 2, 4])
def test_random_queries_have_the_same_answers_whoever_helps(shared: Peers, threads: int) -> None:
    shared.service.resize(threads)
    choice, before = random.Random(f"{SEED} shared"), shared.answered
    for _ in range(QUERIES):
        shared.compare(**asked(choice))
    assert shared.answered - before > QUERIES // 2, "plans have answered too few queries to say anything"
    assert (lent(shared) > QUERIES // 10) is (threads > 1)


def test_no_more_threads_share_a_run_than_services_says(shared: Peers) -> None:
    for most, helps in ((1, False), (2, True)):
        shared.service.resize(3, most)
        shared.compare(**ASKED)
        assert (lent(shared) > 0) is helps


@pytest.mark.parametrize("profile", PROFILES)
def test_a_rank_profile_says_how_many_threads(shared: Peers, profile: str) -> None:
    _, helps = PROFILES[profile]
    shared.service.resize(3)
    shared.service.resize(4)  # other threads than those of the test before
    shared.compare(**ASKED | {"ranking": profile})
    assert (lent(shared) > 0) is helps
