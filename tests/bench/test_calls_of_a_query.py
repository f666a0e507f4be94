"""How many calls a warm query and a put make. The ceilings only ever go down."""

from __future__ import annotations

import itertools
import random
import threading
import urllib.parse
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from bench import http_kinds
from bench.calls import CallCounter, Calls, InProcess, get, in_process, opened, put
from bench.service import APPLICATION
from paperwasp import limits

MOST_PYTHON_CALLS: Final = 60
MOST_PYTHON_CALLS_GROUPED: Final = 530
MOST_PYTHON_CALLS_OF_A_PUT: Final = 300
"""Of one that comes alone: with those that come together it shares most of them."""
MOST_C_CALLS: Final = 64
"""To be lowered with every step that makes a query cheaper.

The event loop takes a step or two more where the answer of another thread comes late."""

SEED: Final = 3
WORDS: Final = tuple(map("".join, itertools.product(("ba", "do", "fu"), ("ki", "lo", "mu"), ("n", "r", "t"))))
DOCUMENTS: Final = 200
QUERY_WORDS: Final = 3
"""As many as half of what users type has at most."""
WARMING, COUNTED = 30, 9
"""Queries."""


def one() -> int:
    return 1


def two() -> Iterator[int]:
    yield one()
    yield one()


@pytest.fixture
def counter() -> Iterator[CallCounter]:
    counter = CallCounter()
    with counter.installed():
        yield counter


def test_calls_of_python_functions_and_of_others_are_counted_apart(counter: CallCounter) -> None:
    names = ["b", "a"]
    one()
    counter.is_counting = True
    one()
    one()
    names.sort()
    len(names)
    counter.is_counting = False
    one()
    assert counter.take() == Calls(python=2, c=2, functions=1, files=1)
    assert counter.take() == Calls(0, 0, 0, 0)


def test_a_generator_counts_each_time_it_goes_on(counter: CallCounter) -> None:
    counter.is_counting = True
    for _ in two():
        pass
    counter.is_counting = False
    assert counter.take() == Calls(python=3 + 2, c=0, functions=2, files=1)


def test_threads_that_begin_meanwhile_are_counted(counter: CallCounter) -> None:
    begin, end = threading.Event(), threading.Event()

    def work() -> None:
        begin.wait()
        counter.is_counting = True
        one()
        counter.is_counting = False
        end.set()

    thread = threading.Thread(target=work)
    thread.start()
    begin.set()
    end.wait()
    thread.join()
    assert counter.take().python == 1


def test_a_failed_request_is_not_measured(service: InProcess) -> None:
    with pytest.raises(AssertionError, match="/search/: 400"):
        service.answer(get("/search/?yql=nonsense"))


def test_a_warm_query_makes_few_calls(service: InProcess) -> None:
    """The least of several queries that ask for the same words in other combinations: the rest is other threads'."""
    texts = [" ".join(words) for words in itertools.combinations(WORDS, QUERY_WORDS)]
    random.Random(SEED).shuffle(texts)
    paths = [http_kinds.our_path(http_kinds.PLAIN, text) for text in texts]
    for path in paths[:WARMING]:
        assert len(orjson.loads(service.answer(get(path)))["root"]["children"]) == 10
    calls = min((service.calls(get(path)) for path in paths[WARMING:][:COUNTED]), key=lambda each: each.python)
    print(f"a warm query: {calls}")  # noqa: T201
    assert 0 < calls.python <= MOST_PYTHON_CALLS
    assert 0 < calls.c <= MOST_C_CALLS


def test_a_warm_query_with_a_grouping_is_not_prepared_again(service: InProcess) -> None:
    """What differs between these is a word before a `|`, which stands in a plan of all of them."""
    rest = urllib.parse.quote(" /* it's */ | all(group(category) max(3) each(output(count())))")
    paths = [f"/search/?yql=select+*+from+article+where+body+contains+%22{word}%22{rest}&hits=0" for word in WORDS]
    for word in WORDS:  # looking a word up for the first time is no part of a warm query
        service.answer(get(http_kinds.our_path(http_kinds.PLAIN, word)))
    for path in paths[:-COUNTED]:
        (groups, *_) = orjson.loads(service.answer(get(path)))["root"]["children"]
        assert groups["children"][0]["children"][0]["value"] == "c"
    calls = min((service.calls(get(path)) for path in paths[-COUNTED:]), key=lambda each: each.python)
    print(f"a warm query with a grouping: {calls}")  # noqa: T201
    assert 0 < calls.python <= MOST_PYTHON_CALLS_GROUPED


def test_a_put_makes_few_calls(tmp_path: Path) -> None:
    """The least of several: some of them have segments of the index merged."""
    lines = list(documents())
    with opened(tmp_path, APPLICATION) as feeding:
        for line in lines[:-COUNTED]:
            feeding.answer(put(line))
        calls = min((feeding.calls(put(line)) for line in lines[-COUNTED:]), key=lambda each: each.python)
    print(f"a put: {calls}")  # noqa: T201
    assert 0 < calls.python <= MOST_PYTHON_CALLS_OF_A_PUT


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[InProcess]:
    """Every query runs on the event loop, however long a busy machine takes for it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(limits, "INLINE_QUERY_NS", 1 << 60)
        with in_process(tmp_path_factory.mktemp("content"), APPLICATION, documents()) as service:
            yield service


def documents() -> Iterator[dict[str, Any]]:
    choice = random.Random(SEED)
    for number in range(DOCUMENTS):
        title, body = (" ".join(choice.choices(WORDS, k=count)) for count in (3, 20))
        fields = {"title": title, "body": body, "category": "c", "year": 2000, "percentile": 1}
        yield {"put": f"id:bench:article::{number}", "fields": fields}
