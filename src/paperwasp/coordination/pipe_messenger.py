"""A messenger whose messages are bytes: each goes through a pipe to another process, and from there to the handler.

    request → envelope → parcel → pipe → relay → pipe → parcel → envelope → handler → its answer, the same way back

The relay (`coordination.pipe_relay`) gives on what it gets, so that the handlers are those of this process. What is
answered is what an `EmbeddedMessenger` gives for the same messages, as long as both ends are made of nothing but the
messages: that is what this messenger shows. A handler is called on the thread that reads the pipe.

What is of one process alone (`search.text_query`) does not cross. It is answered with None, as where there is no
compiled plan, and is asked the general way.

Messages that are sent together (`send_all`) are one parcel. Where a handler has no room for all of them, the rest waits
here in its order, and is tried again after each parcel that comes, and a little later; how much that can be is bounded
by the sender, which sends no more than a content cluster's queue has room for until it is answered. A message that is
sent alone does not wait: that there is no room is its answer.

Threads: one writes what any thread has left in a queue, one reads and calls handlers and replies. When the relay has
ended, all that is asked is answered with an error.
"""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from functools import partial
from io import RawIOBase
from queue import SimpleQueue
from select import select
from threading import Lock, Thread
from typing import Any, Final, NamedTuple, cast

import msgspec

from paperwasp import limits
from paperwasp.coordination.messages.documents import ApplyChanges, ApplyRequest
from paperwasp.coordination.messages.envelope import Codec
from paperwasp.coordination.messenger import (
    EmbeddedMessenger,
    Reply,
    ReplyToLoop,
    answer_all,
    settle,
    wait_for_answer,
)
from paperwasp.coordination.pipes import LENGTH, read_parcel, write_all
from paperwasp.errors import NotFound, Unavailable, UnreadableMessage

_LOG: Final = logging.getLogger("paperwasp.coordination")
_TRY_AGAIN_SECONDS: Final = 0.05
_NOBODY: Final = 0
"""The number of what is not answered."""
_LineKey = tuple[str, type]
"""Address and kind of message; plain changes are in the line of other operations."""


class _Parcel(msgspec.Struct, frozen=True, array_like=True):
    """Messages that go together, to an address; or the answer to one."""

    address: str
    """Empty: it is an answer."""
    number: int
    """Of the first message, and those after it have the next ones; of what is answered."""
    envelopes: list[bytes]
    are_in_line: bool = False
    """Whether what there is no room for waits for it; otherwise that is the answer."""


class _Unanswered(NamedTuple):
    """A message that is not answered yet."""

    message: Any
    reply: Reply
    address: str
    operations: int = 0
    """How many it counts as, of those that a cluster has room for; queries count as none."""
    size_bytes: int = 0


class _Held(NamedTuple):
    """A message that a handler has no room for."""

    message: Any
    reply: Reply


