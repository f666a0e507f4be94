"""Texts of several calls in one request of an HTTP embedder, and the time that each call has."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from paperwasp.components.embedders.http_batches import BatchSettings, HttpBatches
from paperwasp.errors import InvalidInput, Timeout, Unavailable
from paperwasp.indexing.components import Context
from tests.components.embedders.test_http_embedders import FLOATS, embedder
from tests.components.stand_in import Asked, stand_in


def test_texts_of_several_calls_go_together() -> None:
    batches = HttpBatches(BatchSettings(most=3, gathered=3, delay_seconds=60))
    requests: list[list[str]] = []

    def request(texts: Any, _: float) -> list[Any]:
        requests.append(sorted(texts))
        return [np.array([len(text)]) for text in texts]

    found: dict[str, Any] = {}
    texts = ("a", "bb", "ccc", "dddd", "eeeee", "ffffff")
    threads = [
        threading.Thread(target=lambda each=text: found.update({each: batches.make([each], "k", request)}))
        for text in texts
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert {text: vector.tolist() for text, (vector,) in found.items()} == {text: [len(text)] for text in texts}
    assert [len(each) for each in requests] == [3, 3] and sorted(requests[0] + requests[1]) == sorted(texts)


def test_a_call_goes_alone_when_nobody_came() -> None:
    batches = HttpBatches(BatchSettings(most=8, gathered=8, delay_seconds=0))
    asked: list[Any] = []
    assert batches.make(["a", "b"], "k", lambda texts, _: asked.append(texts) or [np.zeros(1)] * 2) == [np.zeros(1)] * 2  # type: ignore[func-returns-value]
    assert asked == [["a", "b"]]


def test_only_texts_of_the_same_kind_go_together() -> None:
    batches = HttpBatches(BatchSettings(most=2, gathered=2, delay_seconds=0.01))
    asked: list[tuple[str, list[str]]] = []

    def run(key: str, text: str) -> None:
        batches.make([text], key, lambda texts, _: asked.append((key, list(texts))) or [np.zeros(1)])  # type: ignore[func-returns-value]

    threads = [threading.Thread(target=run, args=each) for each in (("query", "a"), ("document", "b"))]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(asked) == [("document", ["b"]), ("query", ["a"])]


def test_a_text_that_is_refused_is_the_error_of_its_own_call() -> None:
    batches = HttpBatches(BatchSettings(most=3, gathered=3, delay_seconds=60))

    def request(texts: Any, _: float) -> list[Any]:
        if "bad" in texts:
            raise InvalidInput("too long")
        return [np.array([len(text)]) for text in texts]

    found: dict[str, Any] = {}

    def run(text: str) -> None:
        try:
            found[text] = batches.make([text], "k", request)[0].tolist()
        except InvalidInput as error:
            found[text] = error.message

    threads = [threading.Thread(target=run, args=(text,)) for text in ("a", "bad", "ccc")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {"a": [1], "bad": "too long", "ccc": [3]}


def test_all_of_a_request_that_fails_are_messages() -> None:
    batches = HttpBatches(BatchSettings(most=2, gathered=2, delay_seconds=60))
    messages: list[str] = []

    def request(texts: Any, _: float) -> list[Any]:
        raise Unavailable("down")

    def run(text: str) -> None:
        with pytest.raises(Unavailable) as raised:
            batches.make([text], "k", request)
        messages.append(raised.value.message)

    threads = [threading.Thread(target=run, args=(text,)) for text in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert messages == ["down", "down"]


@pytest.mark.parametrize("order", [("hasty", "patient"), ("patient", "hasty")])
def test_a_call_is_answered_at_its_own_deadline_while_the_request_goes_on(order: tuple[str, str]) -> None:
    """The request ends after the call with little time was answered, whether that began the queue or joined it."""
    now, begun, answered = [0.0], threading.Event(), threading.Event()
    batches = HttpBatches(BatchSettings(most=2, gathered=2, delay_seconds=60), lambda: now[0])
    requests: list[tuple[list[str], float]] = []
    found: dict[str, Any] = {}

    def request(texts: Any, seconds: float) -> list[Any]:
        requests.append((sorted(texts), seconds))
        begun.set()
        assert answered.wait(60)
        return [np.array([len(text)]) for text in texts]

    def run(text: str) -> None:
        try:
            found[text] = batches.make([text], "k", request, {"hasty": 50, "patient": 500}[text])[0].tolist()
        except TimeoutError:
            found[text] = "timeout"
            answered.set()

    threads = [threading.Thread(target=run, args=(text,)) for text in order]
    with batches._changed:
        threads[0].start()
        assert batches._changed.wait_for(lambda: len(batches._queues) == 1, 60)
    threads[1].start()
    assert begun.wait(60)
    with batches._changed:
        now[0] = 50.0
        batches._changed.notify_all()
    for thread in threads:
        thread.join(60)
    assert found == {"hasty": "timeout", "patient": [7]}
    assert requests == [(["hasty", "patient"], 500)]


def test_a_call_whose_time_ends_before_its_queue_is_sent() -> None:
    """Nobody waits any more, and the next call begins a queue of its own."""
    now = [0.0]
    batches = HttpBatches(BatchSettings(most=2, gathered=2, delay_seconds=60), lambda: now[0])
    messages: list[str] = []

    def run() -> None:
        with pytest.raises(TimeoutError):
            batches.make(["a"], "k", lambda texts, _: [np.zeros(1)] * len(texts), 50)
        messages.append("timeout")

    thread = threading.Thread(target=run)
    with batches._changed:
        thread.start()
        assert batches._changed.wait_for(lambda: len(batches._queues) == 1, 60)
        now[0] = 50.0
        batches._changed.notify_all()
    thread.join(60)
    assert messages == ["timeout"] and batches._queues == {}
    assert batches.make(["b", "c"], "k", lambda texts, _: [np.array([ord(each)]) for each in texts]) == [98, 99]


@pytest.mark.parametrize("batching", [{}, {"batching_AT_max_size": "2", "batching_AT_max_delay": "0ms"}])
def test_the_time_of_a_call(batching: dict[str, str]) -> None:
    """The words are those of Vespa's AbstractHttpEmbedder."""
    ended = threading.Event()

    def answer(_: Asked) -> object:
        ended.wait(60)
        return {}

    with stand_in(answer) as server:
        each = embedder("openai-embedder", model="m", dimensions="4", endpoint=server.url, **batching)
        for seconds, problem in (
            (0.05, f"Embedding API call timed out after 50ms: {server.url} did not answer"),
            (0.0, "Request deadline exceeded before embedding API call"),
        ):
            with pytest.raises(Timeout) as raised:
                each.embed(["a"], FLOATS, Context("music.vector", timeout_seconds=seconds))
            assert raised.value.message == f"openai-embedder 'mine': {problem}"
        ended.set()
