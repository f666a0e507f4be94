"""Objects outside Python's arenas: arenas go back that nothing but one small object would keep; any allocator frees."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_BEGIN = """
import os, re, sys, tempfile, threading, tracemalloc
from paperwasp.core.object_memory import outside_arenas

def arenas():
    with tempfile.TemporaryFile() as file:
        before = os.dup(2)
        os.dup2(file.fileno(), 2)
        sys._debugmallocstats()
        os.dup2(before, 2)
        file.seek(0)
        return int(re.search(rb"# arenas allocated current *= *([0-9,]+)", file.read()).group(1).replace(b",", b""))
"""
_DOCUMENT = """
def document(is_large):
    kept = []
    with outside_arenas(is_large):
        texts = []
        for number in range(200_000):
            texts.append(f"text {number}")
            if number % 10_000 == 0:
                kept += [bytes(70) for _ in range(150)]  # which fill a pool
    return kept
before = arenas()
kept = document(is_large=sys.argv[1] == "large")
print(arenas() - before)
"""
_MIXED = """
def work(number):
    texts = [f"{number} {each}" for each in range(20_000)]
    with outside_arenas():
        inside = [f"{number} {each}" for each in range(20_000)]
        lists = [[] for _ in range(1000)]
        with outside_arenas():
            texts += inside
    for each in lists:  # begun outside the arenas, enlarged after
        each.extend(range(5))
    results.append((texts, lists))
results = []
for traced in (False, True, False):
    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    with outside_arenas():
        before = ["x" * each for each in range(500)]
        if traced:
            tracemalloc.start()
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    if traced:
        tracemalloc.stop()
    for texts, lists in results:
        assert texts[:20_000] == texts[20_000:] and all(each == [0, 1, 2, 3, 4] for each in lists)
    assert [len(each) for each in before] == list(range(500))
    results.clear()
    with outside_arenas():
        del before
before = arenas()
with outside_arenas():
    texts = [f"text {number}" for number in range(100_000)]
print(arenas() - before)
"""


def run(program: str, *given: str, allocator: str = "") -> int:
    environment = {**os.environ, "PYTHONMALLOC": allocator} if allocator else None
    command = [sys.executable, "-c", _BEGIN + program, *given]
    said = subprocess.run(command, capture_output=True, text=True, timeout=60, env=environment)
    assert said.returncode == 0, said.stderr
    return int(said.stdout)


def plain_allocator() -> bool:
    """Whether this interpreter has arenas, and checks no block that it frees."""
    return not sys.flags.dev_mode and not os.environ.get("PYTHONMALLOC")


@pytest.mark.skipif(not plain_allocator(), reason="of an interpreter with its own allocator")
def test_no_arena_stays_for_what_lives_longer_than_a_large_document() -> None:
    """CPython: obmalloc.c, an arena is freed when all its pools are."""
    assert run(_DOCUMENT, "large") <= 1
    assert run(_DOCUMENT, "small") >= 5  # otherwise this test shows nothing


@pytest.mark.skipif(not plain_allocator(), reason="of an interpreter with its own allocator")
def test_blocks_of_both_kinds_are_freed_and_enlarged_on_any_thread() -> None:
    assert run(_MIXED) <= 1


@pytest.mark.parametrize("allocator", ["debug", "malloc"])
def test_an_interpreter_that_checks_its_blocks_makes_all_of_them(allocator: str) -> None:
    program = "with outside_arenas():\n    texts = [f'text {number}' for number in range(1000)]\nprint(len(texts))"
    assert run(program, allocator=allocator) == 1000