class PipeMessenger(EmbeddedMessenger):
    """A Messenger by way of another process. Requests come from one event loop, calls from any thread."""

    def __init__(self, codec: Codec) -> None:
        """Starts the other process."""
        super().__init__()
        self._codec: Final = codec
        self._next_number = _NOBODY + 1
        self._lock: Final = Lock()
        """Guards what was sent and is not answered. Answers need it, so nothing is encoded under it."""
        self._sent: dict[int, _Unanswered] = {}
        self._waiting: dict[str, tuple[int, int]] = {}
        """Address → messages that were sent together and are not answered, and their bytes."""
        self._is_over = False
        self._outgoing: SimpleQueue[bytes | None] = SimpleQueue()
        self._held: dict[_LineKey, deque[_Held]] = {}
        """The reading thread's."""
        command = [sys.executable, "-m", "paperwasp.coordination.pipe_relay"]
        self._relay: Final = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0)
        self._threads: Final = [
            Thread(target=work, name=f"messenger-{work.__name__.strip('_')}", daemon=True)
            for work in (self._write, self._read)
        ]
        for thread in self._threads:
            thread.start()

    def close(self) -> None:
        """Ends, once all addresses are withdrawn. What was asked is answered with an error."""
        self._outgoing.put(None)
        for thread in self._threads:
            thread.join()
        self._relay.wait()

    # Asking

    def request(self, address: str, message: object) -> asyncio.Future[Any]:
        replies = self.replies_to(asyncio.get_running_loop())
        future: asyncio.Future[Any] = replies.loop.create_future()
        self._ask(address, [message], [ReplyToLoop(replies, partial(settle, future))])
        return future

    def ask(self, address: str, message: object) -> asyncio.Future[Any]:
        return self.request(address, message)

    def hand(self, address: str, message: object, reply: Reply) -> None:
        if self._codec.carries(message):
            self._ask(address, [message], [reply])
        else:
            reply(None)

    def send_all(self, address: str, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        to_loop = self.replies_to(asyncio.get_running_loop())
        return self._ask(address, messages, [ReplyToLoop(to_loop, each) for each in replies], are_in_line=True)

    def call(self, address: str, message: object, timeout_seconds: float) -> Any:
        answer: Future[object] = Future()
        self._ask(address, [message], [answer.set_result])
        return wait_for_answer(answer, address, timeout_seconds)

    def notify(self, address: str, message: object) -> None:
        self._send(_Parcel(address, _NOBODY, [self._codec.encode(message)]))

    def _ask(
        self, address: str, messages: Sequence[Any], replies: Sequence[Reply], *, are_in_line: bool = False
    ) -> int:
        """Sends messages; returns how many, all where they are not in line. One that cannot cross is answered with the
        error, and counts."""
        operations, size_bytes = self._waiting.get(address, (0, 0))
        envelopes: list[bytes] = []
        sent: list[_Unanswered] = []
        failed: list[tuple[Reply, Exception]] = []
        for message, reply in zip(messages, replies, strict=True):
            try:
                data = self._codec.encode(message)
            except Exception as error:
                failed.append((reply, error))
                continue
            new = _Unanswered(message, reply, address)
            if are_in_line:
                count = len(message.changes) if isinstance(message, ApplyChanges) else 1
                new = new._replace(operations=count, size_bytes=len(data))
                if not _has_room(operations, size_bytes, new):
                    break
                operations, size_bytes = operations + new.operations, size_bytes + new.size_bytes
            envelopes.append(data)
            sent.append(new)
        with self._lock:
            is_over = self._is_over
            first = self._note(sent)
        if sent:
            self._send(_Parcel(address, first, envelopes, are_in_line))
        for reply, problem in failed:
            reply(problem)
        if is_over:
            self._fail_all()
        return len(sent) + len(failed)

    def _note(self, sent: Sequence[_Unanswered]) -> int:
        """Keeps what is to be answered. Returns the number of the first message. Under the lock."""
        first = self._next_number
        self._next_number += len(sent)
        for number, new in enumerate(sent, first):
            self._sent[number] = new
            operations, size_bytes = self._waiting.get(new.address, (0, 0))
            self._waiting[new.address] = (operations + new.operations, size_bytes + new.size_bytes)
        return first

    def _take(self, number: int) -> _Unanswered | None:
        """Take the message that has this number, which is answered now."""
        with self._lock:
            sent = self._sent.pop(number, None)
            if sent is not None:
                operations, size_bytes = self._waiting[sent.address]
                self._waiting[sent.address] = (operations - sent.operations, size_bytes - sent.size_bytes)
        return sent

    def _send(self, parcel: _Parcel) -> None:
        if self._is_over:
            return  # nobody would take it
        data = msgspec.msgpack.encode(parcel)
        self._outgoing.put(LENGTH.pack(len(data)) + data)

    def _write(self) -> None:
        """The thread that writes."""
        pipe = cast(RawIOBase, self._relay.stdin)
        try:
            while (data := self._outgoing.get()) is not None:
                write_all(pipe, data)
        except OSError as error:
            _LOG.warning("the process that messages go through has ended: %s", error)
        finally:
            pipe.close()

    def _fail_all(self) -> None:
        """Answers all that was asked, since nobody else will."""
        error = Unavailable("the process that messages go through has ended")
        with self._lock:
            numbers = list(self._sent)
        for number in numbers:
            if (sent := self._take(number)) is not None:
                _give(sent.reply, error)

    # Receiving

    def _read(self) -> None:
        """The thread that reads."""
        pipe = cast(RawIOBase, self._relay.stdout)
        try:
            while True:
                if self._held and not select([pipe], [], [], _TRY_AGAIN_SECONDS)[0]:
                    self._try_again()
                    continue
                parcel = read_parcel(pipe)
                if parcel is None:
                    break
                try:
                    self._receive(msgspec.msgpack.decode(parcel, type=_Parcel))
                except Exception:  # a defect costs its own parcel, and not those that come after it
                    _LOG.exception("a parcel of messages was lost")
                self._try_again()
        except Exception:
            _LOG.exception("messages can no longer be read")
        with self._lock:
            self._is_over = True
        self._fail_all()
        pipe.close()

    def _receive(self, parcel: _Parcel) -> None:
        if not parcel.address:
            self._receive_answer(parcel.number, parcel.envelopes[0])
            return
        messages, replies = [], []
        for number, data in enumerate(parcel.envelopes, parcel.number):
            reply = _log_error if parcel.number == _NOBODY else partial(self._answer, number)
            try:
                messages.append(self._codec.decode(data))
                replies.append(reply)
            except UnreadableMessage as error:
                reply(error)
        if not parcel.are_in_line:
            for message, reply in zip(messages, replies, strict=True):
                super().hand(parcel.address, message, reply)
        elif messages:
            self._deliver(parcel.address, messages, replies)

    def _receive_answer(self, number: int, data: bytes) -> None:
        sent = self._take(number)
        if sent is None:
            return
        try:
            answer = self._codec.decode(data, sent.message)
        except UnreadableMessage as error:
            answer = error
        _give(sent.reply, answer)

    def _answer(self, number: int, answer: object) -> None:
        """The reply to a message; any thread."""
        try:
            data = self._codec.encode(answer)
        except Exception as error:
            _LOG.exception("an answer cannot go to another process")
            data = self._codec.encode(error)
        self._send(_Parcel("", number, [data]))

    def _deliver(self, address: str, messages: Sequence[Any], replies: Sequence[Reply]) -> None:
        """Gives messages of one line to their handler, behind those that it has had no room for."""
        key = address, ApplyRequest if type(messages[0]) is ApplyChanges else type(messages[0])
        taken = 0 if key in self._held else self._hand_all(address, messages, replies)
        if taken < len(messages):
            line = self._held.setdefault(key, deque())
            line.extend(map(_Held, messages[taken:], replies[taken:]))

    def _hand_all(self, address: str, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        """How many there was room for."""
        handler = self._batch_handlers.get(address)
        if handler is None:
            answer_all(replies, [NotFound(f"nobody serves '{address}'")] * len(messages))
            return len(messages)
        try:
            return handler(messages, replies)
        except Exception as error:  # those that it took before are answered with it, too
            _LOG.exception("messages to '%s' cannot be served", address)
            answer_all(replies, [error] * len(messages))
            return len(messages)

    def _try_again(self) -> None:
        for key, line in list(self._held.items()):
            taken = self._hand_all(key[0], [each.message for each in line], [each.reply for each in line])
            for _ in range(taken):
                line.popleft()
            if not line:
                del self._held[key]


def _has_room(operations: int, size_bytes: int, new: _Unanswered) -> bool:
    """Return whether one more may be sent where so many operations, of so many bytes, are not answered."""
    if operations and operations + new.operations > limits.OPERATION_QUEUE_LENGTH:
        return False
    return not size_bytes or size_bytes + new.size_bytes <= limits.OPERATION_QUEUE_BYTES


def _give(reply: Reply, answer: object) -> None:
    """Calls the reply. A defect of it costs its own answer."""
    try:
        reply(answer)
    except Exception:
        _LOG.exception("an answer was lost")


def _log_error(answer: object) -> None:
    """The reply to a notification."""
    if isinstance(answer, Exception):
        _LOG.warning("a message that nobody awaits the answer to has failed: %s", answer)
