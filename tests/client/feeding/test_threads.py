"""Several threads share a feed client: each keeps its order, all get their results, and none waits for ever."""

from __future__ import annotations

import random
import threading
from collections import defaultdict
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from paperwasp.client import FeedClient, FeedOperation, OperationType, Outcome, Result
from paperwasp.document.ids import DocumentId
from paperwasp.errors import OperationAborted
from tests.chance import SEED
from tests.client.feeding.fake_server import FakeServer, Request
from tests.client.feeding.test_faults import Unruly
from tests.client.feeding.test_feed_client import Threaded

THREADS = 4
OPERATIONS = 150


def test_threads_keep_the_order_of_their_own_operations() -> None:
    unruly = Unruly(SEED, ["429", "refuse", "cut after"])

    def feed(client: FeedClient, thread: int) -> list[Future[Result]]:
        chance = random.Random(SEED + thread)
        return [client.put(f"id:ns:music::{thread}-{chance.randrange(5)}", str(number)) for number in range(OPERATIONS)]

    with Threaded(FakeServer(unruly)) as server, FeedClient(server.url, connections_per_endpoint=2) as client:
        with ThreadPoolExecutor(THREADS) as pool:
            given = list(pool.map(lambda thread: feed(client, thread), range(THREADS)))
        assert {future.result().outcome for futures in given for future in futures} == {Outcome.SUCCESS}
    taken: dict[str, set[int]] = defaultdict(set)
    for path, numbers in unruly.taken.items():
        assert numbers == sorted(numbers), path
        taken[path.rpartition("/")[2].partition("-")[0]].update(numbers)
    assert taken == {str(thread): set(range(OPERATIONS)) for thread in range(THREADS)}


def test_threads_that_wait_for_room_are_let_go_by_closing() -> None:
    """A server that answers nothing: two operations are taken, and further calls wait until the client is closed."""
    refused = threading.Semaphore(0)
    with Threaded(FakeServer(lambda request: None)) as server:
        client = FeedClient(server.url, connections_per_endpoint=1, max_streams_per_connection=2)
        futures = [client.put(f"id:ns:music::{number}", "{}") for number in range(2)]

        def wait() -> None:
            with pytest.raises(OperationAborted):
                client.submit(FeedOperation(OperationType.REMOVE, DocumentId.parse("id:ns:music::2")))
            refused.release()

        threads = [threading.Thread(target=wait) for _ in range(3)]
        for thread in threads:
            thread.start()
        assert not refused.acquire(timeout=0.05)
        client.close(graceful=False)
        for thread in threads:
            thread.join(30)
        assert all(refused.acquire(timeout=0) for _ in threads)
        assert {type(future.exception()) for future in futures} == {OperationAborted}


def test_a_client_is_not_closed_by_a_function_of_its_future() -> None:
    """It would wait for itself. The answer is held until the function is there, which then runs on the event loop."""
    held: list[Request] = []
    has_come, has_run = threading.Event(), threading.Event()
    raised: list[BaseException] = []

    def hold(request: Request) -> None:
        held.append(request)
        has_come.set()

    threaded = Threaded(FakeServer(hold))
    with threaded as server, FeedClient(server.url) as client:

        def close(future: Future[Result]) -> None:
            try:
                client.close()
            except RuntimeError as error:
                raised.append(error)
            has_run.set()

        client.put("id:ns:music::1", "{}").add_done_callback(close)
        assert has_come.wait(30)
        threaded.loop.call_soon_threadsafe(held[0].answer)
        assert has_run.wait(30)
        assert len(raised) == 1
