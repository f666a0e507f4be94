"""The messenger: requests to an address, wherever it is served. Containers ask content clusters by it.

A handler is given the message and a `reply` to call, once, with the answer or an error, from any thread, now or
later. So whoever serves decides where its work runs: operations are queued for a writer thread, queries for a
`WorkerPool`.

Embedded, a request is a function call. Waking the event loop costs as much as an operation and takes the interpreter's
lock from who wakes it, so whoever has answers to many requests gives them all by one call of `answer_all`, which wakes
the loop once, after the last. It takes them in pieces: what else has come, a query for instance, is not held up by the
answers to a thousand operations.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable, Generator, Sequence
from concurrent.futures import Future
from functools import partial
from time import monotonic_ns
from typing import Any, Protocol

from paperwasp import limits
from paperwasp.errors import Conflict, NotFound, Overload, Timeout

Reply = Callable[[object], None]
"""Takes the answer; an exception is raised at the requester."""
Handler = Callable[[Any, Reply], None]
"""Serves one message. Must not block: it is called on the asking thread. An error it raises is its answer."""
BatchHandler = Callable[[Sequence[Any], Sequence[Reply]], int]
"""Serves messages that come together, in order. Returns how many it took: those that there is no room for, which are
the last ones, are not answered. Must neither block nor raise."""


class Messenger(Protocol):
    """Request and answer by address."""

    def serve(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        """Messages to `address` go to `handler`, and those that come together to `batch_handler` where there is one.

        Errors: Conflict when somebody serves it already."""

    def replace(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        """Messages to `address` go to another handler from now on. Errors: NotFound when nobody serves it."""

    def withdraw(self, address: str) -> None:
        """The address is served no more."""

    def request(self, address: str, message: object) -> Awaitable[Any]:
        """The answer, to be awaited. Errors: what the handler answers with; NotFound when nobody serves the address."""

    def ask(self, address: str, message: object) -> Awaitable[Any]:
        """As `request`; where the answer came at once, it is `Answered`, and no future was made for it."""

    def hand(self, address: str, message: object, reply: Reply) -> None:
        """Hands a message over, and makes no future for the answer: the reply is called with it, or with the error,
        now or later, by any thread; it must not raise. The answer is None where this messenger cannot carry such a
        message: then it is to be asked in another way."""

    def send_all(self, address: str, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        """Sends messages in their order. The reply to each is called with its answer or error, later and on the event
        loop; it must not raise.

        Returns how many were sent. The first that there is no room for (Overload), and those after it, are not."""

    def call(self, address: str, message: object, timeout_seconds: float) -> Any:
        """The answer, for which the calling thread waits: never an event loop's. Errors: as `request`; Timeout."""

    def notify(self, address: str, message: object) -> None:
        """Delivers without requesting an answer. Nobody learns whether it arrived."""


