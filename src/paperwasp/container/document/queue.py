"""Documents' requests on their way to content clusters, sent together, and what waits because there is no room for it.

    ask → gathered → sent when the event loop has handed over all that came together → a reply comes
                   → no room: in line → a reply comes, or a tick → sent in the order of coming

What the sockets that were ready at once have brought is sent in one call, since waking the writer of a content cluster
costs as much as an update does. A cluster refuses (Overload) what is more than its window of operations in flight. Then
the operation waits here, and what comes after it for the same cluster waits behind it, so nothing is sent in another
order than it came in. There is a line for each cluster and kind of message. A reply means that there is room again; a
tick is for when the room was taken by others. Where too much waits already, the newcomer is refused: nothing of it was
done.

Runs on one event loop.

Vespa: the throttling of https://docs.vespa.ai/en/reference/api/document-v1.html (status 429)
"""

from __future__ import annotations

import asyncio
from collections import deque
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

from paperwasp import limits
from paperwasp.cluster.messenger import Messenger
from paperwasp.content.messages import ApplyRequest
from paperwasp.content.messages import Request as Message
from paperwasp.errors import Overload, Timeout

_TICK_SECONDS: Final = 0.05
_TRIED_AT_ONCE: Final = 16
"""How many of a line are sent in one call."""

_Reply = asyncio.Future[Any]
_LineKey = tuple[str, type]


@dataclass(frozen=True, slots=True)
class _Waiting:
    message: Message
    reply: _Reply
    """Done before the message was sent: nobody waits for it any more, and it must not be sent."""
    since: float
    """By the loop's clock."""
    size_bytes: int


class DocumentQueue:
    """Sends messages to content clusters, and keeps in line those that there is no room for."""

    def __init__(self, messenger: Messenger) -> None:
        self._messenger = messenger
        self._gathered: dict[_LineKey, list[tuple[Message, _Reply]]] = {}
        """What is sent before the event loop waits for more, by address and kind of message."""
        self._lines: dict[_LineKey, deque[_Waiting]] = {}
        """By address and kind of message; only while something waits."""
        self._length = 0
        self._size_bytes = 0
        self._deadlines = _Deadlines(self)

    def __len__(self) -> int:
        """How many messages are in line."""
        return self._length

    async def ask(self, address: str, message: Message, timeout_ms: float) -> Any:
        """The answer. Errors: what the cluster answers with; Timeout; Overload where too much is in line."""
        loop = asyncio.get_running_loop()
        reply: _Reply = loop.create_future()
        if not self._gathered:
            loop.call_soon(self._send_gathered)
        key = (address, type(message))
        if (gathered := self._gathered.get(key)) is None:
            gathered = self._gathered[key] = []
        gathered.append((message, reply))
        self._deadlines.add(reply, timeout_ms)
        try:
            return await reply
        finally:
            if self._lines:
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
            for waiting in line:
                if waiting.reply.done():
                    self._leave(waiting)
            self._lines[key] = deque(waiting for waiting in line if not waiting.reply.done())

    def _send_gathered(self) -> None:
        gathered, self._gathered = self._gathered, {}
        for key, asked in gathered.items():
            wanted = [each for each in asked if not each[1].done()]
            sent = 0
            if key not in self._lines:
                messages, replies = [message for message, _ in wanted], [reply for _, reply in wanted]
                sent = self._messenger.send_all(key[0], messages, replies)
            for message, reply in wanted[sent:]:
                self._join(key, message, reply)

    def _join(self, key: _LineKey, message: Message, reply: _Reply) -> None:
        now = reply.get_loop().time()
        size_bytes = message.size_bytes if isinstance(message, ApplyRequest) else 0
        line = self._lines.get(key)
        try:
            self._check_room(line, now, size_bytes)
        except Overload as error:
            reply.set_exception(error)
            return
        if line is None:
            line = self._lines[key] = deque()
        line.append(_Waiting(message, reply, now, size_bytes))
        self._length += 1
        self._size_bytes += size_bytes

    def _check_room(self, line: deque[_Waiting] | None, now: float, size_bytes: int) -> None:
        if self._length >= limits.DOCUMENT_QUEUE_LENGTH:
            raise Overload(f"Rejecting execution due to overload: {self._length} requests already enqueued")
        if self._size_bytes > 0 and self._size_bytes + size_bytes > limits.DOCUMENT_QUEUE_BYTES:
            raise Overload(f"Rejecting execution due to overload: {self._size_bytes} bytes already enqueued")
        if line and now - line[0].since > limits.DOCUMENT_QUEUE_SECONDS:
            raise Overload(
                f"Rejecting execution due to overload: {limits.DOCUMENT_QUEUE_SECONDS} seconds worth of work enqueued"
            )

    def _send_first(self, address: str, line: deque[_Waiting]) -> bool:
        """Send the first ones of a line, and drop those that nobody waits for. Whether there may be room for more."""
        tried = list(islice(line, _TRIED_AT_ONCE))
        wanted = [waiting for waiting in tried if not waiting.reply.done()]
        messages, replies = [waiting.message for waiting in wanted], [waiting.reply for waiting in wanted]
        sent = self._messenger.send_all(address, messages, replies) if wanted else 0
        first_left = wanted[sent] if sent < len(wanted) else None
        for waiting in tried:
            if waiting is first_left:
                return False
            self._leave(line.popleft())
        return True

    def _leave(self, waiting: _Waiting) -> None:
        self._length -= 1
        self._size_bytes -= waiting.size_bytes


class _Deadlines:
    """Fails the replies whose time has come. One timer for all of them: a timer for each would cost more than a put."""

    def __init__(self, queue: DocumentQueue) -> None:
        self._queue = queue
        self._waiting: dict[_Reply, tuple[float, float]] = {}
        self._is_ticking = False

    def add(self, reply: _Reply, timeout_ms: float) -> None:
        loop = reply.get_loop()
        self._waiting[reply] = (loop.time() + timeout_ms / 1000, timeout_ms)
        if not self._is_ticking:
            self._is_ticking = True
            loop.call_later(_TICK_SECONDS, self._tick, loop)

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        now = loop.time()
        self._waiting = {reply: entry for reply, entry in self._waiting.items() if not reply.done()}
        for reply, (deadline, timeout_ms) in self._waiting.items():
            if deadline <= now:
                reply.set_exception(Timeout(f"Timeout after {timeout_ms:.0f}ms"))
        if self._queue:
            self._queue.drop_forsaken()
            self._queue.send_waiting()
        self._is_ticking = bool(self._waiting)
        if self._is_ticking:
            loop.call_later(_TICK_SECONDS, self._tick, loop)
