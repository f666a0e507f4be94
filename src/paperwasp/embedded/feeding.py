"""Feeding many documents: as many at a time as the content clusters take, in the order in which they come."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Set, Sized
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import orjson
from msgspec import Struct, field

from paperwasp import limits
from paperwasp.client.feeding.operations import document_path
from paperwasp.client.sources.operations import DecodedPut, DecodedPuts, SourceOperation
from paperwasp.container.app import ContainerApp
from paperwasp.container.threads import is_large
from paperwasp.document.ids import DocumentId
from paperwasp.embedded.lent_loop import Closed, Given, LentLoop, Take
from paperwasp.embedded.requests import json_text_request
from paperwasp.embedded.sources import TakesDecoded
from paperwasp.http.messages import Request, Response
from paperwasp.http.pending import Begun

if TYPE_CHECKING:
    from paperwasp.container.document.decoded import DecodedPuts as Taker

# Room for what all feeds of a service have under way, so that the container refuses none of it.
#
# Operations that embed wait for a model, and their time runs meanwhile: of them only as many are begun as embedding
# does in a time that is short beside their timeout.


OPERATIONS: Final = 4096
"""As many as a content cluster takes at a time. What comes beyond waits in a line that is short."""
EMBEDDING_OPERATIONS: Final = 4 * limits.embedding.DOCUMENT_THREADS
"""The most of them that embed: more wait without making runs of a model larger."""
EMBEDDING_SECONDS: Final = 20.0
"""How long one of them may take until fewer are begun; the service gives up after 180 s."""


class Window:
    """Counts operations from when they begin to when they end. Threads take room; ends come while the loop is held."""

    def __init__(self, loop: LentLoop) -> None:
        self._loop = loop
        self._begun = 0
        self._ended = 0
        self._changed = threading.Condition()
        self._waited_for: list[Callable[[], bool]] = []
        self.pace = Pace()
        """Of operations that embed."""
        loop.call_at_end(self._wake)

    def take(self, count: int) -> None:
        """Waits until there is room for that number of operations, and takes it. Errors: Closed."""
        with self._changed:
            self._wait_until(lambda: self._begun - self._ended <= OPERATIONS - count)
            self._begun += count

    def take_embedding(self) -> None:
        """Waits until an operation that embeds may begin, and takes its room. Errors: Closed."""
        with self._changed:
            self._wait_until(lambda: self._begun - self._ended < OPERATIONS and self.pace.has_room)
            self._begun += 1
            self.pace.begin()

    def give_back(self, count: int) -> None:
        """These operations did not begin."""
        with self._changed:
            self._begun -= count
            self._changed.notify_all()

    def note_end(self) -> None:
        """An operation has ended."""
        self._ended += 1
        for is_met in tuple(self._waited_for):
            if is_met():
                self._wake()
                return

    def wait_until(self, is_met: Callable[[], bool]) -> None:
        """Waits for what becomes true when operations end. Errors: Closed, where they will not end any more."""
        if not is_met():
            with self._changed:
                self._wait_until(is_met)

    def _wait_until(self, is_met: Callable[[], bool]) -> None:
        self._waited_for.append(is_met)
        try:
            self._changed.wait_for(lambda: is_met() or self._loop.is_closed)
        finally:
            self._waited_for.remove(is_met)
        if not is_met():
            raise Closed("The service has ended")

    def _wake(self) -> None:
        with self._changed:
            self._changed.notify_all()


class Pace:
    """How many operations that embed may be under way: one at first, one more with each that ends in time, half as many
    where one takes long. `begin` is called under a lock, `end` while the loop is held."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._begun = 0
        self._ended = 0
        self._cut = 0.0
        self.most = 1

    @property
    def has_room(self) -> bool:
        """Whether one more may begin."""
        return self._begun - self._ended < self.most

    def now(self) -> float:
        """The time at which an operation begins, for `end`."""
        return self._clock()

    def begin(self) -> None:
        """An operation begins."""
        self._begun += 1

    def end(self, since: float) -> None:
        """An operation has ended that began then."""
        self._ended += 1
        now = self._clock()
        if now - since <= EMBEDDING_SECONDS:
            self.most = min(self.most + 1, EMBEDDING_OPERATIONS)
        elif since >= self._cut:  # those that began before waited for as many as were begun then
            self.most, self._cut = max(self.most // 2, 1), now


_BATCH: Final = 256
_ERRORS_KEPT: Final = 100
_METHODS: Final = {"put": "POST", "update": "PUT", "remove": "DELETE"}

Begin = Callable[[], Begun]
Report = Callable[["FeedResult"], None]


class FeedProblem(Struct, frozen=True):
    """An operation that failed."""

    id: str
    status: int
    message: str


class FeedResult(Struct):
    """How a feed went."""

    ok: int = 0
    failed: int = 0
    problems: list[FeedProblem] = field(default_factory=list)
    """The first of the operations that failed."""
    seconds: float = 0.0

    def __repr__(self) -> str:
        rate = self.ok / self.seconds if self.seconds else 0.0
        first = f"; first: {self.problems[0].id}: {self.problems[0].message}" if self.problems else ""
        return f"<FeedResult: {self.ok} fed in {self.seconds:.2f} s ({rate:.0f}/s), {self.failed} failed{first}>"


def request_of(operation: SourceOperation) -> Request:
    """The request that an operation is."""
    options: dict[str, object] = {}
    if operation.condition is not None:
        options["condition"] = operation.condition
    if operation.create:
        options["create"] = True
    body = b"" if operation.fields is None else b'{"fields":%s}' % operation.fields
    return json_text_request(_METHODS[operation.kind], document_path(operation.document_id), body, options)


def feed(
    loop: LentLoop,
    window: Window,
    container: ContainerApp,
    operations_of: Callable[[TakesDecoded], Iterable[SourceOperation | DecodedPuts]],
    report: Report | None = None,
) -> FeedResult:
    """Does all operations, and waits until each is done. `report` is called now and then.

    Errors: what reading the operations raises, after those before it are done; Closed. Ctrl-C ends it at once, with
    what was begun.
    """
    run = _Run(loop, window, container, report)
    started = time.monotonic()
    try:
        for each in operations_of(run.takes_decoded):
            if isinstance(each, DecodedPuts):
                run.send_decoded(each)
            else:
                run.add(each)
    except Exception:
        run.end()
        raise
    run.end()
    run.result.seconds = time.monotonic() - started
    if report is not None:
        report(run.result)
    return run.result


class _Run:
    """The operations of one feed that are under way. Answers come while the loop is held, one at a time."""

    def __init__(self, loop: LentLoop, window: Window, container: ContainerApp, report: Report | None) -> None:
        self.result = FeedResult()
        self._loop = loop
        self._window = window
        self._container = container
        self._report = report
        self._batch: list[tuple[Begin, Take]] = []
        self._large: set[str] = set()
        """The ids of large operations that have not ended: these are read beside the loop, so that others would
        overtake them."""
        self._taker: Taker | None = None
        self._begun = 0
        self._ended = 0

    def add(self, operation: SourceOperation) -> None:
        """Sends an operation with those that follow it, or now."""
        request, identity = request_of(operation), operation.id
        if identity in self._large:
            self.end()
        if is_large(request):
            self._large.add(identity)
        if operation.kind != "remove" and self._container.embeds(operation.document_id.document_type):
            self._send_embedding(request, identity)
            return

        def begin() -> Begun:
            self._begun += 1
            return self._container.admit(request)

        self._batch.append((begin, lambda given: self._take(identity, given)))
        if len(self._batch) == _BATCH:
            self.send()

    def _send_embedding(self, request: Request, identity: str) -> None:
        """Sends an operation that embeds, behind what was added before, when embedding has come so far."""
        if self._batch:
            self.send()
        pace = self._window.pace
        self._window.take_embedding()
        since = pace.now()

        def begin() -> Begun:
            self._begun += 1
            return self._container.admit(request)

        def take(given: Given) -> None:
            pace.end(since)
            self._take(identity, given)

        before = self._begun
        try:
            self._loop.start_all([(begin, take)])
        except BaseException:
            if self._begun == before:
                pace.end(since)
                self._window.give_back(1)
            raise
        if self._report is not None:
            self._report(self.result)

    def send(self) -> None:
        """Sends what is left."""
        self._begin(len(self._batch), lambda: self._loop.start_all(self._batch))
        self._batch.clear()

    def end(self) -> None:
        """Sends what is left, and waits until all has ended."""
        self.send()
        self._window.wait_until(lambda: self._begun <= self._ended)

    def takes_decoded(self, document_types: Set[str]) -> bool:
        """Whether `send_decoded` takes puts of these types next."""
        self._taker = self._container.decoded_puts()
        return self._taker is not None and self._taker.can_take(document_types)

    def send_decoded(self, decoded: DecodedPuts) -> None:
        """Sends puts, behind what was added before, of types that were found to be taken."""
        taker = self._taker
        assert taker is not None
        if self._large and not self._large.isdisjoint(document_id.text for document_id, *_ in decoded.puts):
            self.end()
        elif self._batch:
            self.send()

        def counted() -> Iterator[DecodedPut]:
            for put in decoded.puts:
                self._begun += 1
                yield put

        self._begin(len(decoded.puts), lambda: self._loop.call(lambda: taker.send(counted(), self._take_put)))

    def _begin(self, count: int, begin: Callable[[], None]) -> None:
        """Begins that number of operations when there is room for them."""
        self._window.take(count)
        before = self._begun
        try:
            begin()
        except BaseException:
            self._window.give_back(count - (self._begun - before))
            raise
        if self._report is not None:
            self._report(self.result)

    def _take_put(self, document_id: DocumentId, error: Exception | None) -> None:
        if error is None:
            self.result.ok += 1
        else:
            self._note_failure(document_id.text, error)
        self._end_one()

    def _take(self, identity: str, given: Given) -> None:
        self._large.discard(identity)
        if isinstance(given, Response) and given.status == 200:
            self.result.ok += 1
        else:
            self._note_failure(identity, given)
        self._end_one()

    def _note_failure(self, identity: str, given: Given) -> None:
        result = self.result
        result.failed += 1
        if len(result.problems) < _ERRORS_KEPT:
            result.problems.append(_problem(identity, given))

    def _end_one(self) -> None:
        self._ended += 1
        self._window.note_end()


def _problem(identity: str, given: Given) -> FeedProblem:
    if isinstance(given, Exception):
        return FeedProblem(identity, getattr(given, "http_status", 500), str(given))
    body = given.body if isinstance(given, Response) else b"{}"
    return FeedProblem(identity, given.status, str(orjson.loads(body).get("message", "")))


# How far a feed has come: a bar in a terminal, and in a notebook one that is updated in place.


_BETWEEN_SECONDS: Final = 0.1
Draw = Callable[[int, int], None]
"""Shows how many operations have ended, and how many of them have failed."""


@contextmanager
def shown_progress(source: object, report: Report | None) -> Iterator[Report]:
    """A report that shows a bar before it calls `report`. `source` says how much there is where it has a length."""
    total = len(source) if isinstance(source, Sized) and not isinstance(source, str) else None
    with (_notebook_bar if _is_notebook() else _terminal_bar)(total) as draw:
        yield _throttled(draw, report)


def _throttled(draw: Draw, report: Report | None) -> Report:
    drawn_at = 0.0

    def show(result: FeedResult) -> None:
        nonlocal drawn_at
        now = time.monotonic()
        if now - drawn_at >= _BETWEEN_SECONDS or result.seconds:  # which the last report has
            drawn_at = now
            draw(result.ok + result.failed, result.failed)
        if report is not None:
            report(result)

    return show


def _is_notebook() -> bool:
    """Whether a kernel of Jupyter runs this: it has loaded IPython long before."""
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    return hasattr(shell, "kernel")


@contextmanager
def _terminal_bar(total: int | None) -> Iterator[Draw]:
    """On standard error, where that is a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    columns = (TextColumn("Feeding"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[said]}"))
    with Progress(*columns, TimeElapsedColumn(), console=Console(stderr=True)) as bar:
        task = bar.add_task("", total=total, said="")
        yield lambda ended, failed: bar.update(task, completed=ended, said=f"{failed} failed" if failed else "")


@contextmanager
def _notebook_bar(total: int | None) -> Iterator[Draw]:
    shown: Any = import_module("IPython.display")
    handle = shown.display(shown.HTML(_bar_html(0, 0, total)), display_id=True)
    yield lambda ended, failed: handle.update(shown.HTML(_bar_html(ended, failed, total)))


def _bar_html(ended: int, failed: int, total: int | None) -> str:
    bar = "<progress></progress>" if total is None else f'<progress value="{ended}" max="{max(total, 1)}"></progress>'
    said = f"{ended:,}" if total is None else f"{ended:,} of {total:,}"
    return f"{bar} {said} fed" + (f", {failed:,} failed" if failed else "")