class EmbeddedMessenger:
    """A Messenger within the process. Requests come from one event loop; the first one binds it."""

    def __init__(self) -> None:
        self._handlers: dict[str, Handler] = {}
        self._batch_handlers: dict[str, BatchHandler] = {}
        self._replies: Replies | None = None

    def serve(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        if address in self._handlers:
            raise Conflict(f"'{address}' is served already")
        self._handlers[address] = handler
        self._batch_handlers[address] = batch_handler or in_turn(handler)

    def replace(self, address: str, handler: Handler, batch_handler: BatchHandler | None = None) -> None:
        if address not in self._handlers:
            raise NotFound(f"nobody serves '{address}'")
        self._handlers[address] = handler
        self._batch_handlers[address] = batch_handler or in_turn(handler)

    def withdraw(self, address: str) -> None:
        self._handlers.pop(address, None)
        self._batch_handlers.pop(address, None)

    def request(self, address: str, message: object) -> asyncio.Future[Any]:
        replies = self.replies_to(asyncio.get_running_loop())
        future: asyncio.Future[Any] = replies.loop.create_future()
        handler = self._handlers.get(address)
        if handler is None:
            future.set_exception(NotFound(f"nobody serves '{address}'"))
            return future
        try:
            handler(message, ReplyToLoop(replies, partial(settle, future)))
        except Exception as error:
            future.set_exception(error)
        return future

    def send_all(self, address: str, messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        to_loop = self.replies_to(asyncio.get_running_loop())
        on_loop = [ReplyToLoop(to_loop, reply) for reply in replies]
        handler = self._batch_handlers.get(address)
        if handler is None:
            answer_all(on_loop, [NotFound(f"nobody serves '{address}'")] * len(messages))
            return len(messages)
        return handler(messages, on_loop)

    def replies_to(self, loop: asyncio.AbstractEventLoop) -> Replies:
        """The answers that are on their way to an event loop."""
        if self._replies is None or self._replies.loop is not loop:
            self._replies = Replies(loop)
        return self._replies

    def ask(self, address: str, message: object) -> Answered | asyncio.Future[Any]:
        handler = self._handlers.get(address)
        if handler is None:
            return Answered(NotFound(f"nobody serves '{address}'"))
        reply = _Reply()
        try:
            handler(message, reply)
        except Exception as error:
            return Answered(error)
        return Answered(reply.answers[0]) if reply.answers else self._later(reply)

    def hand(self, address: str, message: object, reply: Reply) -> None:
        handler = self._handlers.get(address)
        if handler is None:
            reply(NotFound(f"nobody serves '{address}'"))
            return
        try:
            handler(message, reply)
        except Exception as error:
            reply(error)

    def _later(self, reply: _Reply) -> Answered | asyncio.Future[Any]:
        """The future of an answer that has not come yet."""
        replies = self.replies_to(asyncio.get_running_loop())
        future: asyncio.Future[Any] = replies.loop.create_future()
        reply.waiting = ReplyToLoop(replies, partial(settle, future))
        try:
            reply.first.pop()
        except IndexError:  # it came just now, from another thread
            future.cancel()
            return Answered(reply.answers[0])
        return future

    def call(self, address: str, message: object, timeout_seconds: float) -> Any:
        handler = self._handlers.get(address)
        if handler is None:
            raise NotFound(f"nobody serves '{address}'")
        answer: Future[object] = Future()
        handler(message, answer.set_result)
        return wait_for_answer(answer, address, timeout_seconds)

    def notify(self, address: str, message: object) -> None:
        if handler := self._handlers.get(address):
            handler(message, ignore)


class Answered:
    """An answer that is there already. Awaiting it takes no turn of the event loop."""

    __slots__ = ("_answer",)

    def __init__(self, answer: object) -> None:
        self._answer = answer

    def answer(self) -> Any:
        """The answer. Errors: the one that was given instead."""
        if isinstance(self._answer, BaseException):
            raise self._answer
        return self._answer

    def __await__(self) -> Generator[Any, None, Any]:
        yield from ()
        return self.answer()


class _Reply:
    """The reply to one question, for any thread to call, once.

    Who answers and who waits each leave their mark, the answer or whom to give it to, and then take what is in
    `first`. Of two threads only one can, with or without the interpreter's lock: the other finds the mark that was left
    before, and gives the answer on.
    """

    __slots__ = ("answers", "first", "waiting")

    def __init__(self) -> None:
        self.answers: list[object] = []
        self.waiting: Reply | None = None
        self.first = [None]

    def __call__(self, answer: object) -> None:
        self.answers.append(answer)
        try:
            self.first.pop()
        except IndexError:
            if self.waiting is not None:
                self.waiting(answer)


class Replies:
    """Answers on their way to the event loop. Any thread adds, and wakes the loop afterwards."""

    __slots__ = ("_is_woken", "_waiting", "loop")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.loop = loop
        self._waiting: deque[tuple[Reply, object]] = deque()
        self._is_woken = False

    def add(self, taker: Reply, answer: object) -> None:
        """`taker` is to be called with the answer on the loop, which `wake` sees to."""
        self._waiting.append((taker, answer))

    def wake(self) -> None:
        """Has the answers that were added taken, if nobody has seen to that yet."""
        if not self._is_woken:
            self._is_woken = True
            try:
                self.loop.call_soon_threadsafe(self._deliver)
            except RuntimeError:  # the loop is closed
                return  # nobody waits any more

    def _deliver(self) -> None:
        # Before the answers are taken: one that is added from here on is taken below or wakes the loop again.
        self._is_woken = False
        waiting, end_ns = self._waiting, monotonic_ns() + limits.ANSWERS_NS
        while waiting:
            taker, answer = waiting.popleft()
            taker(answer)
            if monotonic_ns() > end_ns and waiting:
                self.loop.call_soon(self._deliver)  # behind what has come meanwhile
                return


class ReplyToLoop:
    """The reply, for any thread, whose answer `taker` is called with on the loop."""

    __slots__ = ("replies", "taker")

    def __init__(self, replies: Replies, taker: Reply) -> None:
        self.replies = replies
        self.taker = taker

    def __call__(self, answer: object) -> None:
        self.replies.add(self.taker, answer)
        self.replies.wake()


def answer_all(replies: Sequence[Reply], answers: Sequence[object]) -> None:
    """Calls each reply with its answer, in order; a loop that many of them go to is woken after the last. Any thread.

    None of the replies may raise."""
    last: Replies | None = None
    for reply, answer in zip(replies, answers, strict=True):
        if not isinstance(reply, ReplyToLoop):
            reply(answer)
            continue
        if reply.replies is not last:
            if last is not None:
                last.wake()
            last = reply.replies
        last.add(reply.taker, answer)
    if last is not None:
        last.wake()


def answered_together(reply: Reply, count: int) -> list[Reply]:
    """`count` replies, each for any thread to call once: after the last call, `reply` gets the list of answers."""
    answers: list[object] = [None] * count
    others = answers[1:]
    """One for each that is not the last; to take one is a single step, with or without the interpreter's lock."""

    def take(place: int, answer: object) -> None:
        answers[place] = answer
        try:
            others.pop()
        except IndexError:
            reply(answers)

    return [partial(take, place) for place in range(count)]


def in_turn(handler: Handler) -> BatchHandler:
    """Return the batch handler that gives each message to `handler`, in order."""

    def serve(messages: Sequence[Any], replies: Sequence[Reply]) -> int:
        for number, (message, reply) in enumerate(zip(messages, replies, strict=True)):
            try:
                handler(message, reply)
            except Overload:
                return number
            except Exception as error:
                reply(error)
        return len(messages)

    return serve


def settle(future: asyncio.Future[Any], answer: object) -> None:
    """Gives a future its answer, or the error that it is, unless nobody waits any more."""
    if future.done():
        return
    if isinstance(answer, BaseException):
        future.set_exception(answer)
    else:
        future.set_result(answer)


def wait_for_answer(answer: Future[object], address: str, timeout_seconds: float) -> Any:
    """Return what comes, and raise it where it is an error. Errors: Timeout where nothing comes in time."""
    try:
        found = answer.result(timeout_seconds)
    except TimeoutError:
        raise Timeout(f"'{address}' did not answer within {timeout_seconds:g} s") from None
    if isinstance(found, BaseException):
        raise found
    return found


def ignore(_: object) -> None:
    """Take an answer that nobody waits for."""
