"""What feeds owe each other and the service: order, room, Ctrl-C, and the service's end."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pyarrow
import pytest

import paperwasp
from paperwasp.embedded.lent_loop import Closed
from paperwasp.embedded.window import OPERATIONS
from tests.children import ROOT

SCHEMA = """schema thing {
    document thing {
        field text type string { indexing: summary }
        field number type int { indexing: summary | attribute }
    }
}"""
LARGE = "x" * 200_000


@pytest.fixture(scope="module")
def service() -> Iterator[paperwasp.Service]:
    with paperwasp.Service(SCHEMA) as service:
        yield service


def _number(service: paperwasp.Service, name: str) -> object:
    document = service.get(name)
    return None if document is None else document.get("number")


@pytest.mark.parametrize("turn", range(5))
def test_nothing_overtakes_a_large_document(service: paperwasp.Service, turn: int) -> None:
    """It is read beside the event loop, and what follows it is not."""
    first = {"id": "1", "text": LARGE, "number": 1}
    assert service.feed([first, {"id": "1", "number": 2}]).ok == 2
    assert _number(service, "1") == 2
    assert service.feed([first, {"id": "1", "text": LARGE, "number": 3}, {"id": "1", "number": 4}]).ok == 3
    assert _number(service, "1") == 4
    assert service.feed([first, {"remove": "id:thing:thing::1"}]).ok == 2
    assert service.get("1") is None
    update = {"update": "id:thing:thing::2", "fields": {"number": {"assign": 5}}}
    assert service.feed([{**first, "id": "2"}, update]).ok == 2
    assert _number(service, "2") == 5
    names = [*map(str, range(256)), "0"]
    texts = [LARGE, *["x"] * 256]
    table = pyarrow.table({"id": names, "text": texts, "number": list(range(257))})
    assert service.feed(table).ok == 257
    assert _number(service, "0") == 256


def test_many_feeds_have_room_together(service: paperwasp.Service) -> None:
    with ThreadPoolExecutor(6) as pool:
        feeds = [
            pool.submit(service.feed, [{"id": f"{feed}-{n}", "number": n} for n in range(OPERATIONS)])
            for feed in range(6)
        ]
        assert [each.result().ok for each in feeds] == [OPERATIONS] * 6


def test_a_feed_ends_with_its_service() -> None:
    begun = threading.Event()

    def rows() -> Iterator[dict[str, object]]:
        for n in range(10**7):
            if n == 3 * OPERATIONS:
                begun.set()
            yield {"id": str(n), "number": n}

    with paperwasp.Service(SCHEMA) as service, ThreadPoolExecutor(1) as pool:
        feed = pool.submit(service.feed, rows())
        assert begun.wait(60)
        service.close()
        with pytest.raises(Closed):
            feed.result(60)


INTERRUPTED = """
import contextlib, paperwasp, signal, sys, threading
from concurrent.futures import ThreadPoolExecutor

def interrupt(*_):
    raise KeyboardInterrupt

service = paperwasp.Service(sys.argv[1])
signal.signal(signal.SIGUSR1, interrupt)
for turn in range(30):
    timer = threading.Timer(0.001 + turn / 1000, signal.raise_signal, [signal.SIGUSR1])
    with contextlib.suppress(KeyboardInterrupt):
        timer.start()
        service.feed([{"id": str(n), "number": n} for n in range(2000)])
        timer.join()
    timer.join()
with ThreadPoolExecutor(1) as pool:
    assert pool.submit(service.feed, [{"id": "last", "number": 7}]).result(60).ok == 1
    assert pool.submit(service.get, "last").result(60)["number"] == 7
service.close()
"""


def test_an_interrupt_leaves_the_service_in_order() -> None:
    """Wherever it comes: the turns of the event loop are free, and others find room."""
    command = [sys.executable, "-c", INTERRUPTED, SCHEMA]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=200, check=False)
    assert done.returncode == 0, done.stderr
