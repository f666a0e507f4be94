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
from paperwasp.embedded.feeding import EMBEDDING_OPERATIONS, EMBEDDING_SECONDS, OPERATIONS, Pace
from paperwasp.embedded.lent_loop import Closed
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


EMBEDDING = {
    "services.xml": """<services version="1.0"><container id="c" version="1.0"><search/><document-api/>
  <component id="counting" class="counting.Counting" bundle="python"/></container>
  <content id="d" version="1.0"><redundancy>1</redundancy><documents><document type="t" mode="index"/></documents>
  <nodes><node hostalias="n" distribution-key="0"/></nodes></content></services>""",
    "schemas/t.sd": """schema t {
  document t { field text type string { indexing: summary } }
  field vector type tensor<float>(x[1]) { indexing: input text | embed counting | attribute }
}""",
    "components/counting.py": """
import threading
class Counting:
    def __init__(self, setup):
        self.lock, self.now, self.most = threading.Lock(), 0, 0

    def embed(self, texts, call):
        with self.lock:
            self.now += 1
            self.most = max(self.most, self.now)
        if self.most > 1 and "alone" in texts[0]:
            raise ValueError(f"{self.most} at a time")
        with self.lock:
            self.now -= 1
        return [[1.0] for _ in texts]
""",
}


def test_of_what_embeds_only_as_much_is_begun_as_is_done_in_time() -> None:
    """However slow a model is, no operation waits behind others of the same feed until its time is over."""
    hours = iter(range(10**6))
    with paperwasp.Service(EMBEDDING, allow_python_components=True) as service:
        service._window.pace = Pace(lambda: next(hours) * 3600.0)
        rows = [{"id": str(n), "text": f"alone {n}"} for n in range(50)]
        result = service.feed([*rows, {"remove": "id:t:t::0"}, {"id": "1", "text": "again alone"}])
        assert (result.ok, result.problems) == (52, [])
        assert service._window.pace.most == 1
        service._window.pace = Pace(lambda: 0.0)
        assert service.feed({"id": str(n), "text": "x"} for n in range(600)).ok == 600
        assert service._window.pace.most == EMBEDDING_OPERATIONS and service._window.pace.has_room
        document = service.get("1")
        assert document is not None and document["text"] == "x"


def test_the_pace_grows_with_what_ends_in_time_and_halves_once_for_what_does_not() -> None:
    now = [0.0]
    pace = Pace(lambda: now[0])
    for _ in range(10):
        pace.begin()
        pace.end(now[0])
    assert pace.most == 11
    for _ in range(11):
        assert pace.has_room
        pace.begin()
    assert not pace.has_room
    now[0] = EMBEDDING_SECONDS + 1
    for _ in range(11):
        pace.end(0.0)
    assert pace.most == 5
    pace.begin()
    now[0] *= 3
    pace.end(EMBEDDING_SECONDS + 1)
    assert pace.most == 2
