"""How many functions are called while one warm query is answered.

The service's parts stand in this process without sockets: a container, a messenger, and a content node with a few
documents that are flushed. Each count is of everything between a request value and its response value, on all threads.
Counts hardly differ between machines, as times do, so a test can hold them.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, FrameType
from typing import Any, Final

import orjson

from bench.layers import NothingMeasured
from paperwasp.application.build import build_model
from paperwasp.application.package import load_package
from paperwasp.container.app import ContainerApp
from paperwasp.container.state import Running
from paperwasp.content.node import ContentNode
from paperwasp.content.upkeep.row_filling import RowFilling
from paperwasp.coordination.messenger import EmbeddedMessenger
from paperwasp.http.messages import Request, Response
from paperwasp.search.features import check_profiles
from paperwasp.server.process import open_file_log
from paperwasp.server.roles.content_clusters import ContentClusters

NAME: Final = "default.default.default"


@dataclass(frozen=True)
class Calls:
    """The counts of one query. `python` includes each time that a generator or coroutine goes on; `c` is calls of
    functions that are not written in Python."""

    python: int
    c: int
    functions: int
    files: int

    def __str__(self) -> str:
        where = f"{self.functions} functions of {self.files} files"
        return f"{self.python} Python calls in {where}, {self.c} C calls"


class CallCounter:
    """Counts calls on every thread that begins while it is installed, and on the installing one."""

    def __init__(self) -> None:
        self.is_counting = False
        self._codes: list[CodeType] = []  # appending is one step for all threads, as adding to a number is not
        self._builtins: list[None] = []

    @contextmanager
    def installed(self) -> Iterator[None]:
        """Sees the calls of this thread, and of those that begin meanwhile: of these also afterwards."""
        threading.setprofile(self._note)
        sys.setprofile(self._note)
        try:
            yield
        finally:
            sys.setprofile(None)
            threading.setprofile(None)

    def take(self) -> Calls:
        """The counts since the last time."""
        codes = Counter(self._codes)
        files = {code.co_filename for code in codes}
        calls = Calls(codes.total(), len(self._builtins), len(codes), len(files))
        for noted in (self._codes, self._builtins):
            noted.clear()
        return calls

    def _note(self, frame: FrameType, event: str, argument: object) -> None:
        if not self.is_counting:
            return
        if event == "c_call":
            self._builtins.append(None)
        elif event == "call":
            self._codes.append(frame.f_code)


class InProcess:
    """A container and its content clusters in this process. Requests run in turn in one event loop."""

    def __init__(self, app: ContainerApp, loop: asyncio.AbstractEventLoop, counter: CallCounter) -> None:
        self._app = app
        self._loop = loop
        self._counter = counter

    def answer(self, request: Request) -> bytes:
        """The body of the answer. Errors: AssertionError unless it is a success."""
        return self._loop.run_until_complete(self._answered(request))

    def answer_all(self, requests: Iterable[Request], at_once: int) -> None:
        """All of them, as many at once as a server has connections. Errors: as `answer`."""
        waiting = iter(requests)

        async def answered() -> None:
            for request in waiting:
                await self._answered(request)

        async def by_all() -> None:
            await asyncio.gather(*(answered() for _ in range(at_once)))

        self._loop.run_until_complete(by_all())

    async def _answered(self, request: Request) -> bytes:
        response = await self._app.handle(request)
        assert isinstance(response, Response)
        if response.status != 200:
            raise AssertionError(f"{request.method} {request.raw_path}: {response.status} {response.body[:500]!r}")
        return response.body

    def calls(self, request: Request) -> Calls:
        """The counts of answering a request. Errors: NothingMeasured where nothing was seen, not even the answer."""

        async def counted() -> None:
            self._counter.is_counting = True
            await self._app.handle(request)
            self._counter.is_counting = False

        self._loop.run_until_complete(counted())
        calls = self._counter.take()
        if not (calls.python and calls.c):
            raise NothingMeasured(f"calls of {request.raw_path} were not counted: {calls}")
        return calls


def get(path: str) -> Request:
    """A GET request of a path with its query string."""
    raw_path, _, query = path.partition("?")
    return Request("GET", raw_path, query)


def put(document: dict[str, Any]) -> Request:
    """The request that feeds one line of a feed file."""
    _, namespace, kind, _, name = document["put"].split(":", 4)
    body = orjson.dumps({"fields": document["fields"]})
    return Request("POST", f"/document/v1/{namespace}/{kind}/docid/{name}", body=body)


@contextmanager
def in_process(directory: Path, application: Path, documents: Iterable[dict[str, Any]]) -> Iterator[InProcess]:
    """An application with documents, which are flushed: the content node is opened a second time after feeding."""
    with opened(directory, application) as feeding:
        for document in documents:
            feeding.answer(put(document))
    with opened(directory, application) as asking:
        yield asking


@contextmanager
def opened(directory: Path, application: Path, *, counts_calls: bool = True) -> Iterator[InProcess]:
    """An application with the documents that `directory` has, as a service keeps them in `content`.

    Counting slows down whatever is called: without it, what is timed is what a service would take.
    """
    counter, model = CallCounter(), build_model(load_package(application), check_profiles)
    with ExitStack() as closing:
        loop = asyncio.new_event_loop()
        closing.callback(loop.close)
        if counts_calls:
            closing.enter_context(counter.installed())
        messenger = EmbeddedMessenger()
        clusters = ContentClusters(directory, messenger, open_file_log)
        closing.callback(clusters.stop)
        clusters.stage(NAME, 1, model.content_clusters)
        clusters.adopt(NAME, 1, model.content_clusters)
        for running in clusters._running.values():
            running._housekeeping.stop()  # two may not fill the rows of one node
            _fill_rows(running._node)
        app = ContainerApp(messenger, NAME)
        app.configure(Running(1, model, model.containers[0], NAME))
        yield InProcess(app, loop, counter)


def _fill_rows(node: ContentNode) -> None:
    """Do at once what the node's chore would do soon, so that what is measured does not depend on when it does."""
    filling = RowFilling(node.reader)
    while node.reader.view().rows.limit < node.reader.view().limit:
        filling()
