"""Documents' requests on their way to content clusters, sent together, and what waits because there is no room for it.

    send → gathered → sent when the event loop has handed over all that came together → a reply comes
                   → no room: in line → a reply comes, or a tick → sent in the order of coming

What the sockets that were ready at once have brought is sent in one call, plain changes as one message, since waking
the writer of a content cluster costs as much as an update does. Whoever waits is an `Asked` with a function that takes
the answer: neither a task nor a future, and one timer for the deadlines of all.

A cluster refuses (Overload) what is more than its window of operations in flight. Then the operation waits here, and
what comes after it for the same cluster waits behind it, so nothing is sent in another order than it came in. There is
a line for each cluster and kind of message. A reply means that there is room again; a tick is for when the room was
taken by others. Where too much waits already, the newcomer is refused: nothing of it was done.

Runs on one event loop.

Vespa: the throttling of https://docs.vespa.ai/en/reference/api/document-v1.html (status 429)
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import islice
from time import monotonic
from typing import Any, Final

from paperwasp import limits
from paperwasp.coordination.messages.documents import ApplyChanges, ApplyRequest
from paperwasp.coordination.messages.documents import Request as Message
from paperwasp.coordination.messenger import Messenger, Reply, ignore, settle
from paperwasp.core._core import PlainChange
from paperwasp.errors import Overload, Timeout

_LOG: Final = logging.getLogger("paperwasp.container")
_TICK_SECONDS: Final = 0.05
_TRIED_AT_ONCE: Final = 16
"""How many of a line are sent in one call."""

TakeAll = Callable[[int, Sequence[Any]], None]
"""(which, answers): takes the answers to some of the changes that were sent together, from that one on."""
_LineKey = tuple[str, type]
"""Address and kind of message; plain changes are in the line of other operations."""


class Asked:
    """A message that somebody waits for the answer to."""

    __slots__ = ("_queue", "_take", "deadline", "is_over", "message", "since", "size_bytes", "timeout_ms")

    def __init__(self, queue: DocumentQueue, message: Message, take: Reply, timeout_ms: float, deadline: float) -> None:
        self._queue = queue
        self._take = take
        self.message: Message | None = message
        """None: it is over."""
        self.timeout_ms = timeout_ms
        self.deadline = deadline
        """By the monotonic clock."""
        self.since = 0.0
        """When it has joined a line."""
        self.size_bytes = 0
        self.is_over = False
        """Whether nobody waits any more. If it was not sent before, it must not be sent."""

    @property
    def count(self) -> int:
        """How many requests wait for the answer."""
        return 1

    def reply(self, answer: object) -> None:
        """Give the answer of the cluster, or an error, to who waits for it."""
        if self._queue._length:
            self._queue.note_room()
        if not self.is_over:
            self.is_over = True
            take, self._take, self.message = self._take, ignore, None  # the list of deadlines keeps it for a while
            try:
                take(answer)
            except Exception:  # a defect costs its own answer, and not those that come with it
                _LOG.exception("an answer was lost")


class AskedTogether(Asked):
    """Plain changes, which are one message, and somebody who waits for the answer to each."""

    __slots__ = ("_takers", "changes")

    def __init__(self, queue: DocumentQueue, timeout_ms: float, deadline: float) -> None:
        self.changes = ApplyChanges()
        super().__init__(queue, self.changes, self._take_all, timeout_ms, deadline)
        self._takers: list[tuple[TakeAll, int, int]] = []
        """Each with which of its changes, from the first one on, and how many of them, are here."""

    def add(self, changes: Sequence[PlainChange], sizes_bytes: Sequence[int], take: TakeAll, first: int) -> int:
        """Adds changes from the first one on, as many as there is room for; returns how many."""
        end = min(len(changes), first + limits.CHANGES_TOGETHER - len(self.changes.changes))
        self.changes.add(changes[first:end], sizes_bytes[first:end])
        self._takers.append((take, first, end - first))
        return end - first

    def has_room(self, timeout_ms: float) -> bool:
        """Whether one more with this timeout may be added."""
        return timeout_ms == self.timeout_ms and self.count < limits.CHANGES_TOGETHER

    @property
    def count(self) -> int:
        return len(self.changes.changes)

    def _take_all(self, answer: Any) -> None:
        answers = answer if isinstance(answer, list) else [answer] * self.count
        begin = 0
        for take, first, count in self._takers:
            try:
                take(first, answers[begin : begin + count])
            except Exception:  # a defect costs its own answers, and not those that come with them
                _LOG.exception("answers were lost")
            begin += count


class DocumentQueue:
    """Sends messages to content clusters, and keeps in line those that there is no room for."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._gathered: dict[_LineKey, list[Asked]] = {}
        """Messages to be sent before the event loop waits for more, by address and kind."""
        self._lines: dict[_LineKey, deque[Asked]] = {}
        """By address and kind of message; only while something waits."""
        self._length = 0
        self.size_bytes = 0
        """Of the messages in line."""
        self._deadlines = _Deadlines(self)
        self._is_sending_soon = False

    def __len__(self) -> int:
        """How many requests are in line."""
        return self._length

    def send(self, address: str, message: Message, timeout_ms: float, take: Reply, since: float | None = None) -> Asked:
        """Sends a message soon. `take` is called once, later, with the answer or an error: what the cluster answers
        with; Timeout; Overload where too much is in line. It must not raise. `since`: when the time began, by the
        monotonic clock; None: now."""
        asked = Asked(self, message, take, timeout_ms, (monotonic() if since is None else since) + timeout_ms / 1000)
        self._gathered_in((address, type(message))).append(asked)
        self._deadlines.add(asked)
        return asked

    def send_change(self, address: str, change: PlainChange, size_bytes: int, timeout_ms: float, take: Reply) -> None:
        """As `send`, of a plain change that came in a body of this size."""
        self.send_changes(address, [change], [size_bytes], timeout_ms, lambda _, answers: take(answers[0]))

    def send_changes(
        self,
        address: str,
        changes: Sequence[PlainChange],
        sizes_bytes: Sequence[int],
        timeout_ms: float,
        take: TakeAll,
    ) -> None:
        """As `send` of each, in order; `take` is called for some of them at a time."""
        gathered = self._gathered_in((address, ApplyRequest))
        sent = 0
        while sent < len(changes):
            last = gathered[-1] if gathered else None
            if not isinstance(last, AskedTogether) or not last.has_room(timeout_ms):
                last = AskedTogether(self, timeout_ms, monotonic() + timeout_ms / 1000)
                gathered.append(last)
                self._deadlines.add(last)
            sent += last.add(changes, sizes_bytes, take, sent)

    def _gathered_in(self, key: _LineKey) -> list[Asked]:
        """Return the messages that have been gathered of a line, to which the caller adds."""
        if not self._gathered:
            asyncio.get_running_loop().call_soon(self._send_gathered)
        if (gathered := self._gathered.get(key)) is None:
            gathered = self._gathered[key] = []
        return gathered

    async def ask(self, address: str, message: Message, timeout_ms: float, since: float | None = None) -> Any:
        """The answer. Errors: as `send` gives them. Who no longer awaits it has given it up."""
        answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        asked = self.send(address, message, timeout_ms, partial(settle, answer), since)
        try:
            return await answer
        finally:
            asked.is_over = True

    def note_room(self) -> None:
        """There may be room again."""
        if not self._is_sending_soon:
            self._is_sending_soon = True
            asyncio.get_running_loop().call_soon(self._send_soon)

    def _send_soon(self) -> None:
        self._is_sending_soon = False
        self.send_waiting()

    def send_waiting(self) -> None:
        """Sends what there is room for."""
        for key, line in list(self._lines.items()):
            while line and self._send_first(key[0], line):
                pass
            if not line:
                del self._lines[key]

    def drop_forsaken(self) -> None:
        """Takes out of the lines what nobody waits for any more: its time was over, or its client is gone."""
        for key, line in self._lines.items():
            for asked in line:
                if asked.is_over:
                    self._leave(asked)
            self._lines[key] = deque(asked for asked in line if not asked.is_over)

    def _send_gathered(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for key, asked in gathered.items():
            wanted = [each for each in asked if not each.is_over]
            sent = 0 if key in self._lines else self._send_all(key[0], wanted)
            for each in wanted[sent:]:
                self._join(key, each)

    def _send_all(self, address: str, wanted: Sequence[Asked]) -> int:
        """How many were sent."""
        messages, replies = [asked.message for asked in wanted], [asked.reply for asked in wanted]
        return self._messenger.send_all(address, messages, replies)

    def _join(self, key: _LineKey, asked: Asked) -> None:
        message = asked.message
        asked.since = monotonic()
        asked.size_bytes = message.size_bytes if isinstance(message, ApplyRequest | ApplyChanges) else 0
        line = self._lines.get(key)
        try:
            self._check_room(line, asked)
        except Overload as error:
            asked.reply(error)
            return
        if line is None:
            line = self._lines[key] = deque()
        line.append(asked)
        self._length += asked.count
        self.size_bytes += asked.size_bytes

    def _check_room(self, line: deque[Asked] | None, new: Asked) -> None:
        now, size_bytes = new.since, new.size_bytes
        if self._length + new.count > limits.DOCUMENT_QUEUE_LENGTH:
            raise Overload(f"Rejecting execution due to overload: {self._length} requests already enqueued")
        if self.size_bytes > 0 and self.size_bytes + size_bytes > limits.DOCUMENT_QUEUE_BYTES:
            raise Overload(f"Rejecting execution due to overload: {self.size_bytes} bytes already enqueued")
        if line and now - line[0].since > limits.DOCUMENT_QUEUE_SECONDS:
            raise Overload(
                f"Rejecting execution due to overload: {limits.DOCUMENT_QUEUE_SECONDS} seconds worth of work enqueued"
            )

    def _send_first(self, address: str, line: deque[Asked]) -> bool:
        """Send the first ones of a line, and drop those that nobody waits for. Whether there may be room for more."""
        tried = list(islice(line, _TRIED_AT_ONCE))
        wanted = [asked for asked in tried if not asked.is_over]
        sent = self._send_all(address, wanted) if wanted else 0
        first_left = wanted[sent] if sent < len(wanted) else None
        for asked in tried:
            if asked is first_left:
                return False
            self._leave(line.popleft())
        return True

    def _leave(self, asked: Asked) -> None:
        self._length -= asked.count
        self.size_bytes -= asked.size_bytes


class _Deadlines:
    """Ends the waiting of those whose time has come. One timer for all: a timer for each would cost more than a put."""

    def __init__(self, queue: DocumentQueue) -> None:
        self._queue = queue
        self._waiting: list[Asked] = []
        self._is_ticking = False

    def add(self, asked: Asked) -> None:
        self._waiting.append(asked)
        if not self._is_ticking:
            self._is_ticking = True
            asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)

    def _tick(self) -> None:
        now = monotonic()
        waiting = self._waiting = [asked for asked in self._waiting if not asked.is_over]
        for asked in [asked for asked in waiting if asked.deadline <= now]:
            asked.reply(Timeout(f"Timeout after {asked.timeout_ms:.0f}ms"))
        if self._queue:
            self._queue.drop_forsaken()
            self._queue.send_waiting()
        self._is_ticking = bool(self._waiting)
        if self._is_ticking:
            asyncio.get_running_loop().call_later(_TICK_SECONDS, self._tick)
